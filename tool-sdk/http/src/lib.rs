//! The HTTP server of `tool-sdk`: one server for every protocol over HTTP.
//!
//! [`serve_http`] listens at an address or a UNIX socket, checks host, origin and token of each
//! request before its body is read, and mounts the Model Context Protocol at `/mcp`. [`router`]
//! returns the same as an axum router, for hosts with a server of their own. A host with its own
//! authentication nests [`HttpService`](tool_sdk_mcp::HttpService) alone.
//!
//! ```text
//! listener ─▶ connection_limiter ─▶ hyper ─▶ auth ─▶ router ─▶ mcp::HttpService
//!                                             └▶ access_token: tokens of an authorization server
//! ```

#![forbid(unsafe_code)]

mod access_token;
mod auth;
mod connection_limiter;
#[cfg(feature = "rest")]
mod console;
mod issuer_keys;
mod listener;
mod options;
mod resource_metadata;
#[cfg(feature = "rest")]
pub mod rest;
mod ring_provider;
mod router;
mod scopes;
mod server;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "socket_unsupported.rs"]
mod socket;
mod token;
mod token_verifier;

pub use self::access_token::{AccessTokenIssuer, InvalidIssuer};
#[cfg(feature = "rest")]
pub use self::console::ConsoleAccess;
pub use self::listener::HttpListener;
pub use self::options::HttpOptions;
pub use self::router::router;
pub use self::scopes::{TokenScope, TokenScopes, UnknownScope};
pub use self::server::serve_http;
pub use self::socket::UnixSocket;
pub use self::token::{InvalidToken, Token};
pub use self::token_verifier::{TokenIdentity, TokenVerifier};
