//! The program as an MCP server, tested with hand-written messages over stdio and HTTP.

#![cfg(feature = "application")]

mod asking;
mod client_roots;
mod collaboration;
mod http;
mod kept;
mod pack;
mod peer;
mod pipes;
#[cfg(unix)]
mod socket;
#[cfg(unix)]
mod upstream;
