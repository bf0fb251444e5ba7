//! How a message is sent to a server over HTTP, and what the server makes of it.
//!
//! The library could send it, too, and would then read a body that is no stream of events by
//! itself: with limits of its own, and as nothing where it is written in a way that every other
//! transport here understands. So the bodies are handed on as they came.
//!
//! **Invariant:** what is kept of an answer is bounded, however long it says to be or is.

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

use super::unread;

type Result<T> = std::result::Result<T, StreamableHttpError<reqwest::Error>>;

/// The longest refusal that is read; a server may say more beside its status than anybody needs.
const LONGEST_REFUSAL: usize = 64 << 10;

/// The longest wait that a server may ask for, as it is written.
const LONGEST_WAIT: usize = 128;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: &str = "mcp-session-id";

/// What belongs to a message beside itself.
pub(super) struct Envelope {
    pub(super) session: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
}

/// What a server says to a message, with the name of a session where it begins one.
pub(super) enum Answer {
    /// That it has it.
    Accepted,
    /// All at once, as it came.
    Whole(Vec<u8>, Option<String>),
    /// In a stream.
    Events(BoxedSseResponse, Option<String>),
    /// No.
    Refused(ErrorData, Option<String>),
}

/// Sends a message; no body and no event of the answer is longer than `longest`.
pub(super) async fn post(
    client: &Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    envelope: Envelope,
    longest: usize,
) -> Result<Answer> {
    let has_session = envelope.session.is_some();
    let response = send(client, uri, message, envelope).await?;
    let status = response.status();
    match status.as_u16() {
        202 | 204 => return Ok(Answer::Accepted),
        401 | 403 => return Err(not_let_in(&response)),
        404 if has_session => return Err(StreamableHttpError::SessionExpired),
        429 => return Err(only_a_status(&response)),
        _ if status.is_success() => {}
        _ => return refused(response, message, has_session).await,
    }
    let session = header(&response, SESSION);
    let wants_answer = matches!(message, JsonRpcMessage::Request(_));
    if is_of(&response, EVENTS) {
        Ok(Answer::Events(events(response, longest), session))
    } else if is_of(&response, JSON) {
        Ok(Answer::Whole(whole(response, longest).await?, session))
    } else if wants_answer {
        Err(StreamableHttpError::UnexpectedContentType(header(&response, CONTENT_TYPE.as_str())))
    } else {
        // Some say more than that they have it, for people to read.
        Ok(Answer::Accepted)
    }
}

async fn send(
    client: &Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    envelope: Envelope,
) -> Result<Response> {
    let mut request = client.post(uri).header(ACCEPT, format!("{JSON}, {EVENTS}"));
    if !envelope.headers.contains_key(&CONTENT_TYPE) {
        request = request.header(CONTENT_TYPE, JSON);
    }
    for (name, value) in envelope.headers {
        // What the protocol says with a header is not for others to say.
        if matches!(name.as_str(), "accept" | SESSION | "last-event-id") {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        request = request.header(name, value);
    }
    if let Some(session) = &envelope.session {
        request = request.header(SESSION, &**session);
    }
    if let Some(token) = &envelope.token {
        request = request.bearer_auth(token);
    }
    let body = serde_json::to_vec(message)?;
    request.body(body).send().await.map_err(StreamableHttpError::Client)
}

/// A server that wants to know first who calls.
fn not_let_in(response: &Response) -> StreamableHttpError<reqwest::Error> {
    match (response.status().as_u16(), header(response, WWW_AUTHENTICATE.as_str())) {
        (401, Some(how)) => StreamableHttpError::AuthRequired(AuthRequiredError::new(how)),
        (_, Some(how)) => {
            StreamableHttpError::InsufficientScope(InsufficientScopeError::new(how, None))
        }
        (_, None) => only_a_status(response),
    }
}

fn only_a_status(response: &Response) -> StreamableHttpError<reqwest::Error> {
    let wait = header(response, RETRY_AFTER.as_str()).filter(|wait| wait.len() <= LONGEST_WAIT);
    HttpStatusError::new(response.status().as_u16(), wait).into()
}

/// What there is beside a status that means no.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<Answer> {
    let status = response.status();
    let by_status = only_a_status(&response);
    let session = header(&response, SESSION);
    let said = match is_of(&response, JSON) {
        true => whole(response, LONGEST_REFUSAL).await.ok().and_then(|body| no_in(&body)),
        false => None,
    };
    // Whoever does not know the question refuses it as best they can, mostly without saying
    // whose it is; without an answer nobody would learn that an older beginning may go better.
    if is_first_question(message) && !has_session && status.is_client_error() {
        let words = || format!("the question is refused with the status {status}");
        let said = said.unwrap_or_else(|| ErrorData::invalid_request(words(), None));
        return Ok(Answer::Refused(said, None));
    }
    said.map(|said| Answer::Refused(said, session)).ok_or(by_status)
}

/// The error that a body is, if it is one.
fn no_in(body: &[u8]) -> Option<ErrorData> {
    match unread::read(unread::without_mark(body)) {
        Ok(JsonRpcMessage::Error(said)) => Some(said.error),
        _ => None,
    }
}

/// Whether it is the question that only servers of today understand.
fn is_first_question(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        JsonRpcMessage::Request(asked) if matches!(asked.request, ClientRequest::DiscoverRequest(_))
    )
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Whether the body is of that kind, whatever else is said of it.
fn is_of(response: &Response, kind: &str) -> bool {
    let said = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    said.get(..kind.len()).is_some_and(|said| said.eq_ignore_ascii_case(kind.as_bytes()))
}

/// The whole body.
async fn whole(mut response: Response, longest: usize) -> Result<Vec<u8>> {
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

/// The events of a body, until one of them is too long.
fn events(response: Response, longest: usize) -> BoxedSseResponse {
    let begun = Some((response, Measure::default()));
    let parts = stream::unfold(begun, move |body| async move {
        let (mut response, mut measure) = body?;
        match response.chunk().await {
            Ok(Some(part)) if measure.add(&part) > longest => Some((Err(Broken::TooLong), None)),
            Ok(Some(part)) => Some((Ok(part), Some((response, measure)))),
            Ok(None) => None,
            Err(error) => Some((Err(Broken::Off(error)), None)),
        }
    });
    SseStream::from_bytes_stream(parts).boxed()
}

/// Whether this is why no more events come.
pub(super) fn is_too_long(error: &SseError) -> bool {
    let SseError::Body(error) = error else { return false };
    matches!(error.downcast_ref(), Some(Broken::TooLong))
}

/// Why no more events come.
#[derive(Debug)]
enum Broken {
    TooLong,
    Off(reqwest::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("an event is too long"),
            Self::Off(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Broken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLong => None,
            Self::Off(error) => Some(error),
        }
    }
}

/// How much has to be kept of a stream of events until the next of them is whole.
#[derive(Default)]
struct Measure {
    /// The lines of the event before this one, without comments.
    lines: usize,
    line: usize,
    is_comment: bool,
    /// Whether a line feed would only be the rest of an end of a line.
    may_be_rest: bool,
}

impl Measure {
    /// Counts what came; gives the most that had to be kept meanwhile.
    fn add(&mut self, mut part: &[u8]) -> usize {
        let mut most = 0;
        while let Some(first) = part.first() {
            if mem::take(&mut self.may_be_rest) && *first == b'\n' {
                part = &part[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', part);
            if self.line == 0 {
                self.is_comment = *first == b':';
            }
            self.line += end.unwrap_or(part.len());
            most = most.max(self.lines + self.line);
            let Some(end) = end else { break };
            self.lines = match self.line {
                0 => 0,
                _ if self.is_comment => self.lines,
                line => self.lines + line + 1,
            };
            self.line = 0;
            self.may_be_rest = part[end] == b'\r';
            part = &part[end + 1..];
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_counted_than_has_to_be_kept() {
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
            assert_eq!(Measure::default().add(stream.as_bytes()), expected, "{stream:?}");
            let mut measure = Measure::default();
            let single = stream.as_bytes().iter().map(|byte| measure.add(&[*byte]));
            assert_eq!(single.max().unwrap_or_default(), expected, "{stream:?}");
        }
    }
}
