//! Messages that came in one body, and their answers, which leave in one: as a list where all
//! of them are there at once, and otherwise as a stream of events, which carries whatever else
//! is said while calls run.

use std::future;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::StatusCode;
use hyper::body::{Bytes, Frame};
use hyper::header;
use hyper::http::request::Parts;

use super::super::batch;
use super::super::message::{self, Fault};
use super::reply::{Answer, EVENTS, JSON, Said, events, told, wrong};
use super::{Door, Owner, session};

impl Door {
    /// Answers the messages of a batch, each as if it had come alone.
    pub(super) async fn together(
        self: &Arc<Self>,
        mut head: Parts,
        body: Bytes,
        owner: Owner,
    ) -> Result<Answer, Answer> {
        let id = session(&head.headers).map(str::to_owned).unwrap_or_default();
        let open = self.sessions.asked(&id).filter(|_| self.sessions.takes_batches(&id));
        let open = open.ok_or_else(|| wrong(&batch::unknown(&body)))?;
        // It was that of the whole.
        head.headers.remove(header::CONTENT_LENGTH);
        let mut answers = Answers::default();
        for message in batch::apart(&body).map_err(|fault| wrong(&fault))? {
            let (answer, is_request) = match message {
                Err(fault) => (Err(wrong(&fault)), fault.is_of_request()),
                Ok(text) => {
                    let body = body.slice_ref(text.as_bytes());
                    let request = message::request(&body);
                    let is_request = request.is_some();
                    let answer = match request {
                        Some(id) if !open.has_room() || answers.bytes > batch::MOST_BYTES => {
                            Err(wrong(&Fault::crowded(Some(id))))
                        }
                        _ => Box::pin(self.single(head.clone(), body, owner.clone(), false)).await,
                    };
                    (answer, is_request)
                }
            };
            answers.add(answer.unwrap_or_else(|kept_out| kept_out)).await?;
            answers.has_request |= is_request;
        }
        Ok(answers.whole())
    }
}

/// What the messages of one batch are answered.
#[derive(Default)]
struct Answers {
    /// Those that are there.
    there: Vec<Bytes>,
    /// How long they are.
    bytes: usize,
    /// Where others come from, and what goes before them.
    coming: Vec<Said>,
    has_request: bool,
}

impl Answers {
    /// Takes the answer to one message; gives back one that is no message, which is that to
    /// all of them.
    async fn add(&mut self, answer: Answer) -> Result<(), Answer> {
        let kind = answer.headers().get(header::CONTENT_TYPE);
        match kind.and_then(|kind| kind.to_str().ok()) {
            Some(JSON) => {
                let Ok(body) = answer.into_body().collect().await;
                let body = body.to_bytes();
                self.bytes += body.len();
                self.there.push(body.slice_ref(body.trim_ascii_end()));
            }
            Some(EVENTS) => self.coming.push(answer.into_body()),
            _ if answer.status().is_success() => {}
            _ => return Err(answer),
        }
        Ok(())
    }

    fn whole(self) -> Answer {
        if !self.coming.is_empty() {
            return self.stream();
        }
        let status = match (self.has_request, self.there.is_empty()) {
            (true, _) => StatusCode::OK,
            (false, true) => StatusCode::ACCEPTED,
            (false, false) => StatusCode::BAD_REQUEST,
        };
        if self.there.is_empty() {
            let mut nothing = told(status, Bytes::new(), JSON);
            nothing.headers_mut().remove(header::CONTENT_TYPE);
            return nothing;
        }
        told(status, [&b"["[..], &self.there.join(&b','), b"]"].concat().into(), JSON)
    }

    fn stream(self) -> Answer {
        let there = self.there.into_iter().map(|answer| [b"data: ", &*answer, b"\n\n"].concat());
        let there = stream::iter(there).map(Bytes::from);
        let coming = stream::select_all(self.coming.into_iter().map(nameless));
        let all = there.chain(coming).map(|event| Ok(Frame::data(event)));
        events(BodyExt::boxed(StreamBody::new(all)))
    }
}

/// The events of one stream, each of which is whole, as those of several. Names with which one
/// stream could be taken up again would promise too much.
fn nameless(body: Said) -> impl Stream<Item = Bytes> + Unpin {
    let events = body.into_data_stream();
    Box::pin(events.filter_map(|event| {
        let Ok(event) = event;
        future::ready(bare(&event))
    }))
}

/// An event without its name; nothing where that is all that it has.
fn bare(event: &[u8]) -> Option<Bytes> {
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
            assert_eq!(bare(event.as_bytes()).as_deref(), expected.map(str::as_bytes), "{event:?}");
        }
    }
}
