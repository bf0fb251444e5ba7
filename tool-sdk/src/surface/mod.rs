//! The ways out: how tools are shown to providers, programs and people.

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(any(feature = "cli", feature = "testing"))]
pub(crate) mod files;
pub(crate) mod lock;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod provider;
