//! Beginnings that fail: what whoever wanted a connection is told.

use rmcp::service::ClientInitializeError;

use super::super::remote::RemoteError;
use super::bounded::Overflow;

/// A beginning that failed.
pub(super) struct Failed {
    pub(super) error: RemoteError,
    /// Whether an older beginning may go better.
    pub(super) may_be_older: bool,
    /// Whether the server, met as an older one too, may only have been slow.
    pub(super) may_be_slow: bool,
}

impl From<RemoteError> for Failed {
    fn from(error: RemoteError) -> Self {
        Self { error, may_be_older: false, may_be_slow: false }
    }
}

/// Why there is no connection; `words` are those of the server about itself.
pub(super) fn refused(error: ClientInitializeError, words: String, overflow: &Overflow) -> Failed {
    if let Some(error) = overflow.error() {
        return error.complaining(words).into();
    }
    let needs_login = error.is_authorization_required();
    let may_be_slow =
        !needs_login && matches!(error, ClientInitializeError::LegacyFallbackFailed { .. });
    let may_be_older = !needs_login && !may_be_slow;
    let told = match &error {
        _ if needs_login => RemoteError::connection("the server wants a token, or another one"),
        ClientInitializeError::ConnectionClosed(_) => RemoteError::connection(format_args!(
            "the server went away at its start{}",
            last_line(&words)
        )),
        ClientInitializeError::TransportError { .. } => {
            let line = last_line(&words);
            RemoteError::connection(format_args!("the server cannot be reached{line}"))
        }
        _ => RemoteError::protocol("the server does not begin as the protocol says"),
    };
    Failed { error: told.because(error).complaining(words), may_be_older, may_be_slow }
}

/// The last line of what a server complained about.
fn last_line(words: &str) -> String {
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
