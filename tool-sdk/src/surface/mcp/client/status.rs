//! What is known of a server, for whoever looks after it.
//!
//! **Invariant:** no secret is in it.

use serde::Serialize;
use serde_json::Value;

use crate::context::Session;

/// What is known of a server.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// Its name here.
    pub name: String,
    /// Whether it may be met at all.
    pub enabled: bool,
    /// How it is reached, without any secret.
    pub reach: Value,
    /// Whether there is a connection.
    pub connected: bool,
    /// What models call its tools.
    pub tools: Vec<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// What is odd about its tools, and which are left out.
    pub warnings: Vec<String>,
    /// The end of what it wrote to its standard error.
    pub stderr: String,
}

impl Status {
    /// As much of it as whoever has this session may know: where several speak to one host,
    /// what a server said last may be about somebody else's call, and is left out.
    #[must_use]
    pub fn for_session(mut self, session: &Session) -> Self {
        if session.seer().is_some() {
            self.last_error = None;
            self.stderr.clear();
        }
        self
    }
}
