//! A log of the events of one response, for a client that loses the stream and resumes it.
//!
//! The first event of a response tells the client that it may reconnect. rmcp allows that only
//! while the request runs and then drops the response, so the events are logged here as well. If
//! the reader disconnects, the log reads on without one.
//!
//! **Invariant:** each event is sent to one reader, the latest one; the log is bounded except for
//! its last event.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame};
use tokio::runtime::Handle;

use super::event_logs::EventLogs;
use super::responses::ResponseBody;
use super::sessions::PrincipalKey;

/// How much of what was said before the last event is kept.
const MOST_EVENTS: usize = 64;
const MOST_BYTES: usize = 256 * 1024;
/// How long all of it is kept once everything was said.
const RETENTION: Duration = Duration::from_secs(60);

/// How rmcp names an event: by its place in a stream, and by the stream, unless that is the one
/// which belongs to no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) index: u64,
    pub(super) stream: Option<u64>,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (place, stream) = match text.split_once('/') {
            Some((place, stream)) => (place, Some(stream.parse().ok()?)),
            None => (text, None),
        };
        Some(Self { index: place.parse().ok()?, stream })
    }

    /// The name of an event. It stands after the message, which may be long.
    pub(super) fn from_event(event: &[u8]) -> Option<Self> {
        let name = event.rsplit(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"id:"));
        Self::parse(str::from_utf8(name?).ok()?.trim())
    }
}

/// The answer to one request, as far as it was said.
pub(super) struct EventLog {
    /// Whose request it is.
    pub(super) principal: PrincipalKey,
    /// Those among which this is kept.
    logs: Weak<EventLogs>,
    runtime: Handle,
    state: Mutex<State>,
}

struct State {
    /// Where more comes from, until everything was said.
    source: Option<ResponseBody>,
    ended: Option<Instant>,
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// Whose turn it is to listen.
    active_reader: u64,
    /// Wakes that one.
    waker: Option<Waker>,
}

impl EventLog {
    pub(super) fn new(principal: PrincipalKey, logs: Weak<EventLogs>, rest: ResponseBody) -> Self {
        let state = State {
            source: Some(rest),
            ended: None,
            events: VecDeque::new(),
            bytes: 0,
            active_reader: 0,
            waker: None,
        };
        Self { principal, logs, runtime: Handle::current(), state: Mutex::new(state) }
    }

    /// Keeps an event that has come already.
    pub(super) fn append(&self, place: u64, event: Bytes) {
        self.lock_state().append(place, event);
    }

    /// Listens to everything.
    pub(super) fn read_all(self: &Arc<Self>) -> EventLogReader {
        self.lock_state().new_reader(self, None)
    }

    /// Listens to what comes after an event; nothing where there was no such event.
    pub(super) fn read_after(self: &Arc<Self>, place: u64) -> Option<EventLogReader> {
        let mut state = self.lock_state();
        let is_known = state.events.back().is_some_and(|(last, _)| place <= *last);
        is_known.then(|| state.new_reader(self, Some(place)))
    }

    /// When everything was said.
    pub(super) fn ended_at(&self) -> Option<Instant> {
        self.lock_state().ended
    }

    /// How long all of it is that is kept.
    pub(super) fn byte_len(&self) -> usize {
        self.lock_state().bytes
    }

    /// Whether it was kept for long enough.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.ended_at().is_some_and(|ended| now.saturating_duration_since(ended) > RETENTION)
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a reader received, and the index of the last event up to it.
type LoggedChunk = (Option<u64>, Bytes);

impl State {
    /// The one whose turn it is from now on.
    fn new_reader(&mut self, tape: &Arc<EventLog>, place: Option<u64>) -> EventLogReader {
        self.active_reader += 1;
        if let Some(before) = self.waker.take() {
            before.wake();
        }
        EventLogReader {
            log: Arc::clone(tape),
            reader: self.active_reader,
            last_index: place,
            is_connected: true,
        }
    }

    /// What is said after the event at a place, and at which place this one is then.
    fn poll_after(
        &mut self,
        place: Option<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<LoggedChunk>> {
        if let Some((place, event)) = self.events.iter().find(|(other, _)| Some(*other) > place) {
            return Poll::Ready(Some((Some(*place), event.clone())));
        }
        let said = ready!(self.poll_source(cx));
        Poll::Ready(said.map(|said| (self.events.back().map(|(last, _)| *last), said)))
    }

    /// Hears more of the answer.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(rest) = &mut self.source else { return Poll::Ready(None) };
        let Some(Ok(frame)) = ready!(Pin::new(rest).poll_frame(cx)) else {
            self.source = None;
            self.ended = Some(Instant::now());
            return Poll::Ready(None);
        };
        let said = frame.into_data().unwrap_or_default();
        if let Some(name) = EventId::from_event(&said) {
            self.append(name.index, said.clone());
        }
        Poll::Ready(Some(said))
    }

    fn append(&mut self, place: u64, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back((place, event));
        while self.events.len() > MOST_EVENTS || (self.bytes > MOST_BYTES && self.events.len() > 1)
        {
            let first = self.events.pop_front();
            self.bytes -= first.map_or(0, |(_, event)| event.len());
        }
    }
}

/// The response body of one reader of the log.
pub(super) struct EventLogReader {
    log: Arc<EventLog>,
    reader: u64,
    /// That of the last event that was said to this one.
    last_index: Option<u64>,
    /// Whether a client is connected; otherwise events are only logged.
    is_connected: bool,
}

impl Body for EventLogReader {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let mut state = this.log.lock_state();
        if state.active_reader != this.reader {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        let Some((place, said)) = ready!(state.poll_after(this.last_index, cx)) else {
            drop(state);
            if let Some(among) = this.log.logs.upgrade() {
                among.enforce_limits(&this.log.principal, Instant::now());
            }
            return Poll::Ready(None);
        };
        this.last_index = place;
        Poll::Ready(Some(Ok(Frame::data(said))))
    }
}

impl Drop for EventLogReader {
    fn drop(&mut self) {
        let mut state = self.log.lock_state();
        if !self.is_connected || state.active_reader != self.reader || state.source.is_none() {
            return;
        }
        // Without a reader, a sender that waits for capacity would block forever.
        let mut nobody = state.new_reader(&self.log, self.last_index);
        nobody.is_connected = false;
        drop(state);
        self.log.runtime.spawn(async move { while nobody.frame().await.is_some() {} });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::stream;
    use http_body_util::StreamBody;
    use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

    use super::*;

    fn body(mut events: UnboundedReceiver<String>) -> ResponseBody {
        let events = stream::poll_fn(move |cx| {
            events.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event.into()))))
        });
        http_body_util::BodyExt::boxed(StreamBody::new(events))
    }

    fn tape() -> (Arc<EventLog>, UnboundedSender<String>) {
        let (say, events) = mpsc::unbounded_channel();
        (Arc::new(EventLog::new(None, Weak::new(), body(events))), say)
    }

    fn event(place: usize) -> String {
        format!("data: {{}}\nid: {place}/3\n\n")
    }

    /// What is said until there is no more of it for now, and whether that is the end.
    fn heard(listener: &mut EventLogReader) -> (Vec<Option<EventId>>, bool) {
        let mut names = Vec::new();
        loop {
            match listener.frame().now_or_never() {
                Some(Some(Ok(frame))) => {
                    names.push(EventId::from_event(&frame.into_data().unwrap()))
                }
                Some(None) => return (names, true),
                None => return (names, false),
            }
        }
    }

    fn names(places: impl IntoIterator<Item = u64>) -> Vec<Option<EventId>> {
        places.into_iter().map(|place| Some(EventId { index: place, stream: Some(3) })).collect()
    }

    #[test]
    fn a_name_is_a_place_and_a_stream() {
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
            let expected = expected.map(|(place, stream)| EventId { index: place, stream });
            assert_eq!(EventId::parse(text), expected, "{text}");
            let event = format!("data: id: 9/9\nid: {text}\nretry: 3000\n\n");
            assert_eq!(EventId::from_event(event.as_bytes()), expected, "{text}");
        }
        assert_eq!(EventId::from_event(b"data: {}\n\n"), None);
    }

    #[tokio::test]
    async fn what_is_said_to_nobody_is_said_to_the_next() {
        let (tape, say) = tape();
        let mut first = tape.read_all();
        say.send(event(0)).unwrap();
        say.send(event(1)).unwrap();
        say.send(":\n\n".to_owned()).unwrap();
        let mut all = names([0, 1]);
        all.push(None);
        assert_eq!(heard(&mut first), (all, false));
        drop(first);
        say.send(event(2)).unwrap();
        tokio::task::yield_now().await;
        say.send(event(3)).unwrap();
        drop(say);
        while tape.ended_at().is_none() {
            tokio::task::yield_now().await;
        }
        for place in 0..=3 {
            let mut next = tape.read_after(place).unwrap();
            assert_eq!(heard(&mut next), (names(place + 1..=3), true));
        }
        assert!(tape.read_after(4).is_none());
    }

    #[tokio::test]
    async fn whoever_comes_last_listens() {
        let (tape, say) = tape();
        let mut first = tape.read_all();
        say.send(event(0)).unwrap();
        assert_eq!(heard(&mut first), (names([0]), false));
        let first = tokio::spawn(async move { first.frame().await.is_none() });
        tokio::task::yield_now().await;
        let mut second = tape.read_after(0).unwrap();
        assert!(first.await.unwrap(), "the first one hears the end");
        say.send(event(1)).unwrap();
        assert_eq!(heard(&mut second), (names([1]), false));

        // The reader that was dropped is not replaced if a newer one exists.
        let mut third = tape.read_after(0).unwrap();
        drop(second);
        tokio::task::yield_now().await;
        say.send(event(2)).unwrap();
        assert_eq!(heard(&mut third), (names([1, 2]), false));
    }

    #[tokio::test]
    async fn the_last_event_is_kept_in_any_case() {
        let (tape, say) = tape();
        let mut listener = tape.read_all();
        for place in 0..100 {
            say.send(event(place)).unwrap();
        }
        assert_eq!(heard(&mut listener).0, names(0..100));
        let mut late = tape.read_after(10).unwrap();
        assert_eq!(heard(&mut late).0, names(36..100));
        say.send(format!("data: {}\nid: 100/3\n\n", "x".repeat(2 * MOST_BYTES))).unwrap();
        assert_eq!(heard(&mut late).0, names([100]));
        assert_eq!(tape.lock_state().events.len(), 1);
        assert!(tape.byte_len() > 2 * MOST_BYTES);
        assert_eq!(heard(&mut tape.read_after(10).unwrap()), (names([100]), false));
    }

    // The runtime that would drain it is gone as well.
    #[test]
    fn a_listener_outlives_what_it_runs_on() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (tape, say) = runtime.block_on(async { tape() });
        let listener = tape.read_all();
        drop(runtime);
        drop(listener);
        assert!(say.send(event(0)).is_ok(), "it is kept, and nobody listens");
    }
}
