//! The ways out: how tools are shown to providers, programs and people.

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(any(feature = "cli", feature = "testing"))]
pub(crate) mod files;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod provider;
