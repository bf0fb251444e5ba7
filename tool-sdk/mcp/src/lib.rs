//! Serves the tools of a pipeline over the Model Context Protocol (MCP), and calls the tools of
//! other MCP servers.
//!
//! ```text
//! client ─▶ server ─▶ pipeline            serves tools, resources and prompts
//! pipeline ─▶ client ─▶ other servers     their tools become tools of the pipeline
//!             resource_cache              caches their resources
//! ```
//!
//! Both protocol eras are supported: sessions that begin with `initialize` (up to 2025-11-25), and
//! stateless requests (from 2026-07-28 on). rmcp supplies the types of the protocol and the client.
//!
//! **Invariant:** every call goes through the pipeline. A client counts as a model, not as a user:
//! only an answer to a question that the server asked can allow a call.

#![forbid(unsafe_code)]

mod client;
mod json_rpc;
mod resource_cache;
mod server;

pub use self::client::{
    AuthorizationError, AuthorizationPrompt, AuthorizationRequest, AuthorizationStatus,
    ClientFeatures, ConnectFn, CredentialStore, ErrorClass, ForeignPrompts, ForeignResources,
    HttpEndpoint, InvalidServerConfig, LogoutOutcome, OAuthSettings, OfferChange, ProgressCallback,
    PromptFailure, RemoteCall, RemoteConnection, RemoteError, RemoteFuture, RemotePrompt,
    RemotePromptArgument, RemoteResource, RemoteResult, RemoteTool, ServerCommand, ServerConfig,
    ServerManager, ServerRequestHandler, ServerStatus, ToolPins, TransportConfig, connect_streams,
};
pub use self::resource_cache::{CacheStats, ResourceCache, ResourcePrefetcher};
pub use self::server::{
    HttpService, PromptArgument, PromptDefinition, PromptProvider, ResourceDefinition,
    ResourceProvider, Server,
};

/// For the other crates of the SDK, without a promise of stability.
#[doc(hidden)]
pub mod internal {
    pub use crate::client::{
        PERMISSIONS, fetch_issuer_keys, is_approval_void, name_prefix, parse_server,
    };
    pub use crate::server::{chatgpt_result_meta, is_chatgpt, open_streams};
}
