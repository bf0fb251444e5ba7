//! Beginnings that fail, and messages that do not arrive: what whoever wanted a connection is
//! told.

use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

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

impl Failed {
    /// The server has not said yet whether it is one of today.
    pub(super) fn late() -> Self {
        let error = RemoteError::timeout("the server does not say which protocol it speaks");
        Self { error, may_be_older: true, may_be_slow: true }
    }
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

/// A message that did not arrive, or whose answer did not.
pub(super) struct Unsent {
    pub(super) error: RemoteError,
    /// Whether no other message will arrive either.
    pub(super) is_final: bool,
}

/// Why a message did not arrive.
pub(super) fn unsent(error: DynamicTransportError) -> Unsent {
    let over_http = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    let is_final = matches!(over_http, Some(StreamableHttpError::SessionExpired));
    let told = match over_http {
        Some(StreamableHttpError::SessionExpired) => {
            RemoteError::connection("the server has ended the session, and did not run this")
        }
        Some(StreamableHttpError::ResponseBodyTooLarge { max_size }) => RemoteError::protocol(
            format_args!("the server sent a message of more than {max_size} bytes"),
        ),
        _ => RemoteError::connection("the server cannot be reached"),
    };
    Unsent { error: told.because(error), is_final }
}

/// The last line of what a server complained about.
fn last_line(words: &str) -> String {
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
