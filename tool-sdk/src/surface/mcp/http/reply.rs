//! What a request over HTTP is answered, by the door or through it.

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

use super::super::direct::Ticket;
use super::super::message::Fault;
use super::guard::Refused;

/// The body of an answer, which may come in many pieces over a long time.
pub(super) type Said = BoxBody<Bytes, Infallible>;
pub(super) type Answer = Response<Said>;

/// What messages are written in.
pub(super) const JSON: &str = "application/json";
/// What several of them are written in, one after the other.
pub(super) const EVENTS: &str = "text/event-stream";

/// What keeps a proxy from holding events back.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Takes the first piece of a body where it is there already.
pub(super) fn at_once(body: &mut Said) -> Poll<Option<Bytes>> {
    match unconstrained(body.frame()).now_or_never() {
        Some(Some(Ok(frame))) => Poll::Ready(Some(frame.into_data().unwrap_or_default())),
        Some(None) => Poll::Ready(None),
        None => Poll::Pending,
    }
}

/// A body that begins with a piece.
pub(super) fn after(first: Bytes, rest: Said) -> Said {
    let first = stream::iter([Ok(Frame::data(first))]);
    BodyExt::boxed(StreamBody::new(first.chain(BodyStream::new(rest))))
}

/// A body that holds the id of its request for as long as somebody waits for it.
pub(super) fn until_its_end(body: Said, ticket: Ticket) -> Said {
    body.map_frame(move |frame| {
        let _held = &ticket;
        frame
    })
    .boxed()
}

pub(super) fn wrong(fault: &Fault) -> Answer {
    let status = match fault.is_unknown() {
        true => StatusCode::NOT_FOUND,
        false => StatusCode::BAD_REQUEST,
    };
    told(status, fault.answer().to_string().into(), JSON)
}

pub(super) fn refuse(refused: Refused) -> Answer {
    let mut answer = said(refused.status(), refused.words());
    if refused == Refused::Token {
        let value = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    answer
}

pub(super) fn said(status: StatusCode, words: &'static str) -> Answer {
    told(status, Bytes::from_static(words.as_bytes()), "text/plain; charset=utf-8")
}

/// Whether an answer is a stream of events.
pub(super) fn is_stream(answer: &Answer) -> bool {
    answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| *kind == EVENTS)
}

/// A stream of events.
pub(super) fn events(body: Said) -> Answer {
    let mut answer = Answer::new(body);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    answer
}

pub(super) fn told(status: StatusCode, words: Bytes, kind: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(words).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
