//! Tools that read the workspace's files and folders.

// A tool is a type of its function's name, so the module must have another one.
mod list;
mod read;

pub use self::list::list_dir;
pub use self::read::read_file;
