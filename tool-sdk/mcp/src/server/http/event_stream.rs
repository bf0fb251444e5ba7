//! One event stream (SSE) to a client: the messages of one request, or those of a session that
//! belong to no request.
//!
//! The events of a session are numbered and kept for a while, so that a client that loses the
//! connection can resume the stream after the last event that it received.
//!
//! **Invariant:** an event is sent to one reader, the latest one; what is kept is bounded except
//! for the last event.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::Notify;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::server::message_sink::ClientDisconnected;
use crate::server::request_context::CancelOnDrop;

/// How many events are kept, and how many bytes of them.
const MAX_EVENTS: usize = 64;
const MAX_BYTES: usize = 256 * 1024;
/// How long events are kept after the end of the stream.
const RETENTION: Duration = Duration::from_secs(60);
/// The interval of comments. Many proxies close a response that is idle for a minute.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_COMMENT: &[u8] = b":\n\n";

/// How the events of a stream are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventNames {
    /// Not at all: the stream cannot be resumed.
    None,
    /// By their index, and the number of their request.
    OfRequest(u64),
    /// By their index in the stream of the session.
    OfSession,
}

/// The id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) index: u64,
    /// The number of the request; `None` for the stream of the session.
    pub(super) request: Option<u64>,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (index, request) = match text.split_once('/') {
            Some((index, request)) => (index, Some(request.parse().ok()?)),
            None => (text, None),
        };
        Some(Self { index: index.parse().ok()?, request })
    }
}

/// A stream of events.
pub(crate) struct EventStream {
    names: EventNames,
    state: Mutex<StreamState>,
    /// Wakes senders when a reader has taken an event or is gone.
    capacity: Notify,
    /// Wakes the handler that waits for the first message.
    first_message: Notify,
}

#[derive(Default)]
struct StreamState {
    /// The events that are kept, with their indexes.
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next_index: u64,
    /// The index of the first event that no reader has received.
    unread: u64,
    has_message: bool,
    ended: Option<Instant>,
    /// The number of the latest reader.
    reader: u64,
    is_read: bool,
    waker: Option<Waker>,
}

impl EventStream {
    /// Returns a stream. That of a request is about to be read, that of a session may never be.
    pub(super) fn new(names: EventNames) -> Arc<Self> {
        let is_of_session = names == EventNames::OfSession;
        let state = StreamState {
            is_read: !is_of_session,
            // Clients resume after event 0 to read the stream of a session from its start.
            next_index: u64::from(is_of_session),
            ..StreamState::default()
        };
        Arc::new(Self {
            names,
            state: Mutex::new(state),
            capacity: Notify::new(),
            first_message: Notify::new(),
        })
    }

    /// Sends a message, which is JSON in one line. Waits while a reader lags behind; without a
    /// reader the message is only kept.
    pub(crate) async fn send(&self, message: &[u8]) -> Result<(), ClientDisconnected> {
        loop {
            let capacity = self.capacity.notified();
            {
                let mut state = self.lock_state();
                if state.ended.is_some() {
                    return Err(ClientDisconnected);
                }
                if state.has_capacity() {
                    state.has_message = true;
                    state.push(self.names, b"data: ", message, b"\n");
                    break;
                }
            }
            capacity.await;
        }
        self.first_message.notify_one();
        Ok(())
    }

    /// Sends the event that tells the client how to resume the stream. Clients before 2025-11-25
    /// would take it for a message.
    pub(super) fn send_resume_hint(&self) {
        self.lock_state().push(self.names, b"data: \nretry: 3000\n", b"", b"");
    }

    /// Ends the stream: readers end after the last event.
    pub(super) fn close(&self) {
        let mut state = self.lock_state();
        state.ended.get_or_insert_with(Instant::now);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.capacity.notify_waiters();
    }

    /// Returns true if a message was sent.
    pub(super) fn has_message(&self) -> bool {
        self.lock_state().has_message
    }

    /// Waits until a message was sent.
    pub(super) async fn wait_for_message(&self) {
        while !self.has_message() {
            self.first_message.notified().await;
        }
    }

    /// Reads the events that no reader has received, and all further ones.
    pub(super) fn read(self: &Arc<Self>) -> EventReader {
        let mut state = self.lock_state();
        let next = state.unread;
        state.new_reader(self, next)
    }

    /// Reads the events after one that was received; `None` if there was no such event.
    pub(super) fn read_after(self: &Arc<Self>, index: u64) -> Option<EventReader> {
        let mut state = self.lock_state();
        (index < state.next_index).then(|| state.new_reader(self, index + 1))
    }

    /// Returns when the stream ended.
    pub(super) fn ended_at(&self) -> Option<Instant> {
        self.lock_state().ended
    }

    /// Returns the size of the events that are kept.
    pub(super) fn byte_len(&self) -> usize {
        self.lock_state().bytes
    }

    /// Returns true if the stream ended too long ago to be resumed.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.ended_at().is_some_and(|ended| now.saturating_duration_since(ended) > RETENTION)
    }

    fn lock_state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamState {
    /// Returns true if no reader has to catch up before the next event.
    fn has_capacity(&self) -> bool {
        let unread = self.events.iter().filter(|(index, _)| *index >= self.unread);
        let (count, bytes) =
            unread.fold((0, 0), |(count, bytes), (_, event)| (count + 1, bytes + event.len()));
        !self.is_read || (count < MAX_EVENTS && bytes < MAX_BYTES)
    }

    fn push(&mut self, names: EventNames, before: &[u8], message: &[u8], after: &[u8]) {
        let index = self.next_index;
        self.next_index += 1;
        let id = match names {
            EventNames::None => String::new(),
            EventNames::OfRequest(request) => format!("id: {index}/{request}\n"),
            EventNames::OfSession => format!("id: {index}\n"),
        };
        let event: Bytes = [before, message, after, id.as_bytes(), b"\n"].concat().into();
        self.bytes += event.len();
        self.events.push_back((index, event));
        while self.events.len() > 1
            && (self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES)
            && (!self.is_read || self.events[0].0 < self.unread)
        {
            let first = self.events.pop_front();
            self.bytes -= first.map_or(0, |(_, event)| event.len());
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn new_reader(&mut self, stream: &Arc<EventStream>, next: u64) -> EventReader {
        self.reader += 1;
        (self.is_read, self.unread) = (true, next);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        EventReader {
            stream: Arc::clone(stream),
            reader: self.reader,
            next,
            keep_alive: Box::pin(tokio::time::sleep(KEEP_ALIVE_INTERVAL)),
            cancel_on_drop: None,
            poll_deadline: None,
            shutdown: None,
        }
    }
}

/// The response body of one reader of a stream.
pub(super) struct EventReader {
    stream: Arc<EventStream>,
    reader: u64,
    /// The index of the next event.
    next: u64,
    keep_alive: Pin<Box<Sleep>>,
    /// Cancels the request of a stream that cannot be resumed.
    cancel_on_drop: Option<CancelOnDrop>,
    /// Completes when the client shall close the response and ask for the rest of the stream.
    poll_deadline: Option<Pin<Box<Sleep>>>,
    /// Completes when the server shuts down, which ends a stream without a request.
    shutdown: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl EventReader {
    /// Ends the stream when the server shuts down, although more messages may come.
    pub(super) fn end_on_shutdown(mut self, shutdown: &CancellationToken) -> Self {
        self.shutdown = Some(Box::pin(shutdown.clone().cancelled_owned()));
        self
    }

    /// Ends the response after this time, if there is one, although more events may come. The client
    /// resumes the stream after the last event that it received.
    pub(super) fn end_after(mut self, limit: Option<Duration>) -> Self {
        self.poll_deadline = limit.map(|limit| Box::pin(tokio::time::sleep(limit)));
        self
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.poll_deadline {
            Some(deadline) => deadline.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.shutdown {
            Some(shutdown) => shutdown.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    pub(super) fn with_cancel(mut self, cancel_on_drop: CancelOnDrop) -> Self {
        self.cancel_on_drop = Some(cancel_on_drop);
        self
    }

    /// Returns the next event, or `None` at the end of the stream.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.stream.lock_state();
        if state.reader != self.reader {
            // A client would reopen the stream of its session if that ended, and so take it away
            // from its newer reader, for as long as that exists.
            let is_open = self.stream.names == EventNames::OfSession && state.ended.is_none();
            return match is_open && state.is_read {
                true => Poll::Pending,
                false => Poll::Ready(None),
            };
        }
        if let Some((index, event)) = state.events.iter().find(|(index, _)| *index >= self.next) {
            self.next = index + 1;
            let event = event.clone();
            state.unread = self.next;
            drop(state);
            self.stream.capacity.notify_waiters();
            return Poll::Ready(Some(event));
        }
        if state.ended.is_some() {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Body for EventReader {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.poll_event(cx) {
            Poll::Ready(event) => event,
            Poll::Pending if self.poll_shutdown(cx).is_ready() => None,
            Poll::Pending if self.poll_deadline(cx).is_ready() => None,
            Poll::Pending => {
                std::task::ready!(self.keep_alive.as_mut().poll(cx));
                Some(Bytes::from_static(KEEP_ALIVE_COMMENT))
            }
        };
        match &next {
            Some(_) => {
                let deadline = tokio::time::Instant::now() + KEEP_ALIVE_INTERVAL;
                self.keep_alive.as_mut().reset(deadline);
                // The timer must be polled again to wake this task.
                if let Poll::Ready(()) = self.keep_alive.as_mut().poll(cx) {
                    cx.waker().wake_by_ref();
                }
            }
            None => {
                if let Some(cancel) = &mut self.cancel_on_drop {
                    cancel.disarm();
                }
            }
        }
        Poll::Ready(next.map(|event| Ok(Frame::data(event))))
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut state = self.stream.lock_state();
        if state.reader == self.reader {
            state.is_read = false;
            drop(state);
            self.stream.capacity.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    fn stream() -> Arc<EventStream> {
        EventStream::new(EventNames::OfRequest(3))
    }

    async fn send(stream: &EventStream, messages: std::ops::Range<u64>) {
        for message in messages {
            stream.send(message.to_string().as_bytes()).await.unwrap();
        }
    }

    /// The messages that a reader can receive now, and whether the stream has ended.
    fn receive(reader: &mut EventReader) -> (Vec<u64>, bool) {
        let mut messages = Vec::new();
        loop {
            match reader.frame().now_or_never() {
                Some(Some(Ok(frame))) => {
                    let event = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
                    let data = event.strip_prefix("data: ").unwrap().split('\n').next().unwrap();
                    messages.push(data.parse().unwrap());
                }
                Some(None) => return (messages, true),
                None => return (messages, false),
            }
        }
    }

    fn messages(range: std::ops::Range<u64>) -> Vec<u64> {
        range.collect()
    }

    #[test]
    fn parses_ids_of_events() {
        for (text, expected) in [
            ("0/0", Some((0, Some(0)))),
            ("12/3", Some((12, Some(3)))),
            ("5", Some((5, None))),
            ("", None),
            ("x", None),
            ("/3", None),
            ("1/", None),
            ("1/2/3", None),
            ("-1/2", None),
        ] {
            let expected = expected.map(|(index, request)| EventId { index, request });
            assert_eq!(EventId::parse(text), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn names_events_so_that_they_can_be_resumed() {
        for (names, expected) in [
            (EventNames::None, "data: {}\n\n"),
            (EventNames::OfRequest(7), "data: {}\nid: 0/7\n\n"),
            (EventNames::OfSession, "data: {}\nid: 1\n\n"),
        ] {
            let stream = EventStream::new(names);
            stream.send(b"{}").await.unwrap();
            stream.close();
            assert_eq!(stream.read().collect().await.unwrap().to_bytes(), expected);
        }
        let stream = stream();
        stream.send_resume_hint();
        assert!(!stream.has_message());
        stream.close();
        let hint = stream.read().collect().await.unwrap().to_bytes();
        assert_eq!(hint, "data: \nretry: 3000\nid: 0/3\n\n");
    }

    #[tokio::test]
    async fn keeps_messages_without_a_reader_for_the_next_one() {
        let stream = stream();
        let mut first = stream.read();
        send(&stream, 0..2).await;
        assert_eq!(receive(&mut first), (messages(0..2), false));
        drop(first);
        send(&stream, 2..4).await;
        stream.close();
        assert!(stream.send(b"4").await.is_err());
        for index in 0..=3 {
            let mut next = stream.read_after(index).unwrap();
            assert_eq!(receive(&mut next), (messages(index + 1..4), true));
        }
        assert!(stream.read_after(4).is_none());
    }

    #[tokio::test]
    async fn sends_messages_to_the_latest_reader() {
        let stream = stream();
        let mut first = stream.read();
        send(&stream, 0..1).await;
        assert_eq!(receive(&mut first), (messages(0..1), false));
        let first = tokio::spawn(async move { first.frame().await.is_none() });
        tokio::task::yield_now().await;
        let mut second = stream.read();
        assert!(first.await.unwrap(), "the first one ends");
        send(&stream, 1..2).await;
        assert_eq!(receive(&mut second), (messages(1..2), false));
        drop(second);

        let session = EventStream::new(EventNames::OfSession);
        let (mut first, mut second) = (session.read(), session.read());
        send(&session, 0..1).await;
        assert_eq!(receive(&mut first), (vec![], false), "it would be opened again");
        assert_eq!(receive(&mut second), (messages(0..1), false));
        drop(second);
        assert_eq!(receive(&mut first), (vec![], true), "it may be opened again");
        let mut third = session.read();
        session.close();
        assert_eq!(receive(&mut third), (vec![], true));
    }

    #[tokio::test]
    async fn bounds_what_is_kept_except_for_the_last_event() {
        let stream = stream();
        drop(stream.read());
        send(&stream, 0..100).await;
        assert_eq!(receive(&mut stream.read_after(10).unwrap()).0, messages(36..100));
        drop(stream.read());
        stream.send(&vec![b'1'; 2 * MAX_BYTES]).await.unwrap();
        assert_eq!(stream.lock_state().events.len(), 1);
        assert!(stream.byte_len() > 2 * MAX_BYTES);
    }

    #[tokio::test]
    async fn waits_for_a_reader_that_lags_behind() {
        let stream = stream();
        let mut reader = stream.read();
        send(&stream, 0..MAX_EVENTS as u64).await;
        assert!(stream.send(b"64").now_or_never().is_none());
        let sending = tokio::spawn({
            let stream = Arc::clone(&stream);
            async move { stream.send(b"64").await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert_eq!(receive(&mut reader), (messages(0..64), false));
        assert!(sending.await.unwrap());
        assert_eq!(receive(&mut reader), (messages(64..65), false));
    }

    // F20
    #[tokio::test(start_paused = true)]
    async fn sends_comments_while_nothing_happens() {
        let stream = EventStream::new(EventNames::None);
        let sending = tokio::spawn({
            let stream = Arc::clone(&stream);
            async move {
                tokio::time::sleep(Duration::from_secs(50)).await;
                stream.send(b"{}").await.unwrap();
                tokio::time::sleep(Duration::from_secs(20)).await;
                stream.close();
            }
        });
        let read = stream.read().collect().await.unwrap().to_bytes();
        assert_eq!(read, ":\n\n:\n\n:\n\ndata: {}\n\n:\n\n");
        sending.await.unwrap();
    }
}
