//! Text processing shared by the file and search tools: pure functions without file access.
//!
//! **Invariant:** nothing here depends on a tool.

#[cfg(feature = "search")]
pub(crate) mod excerpt;
#[cfg(feature = "fs")]
pub(crate) mod line_index;
#[cfg(feature = "fs")]
pub(crate) mod lines;
#[cfg(feature = "fs")]
pub(crate) mod page;
pub(crate) mod similar_names;
#[cfg(feature = "fs")]
pub(crate) mod typography;

/// The maximum number of bytes of text in a tool result.
pub(crate) const MAX_BYTES: usize = 50 * 1024;
