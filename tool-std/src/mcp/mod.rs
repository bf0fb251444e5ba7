//! The tools about MCP servers: `register_mcp_server` connects another server, `debug_mcp_server`
//! shows the state of the connected ones.

mod debug;
mod env_vars;
mod register;
mod sandbox_request;

pub use self::debug::debug_mcp_server;
pub use self::register::register_mcp_server;
