//! The callbacks by which a program changes its MCP server.

use tool_sdk_core::{Pipeline, Session};
use tool_sdk_mcp::Server;

/// Changes the server before it serves.
type ServerCallback = dyn Fn(Server, &Pipeline, &Session) -> Server;

/// The callbacks of a program, in the order in which they were added.
#[derive(Default)]
pub(crate) struct ServerSetup(Vec<Box<ServerCallback>>);

impl ServerSetup {
    pub(crate) fn add(
        &mut self,
        configure: impl Fn(Server, &Pipeline, &Session) -> Server + 'static,
    ) {
        self.0.push(Box::new(configure));
    }

    /// Applies all callbacks.
    pub(crate) fn apply(&self, server: Server, pipeline: &Pipeline, session: &Session) -> Server {
        self.0.iter().fold(server, |server, configure| configure(server, pipeline, session))
    }
}
