//! Errors of the handshake and of sending, as the caller gets them.

use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::super::remote::RemoteError;
use super::lines::Overflow;
use super::unread;

/// A handshake that failed.
pub(super) struct Failed {
    pub(super) error: RemoteError,
    /// Whether the older handshake may succeed.
    pub(super) may_be_older: bool,
    /// Whether the server failed the older handshake too, and may only have been slow.
    pub(super) may_be_slow: bool,
}

impl Failed {
    /// The server did not answer the 2026 handshake in time.
    pub(super) fn late() -> Self {
        let error = RemoteError::timeout("the server did not answer `server/discover` in time");
        Self { error, may_be_older: true, may_be_slow: true }
    }
}

impl From<RemoteError> for Failed {
    fn from(error: RemoteError) -> Self {
        Self { error, may_be_older: false, may_be_slow: false }
    }
}

/// Converts a failed handshake; `words` are the server's standard error.
pub(super) fn refused(error: ClientInitializeError, words: String, overflow: &Overflow) -> Failed {
    if let Some(error) = overflow.error() {
        return error.complaining(words).into();
    }
    let needs_login = error.is_authorization_required();
    let may_be_slow =
        !needs_login && matches!(error, ClientInitializeError::LegacyFallbackFailed { .. });
    let may_be_older = !needs_login && !may_be_slow;
    let told = beginning(&error, &last_line(&words));
    Failed { error: told.because(error).complaining(words), may_be_older, may_be_slow }
}

/// Returns the error of a handshake; `complaint` is the last line of standard error.
fn beginning(error: &ClientInitializeError, complaint: &str) -> RemoteError {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            beginning(fallback, complaint)
        }
        ClientInitializeError::ConnectionClosed(_) => {
            RemoteError::connection(format_args!("the server exited during startup{complaint}"))
        }
        ClientInitializeError::TransportError { error, .. } => {
            over_http(error).unwrap_or_else(|| {
                RemoteError::connection(format_args!("the server cannot be reached{complaint}"))
            })
        }
        ClientInitializeError::JsonRpcError(said) => no(said),
        _ => RemoteError::protocol("the server's handshake violates the protocol"),
    }
}

/// The error for a JSON-RPC error response of the server.
pub(super) fn no(said: &ErrorData) -> RemoteError {
    unread::error(said).unwrap_or_else(|| {
        let (words, code) = (&said.message, said.code.0);
        RemoteError::protocol(format_args!("the server returned an error ({code}): {words}"))
    })
}

/// A message that could not be sent, or whose response could not be read.
pub(super) struct Unsent {
    pub(super) error: RemoteError,
    /// Whether the session is lost, so that no other message can be sent either.
    pub(super) is_final: bool,
}

/// Converts an error of sending a message.
pub(super) fn unsent(error: DynamicTransportError) -> Unsent {
    let is_final = matches!(http_error(&error), Some(StreamableHttpError::SessionExpired));
    let told = over_http(&error).unwrap_or_else(unreachable);
    Unsent { error: told.because(error), is_final }
}

fn unreachable() -> RemoteError {
    RemoteError::connection("the server cannot be reached")
}

type HttpError = StreamableHttpError<reqwest::Error>;

fn http_error(error: &DynamicTransportError) -> Option<&HttpError> {
    error.error.downcast_ref()
}

/// Converts an error of HTTP, if it is one.
fn over_http(error: &DynamicTransportError) -> Option<RemoteError> {
    Some(match http_error(error)? {
        StreamableHttpError::SessionExpired => {
            RemoteError::connection("the server ended the session").not_run()
        }
        StreamableHttpError::AuthRequired(_) => status(401, None),
        StreamableHttpError::InsufficientScope(_) => status(403, None),
        StreamableHttpError::HttpStatus(said) => status(said.status, said.retry_after.as_deref()),
        StreamableHttpError::UnexpectedServerResponse(_)
        | StreamableHttpError::UnexpectedContentType(_)
        | StreamableHttpError::Deserialize(_) => unread_answer(),
        StreamableHttpError::ResponseBodyTooLarge { max_size } => RemoteError::protocol(
            format_args!("the server sent a message of more than {max_size} bytes"),
        ),
        StreamableHttpError::Client(error) if error.is_connect() => unreachable().not_run(),
        _ => unreachable(),
    })
}

fn unread_answer() -> RemoteError {
    RemoteError::protocol("the server's response is not a JSON-RPC message")
}

/// Converts an HTTP status without a JSON-RPC response.
fn status(code: u16, retry_after: Option<&str>) -> RemoteError {
    let told = |words: &str| RemoteError::connection(format_args!("{words} (HTTP {code})"));
    match code {
        300..=399 => told("the server redirects to another URL, which is not followed").not_run(),
        401 => told("the server requires a valid token").not_run(),
        403 => told("the server denies access with this token").not_run(),
        404 | 405 | 410 => told("there is no MCP server at this URL").not_run(),
        429 => {
            let wait = retry_after.map(|wait| format!("; retry after {wait} s"));
            let wait = wait.unwrap_or_default();
            told(&format!("the server has too many requests{wait}")).not_run()
        }
        500.. => told("the server failed"),
        _ => RemoteError::protocol(format_args!("the server rejected the message (HTTP {code})")),
    }
}

/// Returns the last non-empty line of standard error.
fn last_line(words: &str) -> String {
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
