//! The state of a configured server, for the host and for `mcp list`.
//!
//! **Invariant:** it contains no secret.

use serde::Serialize;
use serde_json::Value;
use tool_sdk_core::Session;

use super::authorization::AuthorizationStatus;

/// The state of a configured server.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The name in the host's configuration.
    pub name: String,
    /// Whether the host may connect to it.
    pub enabled: bool,
    /// The transport, without any secret.
    #[serde(rename = "reach")]
    pub transport: Value,
    /// Whether there is a connection.
    pub connected: bool,
    /// The state of its authorization by OAuth; `None` when it asked for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<AuthorizationStatus>,
    /// The names that models see for its tools.
    pub tools: Vec<String>,
    /// The last error.
    pub last_error: Option<String>,
    /// Which tools are left out and why, and what is suspicious about the others.
    pub warnings: Vec<String>,
    /// The end of what it wrote to standard error.
    pub stderr: String,
}

impl ServerStatus {
    /// Returns what this session may see. On a host that several users share, the last error and
    /// standard error are left out, because they may be about another user's call.
    #[must_use]
    pub fn visible_to_session(mut self, session: &Session) -> Self {
        if session.user_key().is_some() {
            self.last_error = None;
            self.stderr.clear();
        }
        self
    }
}
