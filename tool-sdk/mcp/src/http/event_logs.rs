//! The event logs of a server, by session and stream.
//!
//! **Invariant:** the number and the total size of the logs of one principal are bounded; finished
//! responses are evicted first.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Instant;

use http_body_util::BodyExt as _;

use super::event_log::{EventId, EventLog};
use super::responses::{ResponseBody, poll_first_chunk, prepend_chunk};
use super::sessions::PrincipalKey;

/// How many answers of one owner are kept.
const MAX_LOGS: usize = 256;
/// How long they may be together.
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;

/// Those that are kept, the oldest of them first.
#[derive(Default)]
pub(super) struct EventLogs(Mutex<Vec<LoggedResponse>>);

struct LoggedResponse {
    session: Box<[u8]>,
    /// How rmcp calls its stream in that session.
    stream: u64,
    log: Arc<EventLog>,
}

impl EventLogs {
    /// The same answer, which can be taken up again where its first event says so. Older clients
    /// are not told that by an event which says nothing else: they would take it for a message.
    pub(super) fn record(
        self: &Arc<Self>,
        session: &[u8],
        owner: PrincipalKey,
        is_older: bool,
        mut answer: ResponseBody,
    ) -> ResponseBody {
        let Poll::Ready(Some(first)) = poll_first_chunk(&mut answer) else { return answer };
        let Some(EventId { index: place, stream: Some(stream) }) = EventId::from_event(&first)
        else {
            return prepend_chunk(first, answer);
        };
        let is_left_out = is_older && has_no_data(&first);
        let tape = Arc::new(EventLog::new(owner.clone(), Arc::downgrade(self), answer));
        tape.append(place, first);
        let later = is_left_out.then(|| tape.read_after(place)).flatten();
        let listener = later.unwrap_or_else(|| tape.read_all()).boxed();
        self.lock_logs().push(LoggedResponse { session: session.into(), stream, log: tape });
        self.enforce_limits(&owner, Instant::now());
        listener
    }

    /// What comes after an event of a session; nothing where there was no such event, or it is
    /// too long ago.
    pub(super) fn read_after(
        &self,
        session: &[u8],
        stream: u64,
        place: u64,
    ) -> Option<ResponseBody> {
        let kept = self.lock_logs();
        let same = kept.iter().find(|it| it.stream == stream && *it.session == *session)?;
        let tape = Arc::clone(&same.log);
        drop(kept);
        let is_over = tape.is_expired(Instant::now());
        tape.read_after(place).filter(|_| !is_over).map(|listener| listener.boxed())
    }

    /// Lets go of what was kept for long enough.
    pub(super) fn remove_expired(&self, now: Instant) {
        let old: Vec<_> = self.lock_logs().extract_if(.., |it| it.log.is_expired(now)).collect();
        drop(old);
    }

    /// Lets go of what is too old or too much.
    pub(super) fn enforce_limits(&self, owner: &PrincipalKey, now: Instant) {
        self.remove_expired(now);
        let mut kept = self.lock_logs();
        let own = kept.iter().rev().map(|it| &it.log).filter(|tape| tape.principal == *owner);
        let mut own: Vec<_> = own.cloned().collect();
        own.sort_by_cached_key(|tape| {
            let ended = tape.ended_at();
            (ended.is_some(), Reverse(ended))
        });
        let mut bytes = 0;
        let too_much = own.iter().enumerate().filter(|(at, tape)| {
            bytes += tape.byte_len();
            *at >= MAX_LOGS || bytes > MAX_TOTAL_BYTES
        });
        let too_much: Vec<_> = too_much.map(|(_, tape)| tape).collect();
        kept.retain(|it| !too_much.iter().any(|tape| Arc::ptr_eq(tape, &it.log)));
        // What ends with them is not waited for by the others.
        drop(kept);
    }

    fn lock_logs(&self) -> MutexGuard<'_, Vec<LoggedResponse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an event has a name, and no message.
fn has_no_data(event: &[u8]) -> bool {
    let mut lines = event.split(|byte| *byte == b'\n');
    !lines.any(|line| line.strip_prefix(b"data:").is_some_and(|data| !data.trim_ascii().is_empty()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::Full;
    use hyper::body::Bytes;
    use tool_sdk_core::Principal;

    use super::*;

    fn ada() -> PrincipalKey {
        Some(Arc::new(Principal::new("ada")))
    }

    /// Answers a request of the session `a`, and hears all of it.
    async fn answer(tapes: &Arc<EventLogs>, owner: PrincipalKey, stream: usize, length: usize) {
        let text = format!("data: {}\nid: 0/{stream}\n\n", "x".repeat(length));
        let answer = tapes.record(b"a", owner, false, Full::from(text).boxed());
        let heard = answer.collect().await.unwrap().to_bytes();
        assert!(heard.len() > length);
    }

    fn has(tapes: &EventLogs, stream: u64) -> bool {
        tapes.lock_logs().iter().any(|it| it.stream == stream)
    }

    #[tokio::test]
    async fn an_answer_is_kept_for_a_while_in_its_session() {
        let tapes = Arc::<EventLogs>::default();
        answer(&tapes, None, 7, 10).await;
        assert!(tapes.read_after(b"a", 7, 0).is_some());
        for (session, stream, place) in [(&b"b"[..], 7, 0), (b"a", 6, 0), (b"a", 7, 1)] {
            let unknown = tapes.read_after(session, stream, place);
            assert!(unknown.is_none(), "{session:?} {stream} {place}");
        }
        let now = Instant::now();
        tapes.remove_expired(now + Duration::from_secs(50));
        assert!(has(&tapes, 7));
        tapes.remove_expired(now + Duration::from_secs(61));
        assert!(!has(&tapes, 7));
    }

    // What is no message is an error for clients of before 2025-11-25.
    #[tokio::test]
    async fn older_clients_hear_messages_and_nothing_else() {
        const EMPTY: &str = "data: \nid: 0/7\nretry: 3000\n\n";
        const FULL: &str = "data: {}\nid: 1/7\n\n";
        for (is_older, expected) in [(false, [EMPTY, FULL].concat()), (true, FULL.to_owned())] {
            let tapes = Arc::<EventLogs>::default();
            let (first, rest) = (Bytes::from_static(EMPTY.as_bytes()), Full::from(FULL).boxed());
            let answer = tapes.record(b"a", None, is_older, prepend_chunk(first, rest));
            assert_eq!(answer.collect().await.unwrap().to_bytes(), expected);
            let again = tapes.read_after(b"a", 7, 0).unwrap();
            assert_eq!(again.collect().await.unwrap().to_bytes(), FULL, "it is kept all the same");
        }
        let tapes = Arc::<EventLogs>::default();
        let answer = tapes.record(b"a", None, true, Full::from("data: {}\nid: 0/7\n\n").boxed());
        assert_eq!(answer.collect().await.unwrap().to_bytes(), "data: {}\nid: 0/7\n\n");
    }

    #[tokio::test]
    async fn those_that_ended_first_give_way() {
        let tapes = Arc::<EventLogs>::default();
        let event = Bytes::from_static(b"data:\nid: 0/1000\n\n");
        let never = http_body_util::StreamBody::new(futures_util::stream::pending());
        let running = tapes.record(b"a", ada(), false, prepend_chunk(event, never.boxed()));
        answer(&tapes, None, 1001, 10).await;
        for stream in 0..MAX_LOGS {
            answer(&tapes, ada(), stream, 10).await;
        }
        assert!(has(&tapes, 1000), "it has not ended");
        assert!(has(&tapes, 1001), "it is somebody else's");
        assert!(!has(&tapes, 0) && has(&tapes, 1));
        drop(running);
    }

    #[tokio::test]
    async fn what_is_too_long_together_is_not_kept() {
        let tapes = Arc::<EventLogs>::default();
        for stream in 0..5 {
            answer(&tapes, ada(), stream, MAX_TOTAL_BYTES / 4).await;
        }
        assert_eq!(
            [0, 1, 2, 3, 4].map(|stream| has(&tapes, stream)),
            [false, false, true, true, true]
        );
    }

    #[tokio::test]
    async fn an_answer_that_promises_nothing_is_not_kept() {
        let tapes = Arc::<EventLogs>::default();
        for text in ["data: {}\n\n", "data: {}\nid: 1\n\n", ""] {
            let answer = tapes.record(b"a", None, false, Full::from(text).boxed());
            assert_eq!(answer.collect().await.unwrap().to_bytes(), text);
            assert!(tapes.lock_logs().is_empty(), "{text}");
        }
    }
}
