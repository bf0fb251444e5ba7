//! Beginnings that fail, and messages that do not arrive: what whoever wanted a connection is
//! told.

use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::super::remote::RemoteError;
use super::lines::Overflow;
use super::unread;

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
    let told = beginning(&error, &last_line(&words));
    Failed { error: told.because(error).complaining(words), may_be_older, may_be_slow }
}

/// Why nothing began; `complaint` is what the server said of itself last.
fn beginning(error: &ClientInitializeError, complaint: &str) -> RemoteError {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            beginning(fallback, complaint)
        }
        ClientInitializeError::ConnectionClosed(_) => {
            RemoteError::connection(format_args!("the server went away at its start{complaint}"))
        }
        ClientInitializeError::TransportError { error, .. } => {
            over_http(error).unwrap_or_else(|| {
                RemoteError::connection(format_args!("the server cannot be reached{complaint}"))
            })
        }
        ClientInitializeError::JsonRpcError(said) => no(said),
        _ => RemoteError::protocol("the server does not begin as the protocol says"),
    }
}

/// The server answered with an error, unless there was no answer that could be read.
pub(super) fn no(said: &ErrorData) -> RemoteError {
    unread::error(said).unwrap_or_else(|| {
        let (words, code) = (&said.message, said.code.0);
        RemoteError::protocol(format_args!("the server says no ({code}): {words}"))
    })
}

/// A message that did not arrive, or whose answer did not.
pub(super) struct Unsent {
    pub(super) error: RemoteError,
    /// Whether no other message will arrive either.
    pub(super) is_final: bool,
}

/// Why a message did not arrive.
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

/// What a server over HTTP did with a message, where it was one.
fn over_http(error: &DynamicTransportError) -> Option<RemoteError> {
    Some(match http_error(error)? {
        StreamableHttpError::SessionExpired => {
            RemoteError::connection("the server has ended the session").not_run()
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
    RemoteError::protocol("the server's answer is no message of the protocol")
}

/// What a server means with a status in the place of an answer.
fn status(code: u16, retry_after: Option<&str>) -> RemoteError {
    let told = |words: &str| RemoteError::connection(format_args!("{words} (HTTP {code})"));
    match code {
        300..=399 => told("the server is at another address, where nothing is sent").not_run(),
        401 => told("the server wants a token, or another one").not_run(),
        403 => told("the server does not let in who has this token").not_run(),
        404 | 405 | 410 => told("there is no such server at this address").not_run(),
        429 => {
            let wait = retry_after.map(|wait| format!(", in {wait} s at the soonest"));
            let wait = wait.unwrap_or_default();
            told(&format!("the server wants to be asked later{wait}")).not_run()
        }
        500.. => told("the server is out of order"),
        _ => RemoteError::protocol(format_args!("the server refuses the message (HTTP {code})")),
    }
}

/// The last line of what a server complained about.
fn last_line(words: &str) -> String {
    let line = words.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!(": {}", line.trim())).unwrap_or_default()
}
