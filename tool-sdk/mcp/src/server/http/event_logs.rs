//! The event streams of requests that can be resumed, by session and number.
//!
//! **Invariant:** the number and the total size of the streams of one principal are bounded; those
//! that have ended are removed first.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::event_stream::EventStream;
use super::sessions::PrincipalKey;

/// The maximum number of streams of one principal.
const MAX_STREAMS: usize = 256;
/// Their maximum size in bytes.
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;

/// The streams, the oldest first.
#[derive(Default)]
pub(super) struct EventLogs(Mutex<Vec<LoggedStream>>);

struct LoggedStream {
    session: Arc<str>,
    principal: PrincipalKey,
    /// The number of the request in its session.
    request: u64,
    stream: Arc<EventStream>,
}

impl EventLogs {
    /// Keeps the stream of a request.
    pub(super) fn insert(
        &self,
        session: &Arc<str>,
        principal: PrincipalKey,
        request: u64,
        stream: Arc<EventStream>,
    ) {
        let session = Arc::clone(session);
        let logged = LoggedStream { session, principal: principal.clone(), request, stream };
        self.lock_streams().push(logged);
        self.enforce_limits(&principal, Instant::now());
    }

    /// Returns the stream of a request that is not too long ago.
    pub(super) fn find(&self, session: &str, request: u64) -> Option<Arc<EventStream>> {
        let streams = self.lock_streams();
        let found = streams.iter().find(|it| it.request == request && *it.session == *session)?;
        let stream = Arc::clone(&found.stream);
        drop(streams);
        (!stream.is_expired(Instant::now())).then_some(stream)
    }

    /// Removes streams that ended too long ago.
    pub(super) fn remove_expired(&self, now: Instant) {
        self.lock_streams().retain(|it| !it.stream.is_expired(now));
    }

    /// Ends and removes the streams of a session.
    pub(super) fn remove_session(&self, session: &str) {
        let is_of_session = |it: &mut LoggedStream| *it.session == *session;
        let removed: Vec<_> = self.lock_streams().extract_if(.., is_of_session).collect();
        removed.iter().for_each(|it| it.stream.close());
    }

    /// Removes the oldest streams of a principal that has too many.
    pub(super) fn enforce_limits(&self, principal: &PrincipalKey, now: Instant) {
        self.remove_expired(now);
        let mut streams = self.lock_streams();
        let own = streams.iter().rev().filter(|it| it.principal == *principal);
        let mut own: Vec<_> = own.map(|it| Arc::clone(&it.stream)).collect();
        own.sort_by_cached_key(|stream| {
            let ended = stream.ended_at();
            (ended.is_some(), Reverse(ended))
        });
        let mut bytes = 0;
        let excess = own.iter().enumerate().filter(|(at, stream)| {
            bytes += stream.byte_len();
            *at >= MAX_STREAMS || bytes > MAX_TOTAL_BYTES
        });
        let excess: Vec<_> = excess.map(|(_, stream)| stream).collect();
        streams.retain(|it| !excess.iter().any(|stream| Arc::ptr_eq(stream, &it.stream)));
    }

    fn lock_streams(&self) -> MutexGuard<'_, Vec<LoggedStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tool_sdk_core::Principal;

    use super::*;
    use crate::server::http::event_stream::EventNames;

    fn ada() -> PrincipalKey {
        Some(Arc::new(Principal::new("ada")))
    }

    /// Keeps a stream of the session `a` with one message.
    async fn insert(logs: &EventLogs, principal: PrincipalKey, request: u64, length: usize) {
        let stream = EventStream::new(EventNames::OfRequest(request));
        stream.send(&vec![b'1'; length]).await.unwrap();
        stream.close();
        logs.insert(&"a".into(), principal, request, stream);
    }

    #[tokio::test]
    async fn keeps_a_stream_for_a_while_in_its_session() {
        let logs = EventLogs::default();
        insert(&logs, None, 7, 10).await;
        assert!(logs.find("a", 7).is_some());
        assert!(logs.find("b", 7).is_none() && logs.find("a", 6).is_none());
        let now = Instant::now();
        logs.remove_expired(now + Duration::from_secs(50));
        assert!(logs.find("a", 7).is_some());
        logs.remove_expired(now + Duration::from_secs(61));
        assert!(logs.find("a", 7).is_none());
        insert(&logs, None, 8, 10).await;
        logs.remove_session("a");
        assert!(logs.find("a", 8).is_none());
    }

    #[tokio::test]
    async fn removes_streams_that_have_ended_first() {
        let logs = EventLogs::default();
        let running = EventStream::new(EventNames::OfRequest(1000));
        logs.insert(&"a".into(), ada(), 1000, Arc::clone(&running));
        insert(&logs, None, 1001, 10).await;
        for request in 0..MAX_STREAMS as u64 {
            insert(&logs, ada(), request, 10).await;
        }
        assert!(logs.find("a", 1000).is_some(), "it has not ended");
        assert!(logs.find("a", 1001).is_some(), "it belongs to another principal");
        assert!(logs.find("a", 0).is_none() && logs.find("a", 1).is_some());
    }

    #[tokio::test]
    async fn bounds_the_size_of_all_streams() {
        let logs = EventLogs::default();
        for request in 0..5 {
            insert(&logs, ada(), request, MAX_TOTAL_BYTES / 4).await;
        }
        let kept = [0, 1, 2, 3, 4].map(|request| logs.find("a", request).is_some());
        assert_eq!(kept, [false, false, true, true, true]);
    }
}
