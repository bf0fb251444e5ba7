//! Builds HTTP responses.

use std::convert::Infallible;
use std::task::Poll;

use futures_util::FutureExt as _;
use futures_util::stream::{self, StreamExt as _};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::task::unconstrained;

use crate::fast_path::InFlightGuard;
use crate::message::MessageError;

/// The body of an answer, which may come in many pieces over a long time.
pub(super) type ResponseBody = BoxBody<Bytes, Infallible>;
pub(super) type HttpResponse = Response<ResponseBody>;

/// What messages are written in.
pub(super) const JSON: &str = "application/json";
/// What several of them are written in, one after the other.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// What keeps a proxy from holding events back.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Takes the first piece of a body where it is there already.
pub(super) fn poll_first_chunk(body: &mut ResponseBody) -> Poll<Option<Bytes>> {
    match unconstrained(body.frame()).now_or_never() {
        Some(Some(Ok(frame))) => Poll::Ready(Some(frame.into_data().unwrap_or_default())),
        Some(None) => Poll::Ready(None),
        None => Poll::Pending,
    }
}

/// A body that begins with a piece.
pub(super) fn prepend_chunk(first: Bytes, rest: ResponseBody) -> ResponseBody {
    let first = stream::iter([Ok(Frame::data(first))]);
    BodyExt::boxed(StreamBody::new(first.chain(BodyStream::new(rest))))
}

/// Keeps the request id reserved until the body is dropped.
pub(super) fn hold_until_end(body: ResponseBody, ticket: InFlightGuard) -> ResponseBody {
    body.map_frame(move |frame| {
        let _held = &ticket;
        frame
    })
    .boxed()
}

pub(super) fn error_response(fault: &MessageError) -> HttpResponse {
    let status = match fault.is_method_not_found() {
        true => StatusCode::NOT_FOUND,
        false => StatusCode::BAD_REQUEST,
    };
    full_response(status, fault.to_response().to_string().into(), JSON)
}

pub(super) fn text_response(status: StatusCode, words: &'static str) -> HttpResponse {
    full_response(status, Bytes::from_static(words.as_bytes()), "text/plain; charset=utf-8")
}

/// Whether an answer is a stream of events.
pub(super) fn is_event_stream(answer: &HttpResponse) -> bool {
    answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| *kind == EVENT_STREAM)
}

/// A stream of events.
pub(super) fn event_stream_response(body: ResponseBody) -> HttpResponse {
    let mut answer = HttpResponse::new(body);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    answer
}

pub(super) fn full_response(status: StatusCode, words: Bytes, kind: &'static str) -> HttpResponse {
    let mut answer = Response::new(Full::new(words).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
