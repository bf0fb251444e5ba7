//! Tools that find files and what is in them.

mod find;
// A tool is a type of its function's name, so that the module must have another one.
#[path = "grep_files.rs"]
mod grep;
mod report;

pub use self::grep::grep_files;
