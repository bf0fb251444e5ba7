//! Text as tools show it: pure functions, no files.
//!
//! **Invariant:** nothing here knows a tool.

#[cfg(feature = "search")]
pub(crate) mod excerpt;
#[cfg(feature = "fs")]
pub(crate) mod index;
#[cfg(feature = "fs")]
pub(crate) mod lines;
#[cfg(feature = "fs")]
pub(crate) mod page;
pub(crate) mod similar;
#[cfg(feature = "fs")]
pub(crate) mod typography;

/// The most text that a tool gives back at once, in bytes.
pub(crate) const MAX_BYTES: usize = 50 * 1024;
