//! The ways out: how tools are shown to providers, programs and people.

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod provider;
#[cfg(any(feature = "cli", feature = "testing"))]
pub(crate) mod schema_files;
pub(crate) mod schema_lock;
