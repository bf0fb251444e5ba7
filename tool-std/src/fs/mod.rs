//! Tools that read the workspace's files and folders.

// A tool is a type of its function's name, so that the module must have another one.
#[path = "list_dir.rs"]
mod list;
#[path = "read_file.rs"]
mod read;

pub use self::list::list_dir;
pub use self::read::read_file;
