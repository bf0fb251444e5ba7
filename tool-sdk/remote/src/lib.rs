//! Tools of workers on other machines, over [NATS](https://nats.io).
//!
//! A [`Worker`] serves the tools of its program. A host has the tools of all [`Workers`] of a
//! namespace beside its own:
//!
//! ```text
//! host                                        worker
//! Workers ─▶ Toolset ─▶ pipeline ── prepare ─▶ decodes; reports resources, preview, fingerprint
//!                       decides, asks, audits
//!                       signs a permit ── run ─▶ checks the permit; its own pipeline runs the call
//!                       events, result ◀─ inbox ─ progress, output, heartbeats, result
//! ```
//!
//! A worker runs nothing without a [permit](Permit): a signed statement of the host that this very
//! call may run, once, until a deadline. In the worker's pipeline the permit counts as the answer to
//! an approval request and nothing more, so the rules of the worker that deny still win.
//!
//! This crate is a part of [tool-sdk](https://docs.rs/tool-sdk), which re-exports it with the feature
//! `remote`.
//!
//! **Invariant:** a call whose worker is lost is never silently lost or repeated: the caller reads
//! that it may have run.

#![forbid(unsafe_code)]

mod connection;
mod error;
mod namespace;
mod nonces;
mod payload;
mod permit;
mod protocol;
mod worker;
mod workers;

pub use self::connection::NatsConfig;
pub use self::error::RemoteError;
pub use self::namespace::Namespace;
pub use self::permit::{Permit, PermitError, PermitPurpose, PermitSigner, PermitVerifier};
pub use self::worker::{Worker, WorkerConfig};
pub use self::workers::{
    ConnectionStatus, DefinitionReview, WorkerStats, WorkerStatus, Workers, WorkersConfig,
};

pub use tool_sdk_core::ToolPins;

/// The permission to run a tool of a worker whose current definition is not pinned.
pub const DEFINITION_PERMISSION: &str = "remote_definition";

/// For the other crates of the SDK, without a promise of stability.
#[doc(hidden)]
pub mod internal {
    pub use crate::namespace::{is_approval_void, name_prefix, parse_namespace};
    pub use crate::workers::shared_prefix_message;
}
