//! JSON-RPC batches over HTTP: the responses are sent as an array if all are ready, otherwise as an
//! event stream together with notifications.

use std::future;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::StatusCode;
use hyper::body::{Bytes, Frame};
use hyper::header;
use hyper::http::request::Parts;

use super::responses::{
    EVENT_STREAM, HttpResponse, JSON, ResponseBody, error_response, event_stream_response,
    full_response,
};
use super::{HttpHandler, PrincipalKey, session_id};
use crate::json_rpc_batch;
use crate::message;
use crate::message::MessageError;

impl HttpHandler {
    /// Answers the messages of a batch, each as if it had come alone.
    pub(super) async fn handle_batch(
        self: &Arc<Self>,
        mut head: Parts,
        body: Bytes,
        owner: PrincipalKey,
    ) -> Result<HttpResponse, HttpResponse> {
        let id = session_id(&head.headers).map(str::to_owned).unwrap_or_default();
        let open = self.sessions.in_flight(&id).filter(|_| self.sessions.allows_batches(&id));
        let open = open.ok_or_else(|| error_response(&json_rpc_batch::unsupported_batch(&body)))?;
        // It was that of the whole.
        head.headers.remove(header::CONTENT_LENGTH);
        let mut answers = BatchResponses::default();
        for message in json_rpc_batch::split_batch(&body).map_err(|fault| error_response(&fault))? {
            let (answer, is_request) = match message {
                Err(fault) => (Err(error_response(&fault)), fault.has_request_id()),
                Ok(text) => {
                    let body = body.slice_ref(text.as_bytes());
                    let request = message::request_id(&body);
                    let is_request = request.is_some();
                    let answer = match request {
                        Some(id)
                            if !open.has_capacity()
                                || answers.bytes > json_rpc_batch::MAX_RESPONSE_BYTES =>
                        {
                            Err(error_response(&MessageError::too_many_requests(Some(id))))
                        }
                        _ => {
                            Box::pin(self.handle_message(head.clone(), body, owner.clone(), false))
                                .await
                        }
                    };
                    (answer, is_request)
                }
            };
            answers.add_response(answer.unwrap_or_else(|kept_out| kept_out)).await?;
            answers.has_request |= is_request;
        }
        Ok(answers.into_response())
    }
}

/// What the messages of one batch are answered.
#[derive(Default)]
struct BatchResponses {
    /// Those that are there.
    messages: Vec<Bytes>,
    /// How long they are.
    bytes: usize,
    /// Where others come from, and what goes before them.
    streams: Vec<ResponseBody>,
    has_request: bool,
}

impl BatchResponses {
    /// Takes the answer to one message; gives back one that is no message, which is that to
    /// all of them.
    async fn add_response(&mut self, answer: HttpResponse) -> Result<(), HttpResponse> {
        let kind = answer.headers().get(header::CONTENT_TYPE);
        match kind.and_then(|kind| kind.to_str().ok()) {
            Some(JSON) => {
                let Ok(body) = answer.into_body().collect().await;
                let body = body.to_bytes();
                self.bytes += body.len();
                self.messages.push(body.slice_ref(body.trim_ascii_end()));
            }
            Some(EVENT_STREAM) => self.streams.push(answer.into_body()),
            _ if answer.status().is_success() => {}
            _ => return Err(answer),
        }
        Ok(())
    }

    fn into_response(self) -> HttpResponse {
        if !self.streams.is_empty() {
            return self.into_event_stream();
        }
        let status = match (self.has_request, self.messages.is_empty()) {
            (true, _) => StatusCode::OK,
            (false, true) => StatusCode::ACCEPTED,
            (false, false) => StatusCode::BAD_REQUEST,
        };
        if self.messages.is_empty() {
            let mut nothing = full_response(status, Bytes::new(), JSON);
            nothing.headers_mut().remove(header::CONTENT_TYPE);
            return nothing;
        }
        full_response(status, [&b"["[..], &self.messages.join(&b','), b"]"].concat().into(), JSON)
    }

    fn into_event_stream(self) -> HttpResponse {
        let there = self.messages.into_iter().map(|answer| [b"data: ", &*answer, b"\n\n"].concat());
        let there = stream::iter(there).map(Bytes::from);
        let coming = stream::select_all(self.streams.into_iter().map(without_event_ids));
        let all = there.chain(coming).map(|event| Ok(Frame::data(event)));
        event_stream_response(BodyExt::boxed(StreamBody::new(all)))
    }
}

/// The events of one stream, each of which is whole, as those of several. Names with which one
/// stream could be taken up again would promise too much.
fn without_event_ids(body: ResponseBody) -> impl Stream<Item = Bytes> + Unpin {
    let events = body.into_data_stream();
    Box::pin(events.filter_map(|event| {
        let Ok(event) = event;
        future::ready(strip_event_id(&event))
    }))
}

/// An event without its name; nothing where that is all that it has.
fn strip_event_id(event: &[u8]) -> Option<Bytes> {
    let is_said = |line: &&[u8]| match line.strip_prefix(b"data:") {
        Some(data) => !data.trim_ascii().is_empty(),
        None => line.starts_with(b":"),
    };
    let lines = event.split_inclusive(|byte| *byte == b'\n').filter(is_said);
    let mut said = lines.flatten().copied().collect::<Vec<u8>>();
    if said.is_empty() {
        return None;
    }
    said.push(b'\n');
    Some(said.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_keeps_what_it_says() {
        for (event, expected) in [
            ("data: {}\n\n", Some("data: {}\n\n")),
            ("id: 1/2\nretry: 3\ndata:{}\n\n", Some("data:{}\n\n")),
            ("data: {}\nid: 1/2\n\n", Some("data: {}\n\n")),
            (":\n\n", Some(":\n\n")),
            ("data: \nid: 0\nretry: 3000\n\n", None),
            ("\n", None),
        ] {
            assert_eq!(
                strip_event_id(event.as_bytes()).as_deref(),
                expected.map(str::as_bytes),
                "{event:?}"
            );
        }
    }
}
