//! Tools that find files and what is in them.

mod find;
// A tool is a type of its function's name, so the modules must have other ones.
mod glob;
mod grep;
mod ignored;
mod include;
mod report;
mod walk;

pub use self::glob::glob_files;
pub use self::grep::grep_files;
