//! MCP client: runs the tools of other Model Context Protocol servers through the pipeline.
//!
//! ```text
//! ServerManager ─▶ connection (one server) ─▶ transport: rmcp over stdio and HTTP ─┐
//!      │               │            └────────── the host's own RemoteConnection ───┤
//!      │               ├▶ naming · description_lint · pins                         │
//!      │               └▶ tool_index: tools of the other servers                   │
//!      └─▶ Toolset ─▶ tool ─▶ args: input check ─▶ RemoteConnection::call_tool ────┘─▶ output_validator ─▶ result
//!                                                    └▶ server_requests ─▶ elicitation
//! authorization: OAuth for servers over HTTP
//! ```
//!
//! A tool of another server ("foreign tool") is added to a toolset like any other tool; the
//! pipeline does not know where it runs.
//!
//! **Invariant:** nothing that a server sends grants a permission.

mod args;
mod authorization;
mod config;
mod connection;
mod description_lint;
mod elicitation;
mod elicitation_url;
mod http_endpoint;
mod manager;
mod naming;
mod offer_changes;
mod offers;
mod output_validator;
mod remote;
mod result;
mod schema_repair;
mod schema_rules;
mod secret_filter;
mod server_requests;
mod status;
#[cfg(test)]
pub(crate) mod tests;
mod time_limit;
mod tool;
mod tool_index;
mod transport;
mod validator;

pub use self::authorization::fetch_issuer_keys;
pub use self::authorization::{
    AuthorizationError, AuthorizationPrompt, AuthorizationRequest, AuthorizationStatus,
    CredentialStore, LogoutOutcome, OAuthSettings, PromptFailure,
};
pub use self::config::{
    ConnectFn, InvalidServerConfig, ServerCommand, ServerConfig, TransportConfig,
};
pub use self::http_endpoint::HttpEndpoint;
pub use self::manager::ServerManager;
pub use self::naming::{is_approval_void, name_prefix, parse_server};
pub use self::offers::{ForeignPrompts, ForeignResources};
pub use self::remote::{
    ErrorClass, OfferChange, ProgressCallback, RemoteCall, RemoteConnection, RemoteError,
    RemoteFuture, RemotePrompt, RemotePromptArgument, RemoteResource, RemoteResult, RemoteTool,
};
pub(super) use self::result::BLOCKS_KEY;
pub use self::server_requests::{ClientFeatures, ServerRequestHandler};
pub use self::status::ServerStatus;
pub use self::transport::connect_streams;
pub use tool_sdk_core::ToolPins;

/// The permissions that rules can name for foreign tools, beside the tools' own names.
pub const PERMISSIONS: [&str; 3] =
    [tool::PERMISSION, tool::DEFINITION_PERMISSION, server_requests::SAMPLING_PERMISSION];
