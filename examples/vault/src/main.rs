//! The tools of the vault as a program: command line, MCP server and HTTP server.

use std::process::ExitCode;

tool_sdk::link!(tool_vault);

fn main() -> ExitCode {
    tool_sdk::cli::App::linked().version(env!("CARGO_PKG_VERSION")).main()
}
