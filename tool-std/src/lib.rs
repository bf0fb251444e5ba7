//! The standard tools that an agent needs.
//!
//! | tool | feature | what it does |
//! |---|---|---|
//! | [`read_file`](fn@fs::read_file) | `fs` | shows a text file page by page, an image or a PDF as it is |
//! | [`list_dir`](fn@fs::list_dir) | `fs` | lists a folder and what is below it |
//! | [`glob_files`](fn@search::glob_files) | `search` | finds files by their names |
//! | [`grep_files`](fn@search::grep_files) | `search` | searches files with a regular expression |
//!
//! Each tool is a function that a program may also call itself. The host lends the folders
//! that tools may touch as a [`Workspace`](tool_sdk::Workspace); nothing outside is read.
//!
//! A library takes what it needs, and no command line:
//!
//! ```toml
//! tool-std = { version = "0.1", default-features = false, features = ["fs"] }
//! ```
//!
//! The binary `tool-std` holds all of them.

#[cfg(feature = "fs")]
#[cfg_attr(not(test), expect(dead_code, reason = "the tools that write come with the workspace"))]
mod diff;
#[cfg(feature = "fs")]
#[cfg_attr(not(test), expect(dead_code, reason = "the tools that write come with the workspace"))]
mod edit;
#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "fs")]
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the tools that write come with the workspace")
)]
mod patch;
#[cfg(feature = "search")]
pub mod search;

mod profiles;
#[cfg(any(feature = "fs", feature = "search"))]
mod stop;
#[cfg(any(feature = "fs", feature = "search"))]
mod text;

pub use self::profiles::profiles;
