//! The tools that read and change files and folders of the workspace.

// The macro defines a type named like the function, so the module needs another name.
mod edit;
mod edit_target;
mod line_numbering;
mod list;
mod patch;
mod patch_plan;
mod read;
mod write;

pub use self::edit::{TextEdit, edit_file};
pub use self::line_numbering::LineNumbering;
pub use self::list::list_dir;
pub use self::patch::{PatchText, apply_patch};
pub use self::read::read_file;
pub use self::write::write_file;
