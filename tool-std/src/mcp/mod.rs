//! Tools about servers of the Model Context Protocol: one to use another server, one to look
//! at those that are used.

mod confinement;
mod debug;
mod register;
mod variables;

pub use self::debug::debug_mcp_server;
pub use self::register::register_mcp_server;
