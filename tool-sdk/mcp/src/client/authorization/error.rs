//! Why the authorization of a server failed.
//!
//! **Invariant:** no message contains a token, a code or a client secret. Texts of other parties are
//! escaped and cut.

use thiserror::Error;
use tool_sdk_core::{PrivateFileError, internal::spell_hidden};
use tool_sdk_net::FetchError;

use super::prompt::PromptFailure;

/// The longest text of another party in a message, in characters.
const MAX_QUOTED_CHARS: usize = 300;

/// Why a server was not authorized.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AuthorizationError {
    /// The host has no such server.
    #[error("there is no server `{0}`")]
    UnknownServer(String),
    /// The server needs no authorization by OAuth: it is a program, or its token is configured.
    #[error("{0}")]
    NotApplicable(String),
    /// The server or its authorization server publishes no usable metadata.
    #[error("{0}")]
    Discovery(String),
    /// A request of the flow could not be sent, or got no response.
    #[error("{purpose}: {source}")]
    Request {
        /// What the request was for.
        purpose: &'static str,
        /// The cause.
        source: FetchError,
    },
    /// The authorization server does not know this program, and does not register it.
    #[error("{0}")]
    Registration(String),
    /// The user did not authorize the server.
    #[error("{0}")]
    Prompt(#[from] PromptFailure),
    /// The redirect of the authorization server is not the answer to this request.
    #[error("the answer of the authorization server is rejected: {0}")]
    RejectedRedirect(String),
    /// The authorization server refused the authorization or the token.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// The response of the token endpoint is not one.
    #[error("the token response is not valid: {0}")]
    InvalidToken(String),
    /// The credentials cannot be stored or read.
    #[error("the credentials cannot be kept: {0}")]
    Storage(#[from] PrivateFileError),
}

impl AuthorizationError {
    /// Returns a converter for a request that failed.
    pub(super) fn request(purpose: &'static str) -> impl Fn(FetchError) -> Self {
        move |source| Self::Request { purpose, source }
    }
}

/// Returns a text of another party, with invisible characters escaped, on one line, cut.
pub(super) fn quote_foreign(text: &str) -> String {
    let cut: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    spell_hidden(&cut).replace('\n', "\\n")
}
