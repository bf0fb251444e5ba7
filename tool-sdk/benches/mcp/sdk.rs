//! The server of the SDK with the same tool.

use std::error::Error;

use tool_sdk::mcp::Server;
use tool_sdk::{Pipeline, Registry, Session, tool, tools};

/// Add two numbers.
#[tool(read, register = false)]
fn add(
    /// One number.
    a: i64,
    /// The other one.
    b: i64,
) -> String {
    (a + b).to_string()
}

pub(crate) fn server() -> Result<Server, Box<dyn Error>> {
    let pipeline = Pipeline::new(Registry::builder().add(tools![add]).build()?);
    Ok(Server::new(pipeline, Session::default()))
}

/// Serves over two pipes.
pub(crate) fn serve(server: &Server) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(server.serve_stdio())?)
}
