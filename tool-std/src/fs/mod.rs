//! Tools that read and change the workspace's files and folders.

// A tool is a type of its function's name, so the module must have another one.
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
