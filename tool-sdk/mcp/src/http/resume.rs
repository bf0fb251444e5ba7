//! Resumes an event stream after the last event that the client received.
//!
//! Responses to requests are read from the [event logs](super::event_logs). Streams without a
//! request are resumed by rmcp, which treats an unknown event id as the end of the stream; here it
//! is an error.

use std::sync::Arc;
use std::task::Poll;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;

use super::event_log::EventId;
use super::request_head::SESSION_ID;
use super::responses::{
    HttpResponse, event_stream_response, is_event_stream, poll_first_chunk, prepend_chunk,
    text_response,
};
use super::{HttpHandler, PrincipalKey};

/// The name under which a head says which event came last.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl HttpHandler {
    /// Goes on with a stream of a session behind its last event.
    pub(super) async fn resume_stream(
        self: &Arc<Self>,
        head: Parts,
        body: Bytes,
        owner: PrincipalKey,
    ) -> Result<HttpResponse, HttpResponse> {
        let last = last_event_id(&head.headers).ok_or_else(unknown_event)?;
        if let Some(stream) = last.stream {
            let session =
                head.headers.get(SESSION_ID).map(HeaderValue::as_bytes).unwrap_or_default();
            let rest = self.event_logs.read_after(session, stream, last.index);
            return rest.map(event_stream_response).ok_or_else(unknown_event);
        }
        let answer = self.forward_to_rmcp(head, body, owner).await?;
        if !is_event_stream(&answer) {
            return Ok(answer);
        }
        let (head, mut rest) = answer.into_parts();
        match poll_first_chunk(&mut rest) {
            Poll::Ready(None) => return Err(unknown_event()),
            // The last one is said again.
            Poll::Ready(Some(first)) if EventId::from_event(&first) != Some(last) => {
                rest = prepend_chunk(first, rest)
            }
            Poll::Ready(Some(_)) | Poll::Pending => {}
        }
        Ok(HttpResponse::from_parts(head, rest))
    }
}

fn last_event_id(headers: &HeaderMap) -> Option<EventId> {
    let mut all = headers.get_all(LAST_EVENT_ID).iter();
    let (Some(last), None) = (all.next(), all.next()) else { return None };
    EventId::parse(last.to_str().ok()?)
}

/// Not 404, which is that the session has ended.
fn unknown_event() -> HttpResponse {
    text_response(StatusCode::BAD_REQUEST, "there is no such event, or it is too long ago")
}
