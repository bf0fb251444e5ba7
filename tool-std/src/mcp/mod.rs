//! The tools about MCP servers: `register_mcp_server` connects another server, `debug_mcp_server`
//! shows the state of the connected ones.

mod confinement;
mod debug;
mod register;
mod variables;

pub use self::debug::debug_mcp_server;
pub use self::register::register_mcp_server;
