//! Tools of other servers of the Model Context Protocol.
//!
//! ```text
//! Upstreams ─▶ line: one server ─▶ wire: rmcp over stdio and HTTP ─┐
//!     │           │            └──────── a host's own Remote ──────┤
//!     │           ├▶ name · suspicion · pins: what is believed     │
//!     │           └▶ roster: which tools others have · mentions    │
//!     └─▶ Toolset ─▶ tool ─▶ arguments ─────▶ Remote::call ────────┘─▶ promise ─▶ result
//!                                                  └▶ questions ─▶ form: what it asks meanwhile
//! ```
//!
//! A foreign tool is a tool like any other once it is in a toolset; nothing in the pipeline
//! knows that it is foreign.
//!
//! **Invariant:** nothing that a server says makes anything allowed.

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

/// The permissions that are judged for foreign tools, beside the tools' own names.
#[cfg(feature = "cli")]
pub(in crate::surface) const PERMISSIONS: [&str; 3] =
    [tool::PERMISSION, tool::DEFINITION, questions::SAMPLING];
