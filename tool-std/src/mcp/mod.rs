//! The tools about MCP servers: `register_mcp_server` connects another server, `debug_mcp_server`
//! shows the state of the connected ones, `mcp_resource_list`, `mcp_resource_read` and
//! `mcp_prompt_get` use what they offer beside tools.

mod debug;
mod env_vars;
mod register;
mod resources;
mod sandbox_request;

pub use self::debug::debug_mcp_server;
pub use self::register::register_mcp_server;
pub use self::resources::{
    PromptArgumentValue, PromptContent, PromptMessage, ServerOffer, ServerOffers, mcp_prompt_get,
    mcp_resource_list, mcp_resource_read,
};

/// Returns a count with its noun in the singular or plural.
fn count_noun(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
