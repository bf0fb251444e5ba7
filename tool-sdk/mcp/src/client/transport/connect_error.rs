//! Errors of the handshake and of sending, as the caller gets them.

use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use tool_sdk_process::internal::PipedChild;

use super::decode_fallback;
use super::line_transport::ProtocolViolation;
use crate::client::remote::RemoteError;

/// A handshake that failed.
pub(super) struct ConnectError {
    pub(super) error: RemoteError,
    /// Whether the older handshake may succeed.
    pub(super) may_be_older: bool,
    /// Whether the server failed the older handshake too, and may only have been slow.
    pub(super) may_be_slow: bool,
    /// The program of the server, which may be asked again.
    pub(super) child: Option<Box<PipedChild>>,
}

impl ConnectError {
    /// The server did not answer the 2026 handshake in time.
    pub(super) fn discover_timeout() -> Self {
        let error = RemoteError::timeout("the server did not answer `server/discover` in time");
        Self { error, may_be_older: true, may_be_slow: true, child: None }
    }
}

impl From<RemoteError> for ConnectError {
    fn from(error: RemoteError) -> Self {
        Self { error, may_be_older: false, may_be_slow: false, child: None }
    }
}

/// Converts a failed handshake; `words` are the server's standard error.
pub(super) fn connect_error(
    error: ClientInitializeError,
    words: String,
    violation: &ProtocolViolation,
) -> ConnectError {
    if let Some(error) = violation.to_error() {
        return error.with_stderr(words).into();
    }
    let told = initialize_error(&error, &last_stderr_line(&words));
    // An older handshake would be rejected for the same reason.
    let needs_login = error.is_authorization_required() || told.needs_authorization;
    let may_be_slow =
        !needs_login && matches!(error, ClientInitializeError::LegacyFallbackFailed { .. });
    let may_be_older = !needs_login && !may_be_slow;
    let error = told.with_source(error).with_stderr(words);
    ConnectError { error, may_be_older, may_be_slow, child: None }
}

/// Returns the error of a handshake; `complaint` is the last line of standard error.
fn initialize_error(error: &ClientInitializeError, complaint: &str) -> RemoteError {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            initialize_error(fallback, complaint)
        }
        ClientInitializeError::ConnectionClosed(_) => {
            RemoteError::connection(format_args!("the server exited during startup{complaint}"))
        }
        ClientInitializeError::TransportError { error, .. } => classify_http_error(error)
            .unwrap_or_else(|| {
                RemoteError::connection(format_args!("the server cannot be reached{complaint}"))
            }),
        ClientInitializeError::JsonRpcError(said) => error_response(said),
        _ => RemoteError::protocol("the server's handshake violates the protocol"),
    }
}

/// The error for a JSON-RPC error response of the server.
pub(super) fn error_response(said: &ErrorData) -> RemoteError {
    decode_fallback::local_error(said).unwrap_or_else(|| {
        let (words, code) = (&said.message, said.code.0);
        RemoteError::protocol(format_args!("the server returned an error ({code}): {words}"))
    })
}

/// A message that could not be sent, or whose response could not be read.
pub(super) struct SendError {
    pub(super) error: RemoteError,
    /// Whether the session is lost, so that no other message can be sent either.
    pub(super) is_session_lost: bool,
}

/// Converts an error of sending a message.
pub(super) fn send_error(error: DynamicTransportError) -> SendError {
    let is_final = matches!(http_error(&error), Some(StreamableHttpError::SessionExpired));
    let told = classify_http_error(&error).unwrap_or_else(unreachable_error);
    SendError { error: told.with_source(error), is_session_lost: is_final }
}

fn unreachable_error() -> RemoteError {
    RemoteError::connection("the server cannot be reached")
}

type HttpError = StreamableHttpError<reqwest::Error>;

fn http_error(error: &DynamicTransportError) -> Option<&HttpError> {
    error.error.downcast_ref()
}

/// Converts an error of HTTP, if it is one.
fn classify_http_error(error: &DynamicTransportError) -> Option<RemoteError> {
    Some(match http_error(error)? {
        StreamableHttpError::SessionExpired => {
            RemoteError::connection("the server ended the session").not_run()
        }
        StreamableHttpError::AuthRequired(_) => status_to_error(401, None),
        StreamableHttpError::InsufficientScope(_) => {
            status_to_error(403, None).needs_authorization()
        }
        StreamableHttpError::HttpStatus(said) => {
            status_to_error(said.status, said.retry_after.as_deref())
        }
        StreamableHttpError::UnexpectedServerResponse(_)
        | StreamableHttpError::UnexpectedContentType(_)
        | StreamableHttpError::Deserialize(_) => unreadable_response(),
        StreamableHttpError::ResponseBodyTooLarge { max_size } => RemoteError::protocol(
            format_args!("the server sent a message of more than {max_size} bytes"),
        ),
        StreamableHttpError::Client(error) if error.is_connect() => unreachable_error().not_run(),
        _ => unreachable_error(),
    })
}

fn unreadable_response() -> RemoteError {
    RemoteError::protocol("the server's response is not a JSON-RPC message")
}

/// Converts an HTTP status without a JSON-RPC response.
fn status_to_error(code: u16, retry_after: Option<&str>) -> RemoteError {
    let told = |words: &str| RemoteError::connection(format_args!("{words} (HTTP {code})"));
    match code {
        300..=399 => told("the server redirects to another URL, which is not followed").not_run(),
        401 => told("the server requires a valid token").not_run().needs_authorization(),
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
fn last_stderr_line(words: &str) -> String {
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
