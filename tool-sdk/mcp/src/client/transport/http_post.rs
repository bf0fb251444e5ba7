//! Sends a message with HTTP POST and classifies the response.
//!
//! rmcp could send it as well, but would parse a JSON body itself, with limits of its own, and drop
//! a body in an encoding that the other transports here accept. So the bodies are passed on as
//! bytes.
//!
//! **Invariant:** what is kept of a response is bounded, however long it claims to be or is.

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, mem};

use futures_util::{StreamExt as _, stream};
use memchr::memchr2;
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{Client, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpError,
};
use sse_stream::SseStream;

use super::decode_fallback;

type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

/// The longest body of an error response that is read, in bytes.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// The longest `Retry-After` value, in bytes.
const MAX_RETRY_AFTER_LEN: usize = 128;

const EVENT_STREAM_TYPE: &str = "text/event-stream";
const JSON_TYPE: &str = "application/json";
const SESSION_HEADER: &str = "mcp-session-id";

/// The session, token and headers of a request.
pub(super) struct PostHeaders {
    pub(super) session: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
}

/// The response to a message, with the id of a session that it starts.
pub(super) enum PostResponse {
    /// The server accepted the message without a response.
    Accepted,
    /// A JSON body, as bytes.
    Body(Vec<u8>, Option<String>),
    /// An SSE stream.
    Events(BoxedSseResponse, Option<String>),
    /// A JSON-RPC error in an HTTP error response.
    Error(ErrorData, Option<String>),
}

/// Sends a message; neither the body nor an event of the response may exceed `longest` bytes.
pub(super) async fn post_message(
    client: &Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    envelope: PostHeaders,
    longest: usize,
) -> Result<PostResponse> {
    let has_session = envelope.session.is_some();
    let response = send_post(client, uri, message, envelope).await?;
    let status = response.status();
    match status.as_u16() {
        202 | 204 => return Ok(PostResponse::Accepted),
        401 | 403 => return Err(auth_error(&response)),
        404 if has_session => return Err(StreamableHttpError::SessionExpired),
        429 => return Err(status_error(&response)),
        _ if status.is_success() => {}
        _ => return read_error_response(response, message, has_session).await,
    }
    let session = header_text(&response, SESSION_HEADER);
    let wants_answer = matches!(message, JsonRpcMessage::Request(_));
    if has_content_type(&response, EVENT_STREAM_TYPE) {
        Ok(PostResponse::Events(event_stream(response, longest), session))
    } else if has_content_type(&response, JSON_TYPE) {
        Ok(PostResponse::Body(read_body(response, longest).await?, session))
    } else if wants_answer {
        Err(StreamableHttpError::UnexpectedContentType(header_text(
            &response,
            CONTENT_TYPE.as_str(),
        )))
    } else {
        // Some servers send a text for people with it.
        Ok(PostResponse::Accepted)
    }
}

async fn send_post(
    client: &Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    envelope: PostHeaders,
) -> Result<Response> {
    let mut request = client.post(uri).header(ACCEPT, format!("{JSON_TYPE}, {EVENT_STREAM_TYPE}"));
    if !envelope.headers.contains_key(&CONTENT_TYPE) {
        request = request.header(CONTENT_TYPE, JSON_TYPE);
    }
    for (name, value) in envelope.headers {
        // Configured headers must not override those of the protocol.
        if matches!(name.as_str(), "accept" | SESSION_HEADER | "last-event-id") {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        request = request.header(name, value);
    }
    if let Some(session) = &envelope.session {
        request = request.header(SESSION_HEADER, &**session);
    }
    if let Some(token) = &envelope.token {
        request = request.bearer_auth(token);
    }
    let body = serde_json::to_vec(message)?;
    request.body(body).send().await.map_err(StreamableHttpError::Client)
}

/// The error for a response that asks for authorization.
fn auth_error(response: &Response) -> StreamableHttpError<reqwest::Error> {
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<_> =
        challenges.map(|header| String::from_utf8_lossy(header.as_bytes())).collect();
    let challenges = (!challenges.is_empty()).then(|| challenges.join(", "));
    match (response.status().as_u16(), challenges) {
        (401, Some(how)) => StreamableHttpError::AuthRequired(AuthRequiredError::new(how)),
        (_, Some(how)) => {
            StreamableHttpError::InsufficientScope(InsufficientScopeError::new(how, None))
        }
        (_, None) => status_error(response),
    }
}

fn status_error(response: &Response) -> StreamableHttpError<reqwest::Error> {
    let wait = header_text(response, RETRY_AFTER.as_str())
        .filter(|wait| wait.len() <= MAX_RETRY_AFTER_LEN);
    HttpStatusError::new(response.status().as_u16(), wait).into()
}

/// Reads the body of an error response.
async fn read_error_response(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<PostResponse> {
    let status = response.status();
    let by_status = status_error(&response);
    let session = header_text(&response, SESSION_HEADER);
    let said = match has_content_type(&response, JSON_TYPE) {
        true => read_body(response, MAX_ERROR_BODY_BYTES)
            .await
            .ok()
            .and_then(|body| parse_error_body(&body)),
        false => None,
    };
    // A server that does not know `server/discover` mostly answers with an error without an id. It is
    // passed on as a response, so that the older handshake is tried.
    if is_discover_request(message) && !has_session && status.is_client_error() {
        let words = || format!("`server/discover` failed with the status {status}");
        let said = said.unwrap_or_else(|| ErrorData::invalid_request(words(), None));
        return Ok(PostResponse::Error(said, None));
    }
    said.map(|said| PostResponse::Error(said, session)).ok_or(by_status)
}

/// Parses a body as a JSON-RPC error.
fn parse_error_body(body: &[u8]) -> Option<ErrorData> {
    match decode_fallback::decode_message(decode_fallback::strip_byte_order_mark(body)) {
        Ok(JsonRpcMessage::Error(said)) => Some(said.error),
        _ => None,
    }
}

/// Whether it is `server/discover`, which only 2026 servers know.
fn is_discover_request(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        JsonRpcMessage::Request(asked) if matches!(asked.request, ClientRequest::DiscoverRequest(_))
    )
}

fn header_text(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Whether the body has this content type, with any parameters.
fn has_content_type(response: &Response, kind: &str) -> bool {
    let said = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    said.get(..kind.len()).is_some_and(|said| said.eq_ignore_ascii_case(kind.as_bytes()))
}

/// Reads a body up to a limit.
async fn read_body(mut response: Response, longest: usize) -> Result<Vec<u8>> {
    let too_long = || StreamableHttpError::ResponseBodyTooLarge { max_size: longest };
    let said = response.content_length().unwrap_or_default();
    if usize::try_from(said).map_or(true, |said| said > longest) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    while let Some(more) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if more.len() > longest - body.len() {
            return Err(too_long());
        }
        body.extend_from_slice(&more);
    }
    Ok(body)
}

/// Returns the events of a body, until one of them exceeds the limit.
fn event_stream(response: Response, longest: usize) -> BoxedSseResponse {
    let begun = Some((response, EventSizeCounter::default()));
    let parts = stream::unfold(begun, move |body| async move {
        let (mut response, mut measure) = body?;
        match response.chunk().await {
            Ok(Some(part)) if measure.add_bytes(&part) > longest => {
                Some((Err(BodyError::TooLong), None))
            }
            Ok(Some(part)) => Some((Ok(part), Some((response, measure)))),
            Ok(None) => None,
            Err(error) => Some((Err(BodyError::Transfer(error)), None)),
        }
    });
    SseStream::from_bytes_stream(parts).boxed()
}

/// Whether the stream ended because an event was too long.
pub(super) fn is_too_long(error: &SseError) -> bool {
    let SseError::Body(error) = error else { return false };
    matches!(error.downcast_ref(), Some(BodyError::TooLong))
}

/// Why a stream of events ended.
#[derive(Debug)]
enum BodyError {
    TooLong,
    Transfer(reqwest::Error),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("an event is too long"),
            Self::Transfer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLong => None,
            Self::Transfer(error) => Some(error),
        }
    }
}

/// Counts how many bytes have to be buffered until the next event of a stream is complete.
#[derive(Default)]
struct EventSizeCounter {
    /// The length of the event before this line, without comments.
    event_len: usize,
    line_len: usize,
    is_comment: bool,
    /// Whether a line feed would only complete a CRLF.
    skip_line_feed: bool,
}

impl EventSizeCounter {
    /// Counts a chunk; returns the most that had to be buffered meanwhile.
    fn add_bytes(&mut self, mut part: &[u8]) -> usize {
        let mut most = 0;
        while let Some(first) = part.first() {
            if mem::take(&mut self.skip_line_feed) && *first == b'\n' {
                part = &part[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', part);
            if self.line_len == 0 {
                self.is_comment = *first == b':';
            }
            self.line_len += end.unwrap_or(part.len());
            most = most.max(self.event_len + self.line_len);
            let Some(end) = end else { break };
            self.event_len = match self.line_len {
                0 => 0,
                _ if self.is_comment => self.event_len,
                line => self.event_len + line + 1,
            };
            self.line_len = 0;
            self.skip_line_feed = part[end] == b'\r';
            part = &part[end + 1..];
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_bytes_of_the_longest_event() {
        for (stream, expected) in [
            ("data: 1\n\ndata: 22\n\n", 9),
            ("data: 1\ndata: 2\n\ndata: 3\n\n", 16),
            ("data: 1\r\ndata: 2\r\n\r\n", 16),
            ("data: 1\rdata: 2\r\r", 16),
            (": 1\n: 2\n: 3\n: 4\n", 3),
            ("data: 1\n: a comment\ndata: 2\n\n", 19),
            ("data: 1\n\n\n\nid\n\n", 8),
            ("no end", 6),
            ("", 0),
        ] {
            assert_eq!(
                EventSizeCounter::default().add_bytes(stream.as_bytes()),
                expected,
                "{stream:?}"
            );
            let mut measure = EventSizeCounter::default();
            let single = stream.as_bytes().iter().map(|byte| measure.add_bytes(&[*byte]));
            assert_eq!(single.max().unwrap_or_default(), expected, "{stream:?}");
        }
    }
}
