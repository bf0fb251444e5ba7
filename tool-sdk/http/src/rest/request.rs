//! What handlers read from a request: the JSON body, and the headers of the API.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tool_sdk_core::ErrorKind;

use super::problem::ProblemDetails;

/// The maximum size of a body.
pub(super) const MAX_BODY_BYTES: usize = 1024 * 1024;
/// How long a client may take to send it.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of a header of the API.
const MAX_HEADER_BYTES: usize = 256;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("session-id");
pub(super) const PROJECT_ID: HeaderName = HeaderName::from_static("project-id");
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(super) const PREFER: HeaderName = HeaderName::from_static("prefer");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The body of a request as JSON text, at most 1 MiB. A tool's own parser reads it, so it is not
/// parsed here. An empty body is an empty object.
#[derive(Debug)]
pub(super) struct JsonText(pub(super) String);

impl<S: Sync> FromRequest<S> for JsonText {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, _: &S) -> Result<Self, ProblemDetails> {
        let (parts, body) = request.into_parts();
        let has_type = parts.headers.contains_key(CONTENT_TYPE);
        let is_empty = parts.headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
        if !is_json(&parts.headers) && (has_type || !is_empty) {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let error = "the body must be JSON";
            return Err(ProblemDetails::new(status, ErrorKind::InvalidArgs.as_str(), error)
                .suggest("send `Content-Type: application/json`"));
        }
        let text = read_body(body).await?;
        Ok(Self(if text.is_empty() { "{}".to_owned() } else { text }))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(mime) = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()) else {
        return false;
    };
    let mime = mime.split(';').next().unwrap_or_default().trim();
    mime.eq_ignore_ascii_case("application/json")
}

async fn read_body(body: Body) -> Result<String, ProblemDetails> {
    let category = ErrorKind::InvalidArgs.as_str();
    let read = timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect()).await;
    let bytes = match read {
        Err(_) => {
            let error = "the body did not arrive within 10 seconds";
            return Err(ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, category, error));
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let error = "the body is longer than 1 MiB";
            return Err(ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, category, error));
        }
        Ok(Err(_)) => return Err(ProblemDetails::bad_request("the body is incomplete")),
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    String::from_utf8(bytes.into())
        .map_err(|_| ProblemDetails::bad_request("the body is not UTF-8"))
}

/// The body of a request that is not a call: a JSON object without unknown members.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, state: &S) -> Result<Self, ProblemDetails> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        // serde would also read the members from an array, in order.
        if !text.trim_start().starts_with('{') {
            return Err(ProblemDetails::bad_request("the body must be a JSON object"));
        }
        let parsed = serde_json::from_str(&text);
        parsed.map(Self).map_err(|error| ProblemDetails::bad_request(format!("the body: {error}")))
    }
}

/// How the client wants the answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyForm {
    /// The result, when it is there.
    Result,
    /// Its events, and the result as the last one.
    EventStream,
    /// The result if it is there within this time, or else the place of the running call.
    Async(Duration),
}

impl<S: Sync> FromRequestParts<S> for ReplyForm {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemDetails> {
        let headers = &parts.headers;
        let preferences = headers.get_all(PREFER).iter().filter_map(|it| it.to_str().ok());
        let preferences: Vec<_> =
            preferences.flat_map(|it| it.split([',', ';'])).map(str::trim).collect();
        if accepts_event_stream(headers) {
            return Ok(Self::EventStream);
        }
        if !preferences.iter().any(|it| it.eq_ignore_ascii_case("respond-async")) {
            return Ok(Self::Result);
        }
        let seconds = preferences.iter().find_map(|it| it.strip_prefix("wait=")?.parse().ok());
        Ok(Self::Async(Duration::from_secs(seconds.unwrap_or(0).min(60))))
    }
}

pub(super) fn accepts_event_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let mut types = accepted.flat_map(|it| it.split(','));
    types.any(|it| it.split(';').next().is_some_and(|it| it.trim() == "text/event-stream"))
}

/// Returns a header of the API: visible ASCII characters, at most 256.
pub(super) fn header_text(
    headers: &HeaderMap,
    name: &HeaderName,
) -> Result<Option<String>, ProblemDetails> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return match headers.contains_key(name) {
            true => Err(ProblemDetails::bad_request(format!("`{name}` is sent twice"))),
            false => Ok(None),
        };
    };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty()
        || text.len() > MAX_HEADER_BYTES
        || !text.bytes().all(|it| it.is_ascii_graphic())
    {
        let error = format!("`{name}` must have 1 to {MAX_HEADER_BYTES} visible ASCII characters");
        return Err(ProblemDetails::bad_request(error));
    }
    Ok(Some(text.to_owned()))
}
