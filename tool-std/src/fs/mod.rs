//! The tools that read and change files and folders of the workspace.

// The macro defines a type named like the function, so the module needs another name.
mod edit;
mod list;
mod numbering;
mod patch;
mod plan;
mod read;
mod target;
mod write;

pub use self::edit::{TextEdit, edit_file};
pub use self::list::list_dir;
pub use self::numbering::Numbering;
pub use self::patch::{PatchText, apply_patch};
pub use self::read::read_file;
pub use self::write::write_file;
