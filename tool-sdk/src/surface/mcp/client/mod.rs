//! MCP client: runs the tools of other Model Context Protocol servers through the pipeline.
//!
//! ```text
//! ServerManager ─▶ connection (one server) ─▶ transport: rmcp over stdio and HTTP ─┐
//!      │               │            └────────── the host's own RemoteConnection ───┤
//!      │               ├▶ naming · description_lint · pins                         │
//!      │               └▶ tool_index: tools of the other servers                   │
//!      └─▶ Toolset ─▶ tool ─▶ args: input check ─▶ RemoteConnection::call_tool ────┘─▶ output_validator ─▶ result
//!                                                    └▶ server_requests ─▶ elicitation
//! ```
//!
//! A tool of another server ("foreign tool") is added to a toolset like any other tool; the
//! pipeline does not know where it runs.
//!
//! **Invariant:** nothing that a server sends grants a permission.

mod address;
mod apart;
mod arguments;
mod cost;
mod form;
mod line;
mod mentions;
mod name;
mod patterns;
mod pins;
mod promise;
mod questions;
mod remote;
mod result;
mod roster;
mod secrets;
mod status;
mod suspicion;
#[cfg(test)]
pub(in crate::surface) mod tests;
mod tool;
mod understood;
mod upstream;
mod upstreams;
mod validator;
mod wire;

pub use self::address::Address;
#[cfg(feature = "cli")]
pub(in crate::surface) use self::name::{namespace, server_of};
pub use self::pins::Pins;
pub use self::questions::{Answers, Questions};
pub use self::remote::{
    ErrorClass, Remote, RemoteCall, RemoteError, RemoteResult, RemoteTool, RemoteWork, Report,
};
pub(super) use self::result::BLOCKS;
pub use self::status::Status;
pub use self::upstream::{Connect, InvalidUpstream, Launch, Reach, Upstream};
pub use self::upstreams::Upstreams;
pub use self::wire::talk;

/// The permissions that rules can name for foreign tools, beside the tools' own names.
#[cfg(feature = "cli")]
pub(in crate::surface) const PERMISSIONS: [&str; 3] =
    [tool::PERMISSION, tool::DEFINITION, questions::SAMPLING];
