//! Surfaces: how tools are offered to model providers, MCP clients and command-line users.

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod provider;
#[cfg(any(feature = "cli", feature = "testing"))]
pub(crate) mod schema_files;
pub(crate) mod schema_lock;
