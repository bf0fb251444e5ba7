//! Builds HTTP responses.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response as HyperResponse, StatusCode};

use super::event_stream::EventReader;
use crate::server::response::JsonRpcResponse;

pub(super) type HttpResponse = HyperResponse<BoxBody<Bytes, Infallible>>;

/// The media type of a single message.
pub(super) const JSON: &str = "application/json";
/// The media type of an event stream.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The field that keeps a proxy from holding events back.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) fn json_response(status: StatusCode, response: JsonRpcResponse) -> HttpResponse {
    full_response(status, response.text.into(), JSON)
}

pub(super) fn text_response(status: StatusCode, words: &'static str) -> HttpResponse {
    full_response(status, Bytes::from_static(words.as_bytes()), "text/plain; charset=utf-8")
}

pub(super) fn bad_request(words: &'static str) -> HttpResponse {
    text_response(StatusCode::BAD_REQUEST, words)
}

pub(super) fn empty_response(status: StatusCode) -> HttpResponse {
    let mut response = HttpResponse::new(Full::default().boxed());
    *response.status_mut() = status;
    response
}

pub(super) fn method_not_allowed(allowed: &'static str) -> HttpResponse {
    let mut response = empty_response(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

pub(super) fn event_stream_response(events: EventReader) -> HttpResponse {
    let mut response = HttpResponse::new(events.boxed());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

pub(super) fn full_response(status: StatusCode, body: Bytes, kind: &'static str) -> HttpResponse {
    let mut response = HttpResponse::new(Full::new(body).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
