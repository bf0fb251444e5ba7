//! Streams of events that were lost on their way, and taken up again behind the last event that
//! arrived.
//!
//! The answers to requests are on [tapes](super::tapes). What belongs to no request is kept by
//! rmcp, which takes an event that it does not know for the end of a stream; here it is told.

use std::sync::Arc;
use std::task::Poll;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;

use super::head::SESSION;
use super::reply::{Answer, after, at_once, events, is_stream, said};
use super::tape::Name;
use super::{Door, Owner};

/// The name under which a head says which event came last.
pub(super) const LAST: HeaderName = HeaderName::from_static("last-event-id");

impl Door {
    /// Goes on with a stream of a session behind its last event.
    pub(super) async fn again(
        self: &Arc<Self>,
        head: Parts,
        body: Bytes,
        owner: Owner,
    ) -> Result<Answer, Answer> {
        let last = last(&head.headers).ok_or_else(unknown)?;
        if let Some(stream) = last.stream {
            let session = head.headers.get(SESSION).map(HeaderValue::as_bytes).unwrap_or_default();
            let rest = self.tapes.listen_after(session, stream, last.place);
            return rest.map(events).ok_or_else(unknown);
        }
        let answer = self.pass(head, body, owner).await?;
        if !is_stream(&answer) {
            return Ok(answer);
        }
        let (head, mut rest) = answer.into_parts();
        match at_once(&mut rest) {
            Poll::Ready(None) => return Err(unknown()),
            // The last one is said again.
            Poll::Ready(Some(first)) if Name::of(&first) != Some(last) => rest = after(first, rest),
            Poll::Ready(Some(_)) | Poll::Pending => {}
        }
        Ok(Answer::from_parts(head, rest))
    }
}

fn last(headers: &HeaderMap) -> Option<Name> {
    let mut all = headers.get_all(LAST).iter();
    let (Some(last), None) = (all.next(), all.next()) else { return None };
    Name::read(last.to_str().ok()?)
}

/// Not 404, which is that the session has ended.
fn unknown() -> Answer {
    said(StatusCode::BAD_REQUEST, "there is no such event, or it is too long ago")
}
