//! The tools that find files by name and by content.

mod content_search;
// The macro defines types named like the functions, so the modules need other names.
mod glob;
mod grep;
mod ignore_rules;
pub(crate) mod path_glob;
pub(crate) mod report;
pub(crate) mod walk;

pub use self::glob::glob_files;
pub use self::grep::grep_files;
