//! Tools that find files and what is in them.

mod find;
// A tool is a type of its function's name, so the module must have another one.
mod grep;
mod report;

pub use self::grep::grep_files;
