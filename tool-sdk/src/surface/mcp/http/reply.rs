//! What a request over HTTP is answered, by the door or through it.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

use super::super::direct::Ticket;
use super::super::message::Fault;
use super::guard::Refused;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// What messages are written in.
pub(super) const JSON: &str = "application/json";
/// What several of them are written in, one after the other.
pub(super) const EVENTS: &str = "text/event-stream";

/// A body that holds the id of its request for as long as somebody waits for it.
pub(super) fn until_its_end(
    body: BoxBody<Bytes, Infallible>,
    ticket: Ticket,
) -> BoxBody<Bytes, Infallible> {
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

pub(super) fn told(status: StatusCode, words: Bytes, kind: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(words).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
