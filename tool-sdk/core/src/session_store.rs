//! The history of calls: what a session called, and how each call ended.
//!
//! Surfaces that show history write to a [`SessionStore`]; [`MemorySessionStore`] keeps the last
//! calls until the program ends.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call in the history of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "surfaces construct records")]
pub struct CallRecord {
    /// The id of the call.
    pub call: String,
    /// The id of the session.
    pub session: String,
    /// The user of the session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The name of the tool, as it was called.
    pub tool: String,
    /// The arguments, sensitive values masked.
    pub arguments: Value,
    /// The request that led to the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// How far the call is.
    pub status: CallStatus,
    /// When the call started.
    #[serde(with = "unix_millis", rename = "started_at_ms")]
    pub started_at: SystemTime,
    /// How long it took, in milliseconds, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// What the client got: the result, or the problem. Absent while the call runs, and for
    /// results over the limit of the surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
}

/// An event of a call, as JSON: what happened, and what it shows to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "surfaces construct records")]
pub struct EventRecord {
    /// The id of the call, as in its [`CallRecord`].
    pub call: String,
    /// The id of the session.
    pub session: String,
    /// When it happened.
    #[serde(with = "unix_millis", rename = "at_ms")]
    pub at: SystemTime,
    /// The event.
    pub event: Value,
}

/// A session in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "stores construct summaries")]
pub struct SessionSummary {
    /// The id of the session.
    pub session: String,
    /// The user of its last call, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How many of its calls are kept.
    pub calls: u64,
    /// When the first of them started.
    #[serde(with = "unix_millis", rename = "first_call_ms")]
    pub first_call: SystemTime,
    /// When the last of them started.
    #[serde(with = "unix_millis", rename = "last_call_ms")]
    pub last_call: SystemTime,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStatus {
    /// It runs, or waits for an approval.
    Running,
    /// The tool returned a result.
    Completed,
    /// It failed or was denied.
    Failed,
    /// It was cancelled.
    Aborted,
    /// Its time limit was exceeded.
    TimedOut,
}

/// Keeps the history of sessions.
///
/// A failed method is reported to the host and never fails a call.
///
/// # Examples
///
/// ```
/// use std::time::SystemTime;
/// use tool_sdk::{CallRecord, CallStatus, MemorySessionStore, SessionStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemorySessionStore::default();
/// let call = CallRecord {
///     call: "c1".to_owned(),
///     session: "s1".to_owned(),
///     user: None,
///     tool: "hello".to_owned(),
///     arguments: serde_json::json!({}),
///     request: None,
///     status: CallStatus::Running,
///     started_at: SystemTime::now(),
///     elapsed_ms: None,
///     response: None,
/// };
/// store.save_call(call.clone()).await?;
/// store.save_call(CallRecord { status: CallStatus::Completed, ..call }).await?;
/// assert_eq!(store.list_calls("s1").await?.len(), 1);
/// assert!(store.list_calls("s2").await?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait SessionStore: Send + Sync + 'static {
    /// Saves a call, in place of an earlier record with the same id.
    fn save_call(&self, record: CallRecord) -> impl Future<Output = io::Result<()>> + Send;

    /// Returns the call with this id.
    fn find_call(&self, call: &str) -> impl Future<Output = io::Result<Option<CallRecord>>> + Send;

    /// Returns the calls of a session, the oldest first.
    fn list_calls(&self, session: &str)
    -> impl Future<Output = io::Result<Vec<CallRecord>>> + Send;

    /// Removes the calls of a session and their events.
    fn remove_session(&self, session: &str) -> impl Future<Output = io::Result<()>> + Send;

    /// Adds an event of a call that was saved.
    fn save_event(&self, record: EventRecord) -> impl Future<Output = io::Result<()>> + Send;

    /// Returns the events of a call, in the order in which they were added.
    fn list_events(&self, call: &str) -> impl Future<Output = io::Result<Vec<EventRecord>>> + Send;

    /// Returns the sessions that have calls, the one with the last call first.
    fn summarize_sessions(&self) -> impl Future<Output = io::Result<Vec<SessionSummary>>> + Send;

    /// Removes the calls that started before `time` and their events. Returns how many calls.
    fn remove_calls_before(&self, time: SystemTime)
    -> impl Future<Output = io::Result<u64>> + Send;
}

/// A shared store is a store.
impl<S: SessionStore> SessionStore for Arc<S> {
    fn save_call(&self, record: CallRecord) -> impl Future<Output = io::Result<()>> + Send {
        S::save_call(self, record)
    }

    fn find_call(&self, call: &str) -> impl Future<Output = io::Result<Option<CallRecord>>> + Send {
        S::find_call(self, call)
    }

    fn list_calls(
        &self,
        session: &str,
    ) -> impl Future<Output = io::Result<Vec<CallRecord>>> + Send {
        S::list_calls(self, session)
    }

    fn remove_session(&self, session: &str) -> impl Future<Output = io::Result<()>> + Send {
        S::remove_session(self, session)
    }

    fn save_event(&self, record: EventRecord) -> impl Future<Output = io::Result<()>> + Send {
        S::save_event(self, record)
    }

    fn list_events(&self, call: &str) -> impl Future<Output = io::Result<Vec<EventRecord>>> + Send {
        S::list_events(self, call)
    }

    fn summarize_sessions(&self) -> impl Future<Output = io::Result<Vec<SessionSummary>>> + Send {
        S::summarize_sessions(self)
    }

    fn remove_calls_before(
        &self,
        time: SystemTime,
    ) -> impl Future<Output = io::Result<u64>> + Send {
        S::remove_calls_before(self, time)
    }
}

/// A [`SessionStore`] behind a pointer; implemented for every store.
#[doc(hidden)]
pub trait DynSessionStore: Send + Sync + 'static {
    fn save_call(&self, record: CallRecord) -> BoxFuture<'_, io::Result<()>>;
    fn find_call<'a>(&'a self, call: &'a str) -> BoxFuture<'a, io::Result<Option<CallRecord>>>;
    fn list_calls<'a>(&'a self, session: &'a str) -> BoxFuture<'a, io::Result<Vec<CallRecord>>>;
    fn remove_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, io::Result<()>>;
    fn save_event(&self, record: EventRecord) -> BoxFuture<'_, io::Result<()>>;
    fn list_events<'a>(&'a self, call: &'a str) -> BoxFuture<'a, io::Result<Vec<EventRecord>>>;
    fn summarize_sessions(&self) -> BoxFuture<'_, io::Result<Vec<SessionSummary>>>;
    fn remove_calls_before(&self, time: SystemTime) -> BoxFuture<'_, io::Result<u64>>;
}

impl<S: SessionStore> DynSessionStore for S {
    fn save_call(&self, record: CallRecord) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(SessionStore::save_call(self, record))
    }

    fn find_call<'a>(&'a self, call: &'a str) -> BoxFuture<'a, io::Result<Option<CallRecord>>> {
        Box::pin(SessionStore::find_call(self, call))
    }

    fn list_calls<'a>(&'a self, session: &'a str) -> BoxFuture<'a, io::Result<Vec<CallRecord>>> {
        Box::pin(SessionStore::list_calls(self, session))
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(SessionStore::remove_session(self, session))
    }

    fn save_event(&self, record: EventRecord) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(SessionStore::save_event(self, record))
    }

    fn list_events<'a>(&'a self, call: &'a str) -> BoxFuture<'a, io::Result<Vec<EventRecord>>> {
        Box::pin(SessionStore::list_events(self, call))
    }

    fn summarize_sessions(&self) -> BoxFuture<'_, io::Result<Vec<SessionSummary>>> {
        Box::pin(SessionStore::summarize_sessions(self))
    }

    fn remove_calls_before(&self, time: SystemTime) -> BoxFuture<'_, io::Result<u64>> {
        Box::pin(SessionStore::remove_calls_before(self, time))
    }
}

/// Keeps the last calls of all sessions in memory, with their events.
pub struct MemorySessionStore {
    calls: Mutex<VecDeque<RecordedCall>>,
    max_calls: usize,
}

/// A call with its events.
struct RecordedCall {
    record: CallRecord,
    events: Vec<EventRecord>,
}

impl MemorySessionStore {
    /// How many calls are kept by default.
    pub const DEFAULT_MAX_CALLS: usize = 1000;

    /// Returns a store that keeps the last `max_calls` calls, at least one.
    #[must_use]
    pub fn new(max_calls: usize) -> Self {
        Self { calls: Mutex::default(), max_calls: max_calls.max(1) }
    }

    /// A poisoned lock still guards whole records: no operation panics half-way.
    fn lock_calls(&self) -> MutexGuard<'_, VecDeque<RecordedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemorySessionStore {
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_CALLS)
    }
}

impl fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessionStore").field("calls", &self.lock_calls().len()).finish()
    }
}

impl SessionStore for MemorySessionStore {
    async fn save_call(&self, record: CallRecord) -> io::Result<()> {
        let mut calls = self.lock_calls();
        // A call that ends was mostly saved not long ago.
        match calls.iter_mut().rev().find(|it| it.record.call == record.call) {
            Some(earlier) => earlier.record = record,
            None => {
                if calls.len() == self.max_calls {
                    calls.pop_front();
                }
                calls.push_back(RecordedCall { record, events: Vec::new() });
            }
        }
        Ok(())
    }

    async fn find_call(&self, call: &str) -> io::Result<Option<CallRecord>> {
        let calls = self.lock_calls();
        let found = calls.iter().rev().find(|it| it.record.call == call);
        Ok(found.map(|it| it.record.clone()))
    }

    async fn list_calls(&self, session: &str) -> io::Result<Vec<CallRecord>> {
        let calls = self.lock_calls();
        let of_session = calls.iter().filter(|it| it.record.session == session);
        Ok(of_session.map(|it| it.record.clone()).collect())
    }

    async fn remove_session(&self, session: &str) -> io::Result<()> {
        self.lock_calls().retain(|it| it.record.session != session);
        Ok(())
    }

    async fn save_event(&self, record: EventRecord) -> io::Result<()> {
        let mut calls = self.lock_calls();
        // The call may have been removed since.
        if let Some(call) = calls.iter_mut().rev().find(|it| it.record.call == record.call) {
            call.events.push(record);
        }
        Ok(())
    }

    async fn list_events(&self, call: &str) -> io::Result<Vec<EventRecord>> {
        let calls = self.lock_calls();
        let found = calls.iter().rev().find(|it| it.record.call == call);
        Ok(found.map(|it| it.events.clone()).unwrap_or_default())
    }

    async fn summarize_sessions(&self) -> io::Result<Vec<SessionSummary>> {
        let mut sessions: Vec<SessionSummary> = Vec::new();
        for RecordedCall { record, .. } in self.lock_calls().iter() {
            match sessions.iter_mut().find(|it| it.session == record.session) {
                Some(summary) => summary.add_call(record),
                None => sessions.push(SessionSummary::of_call(record)),
            }
        }
        sessions.sort_by_key(|it| std::cmp::Reverse(it.last_call));
        Ok(sessions)
    }

    async fn remove_calls_before(&self, time: SystemTime) -> io::Result<u64> {
        let mut calls = self.lock_calls();
        let before = calls.len();
        calls.retain(|it| it.record.started_at >= time);
        Ok((before - calls.len()) as u64)
    }
}

impl SessionSummary {
    fn of_call(record: &CallRecord) -> Self {
        let (first_call, last_call) = (record.started_at, record.started_at);
        let (session, user) = (record.session.clone(), record.user.clone());
        Self { session, user, calls: 1, first_call, last_call }
    }

    fn add_call(&mut self, record: &CallRecord) {
        self.calls += 1;
        self.first_call = self.first_call.min(record.started_at);
        if record.started_at >= self.last_call {
            self.last_call = record.started_at;
            self.user.clone_from(&record.user);
        }
    }
}

/// Times as milliseconds since 1970.
pub(crate) mod unix_millis {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        Ok(UNIX_EPOCH + Duration::from_millis(u64::deserialize(from)?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::Value;

    use super::{CallRecord, CallStatus, MemorySessionStore, SessionStore as _};

    fn record(call: &str, session: &str) -> CallRecord {
        CallRecord {
            call: call.to_owned(),
            session: session.to_owned(),
            user: None,
            tool: "t".to_owned(),
            arguments: Value::Null,
            request: None,
            status: CallStatus::Running,
            started_at: SystemTime::UNIX_EPOCH,
            elapsed_ms: None,
            response: None,
        }
    }

    #[tokio::test]
    async fn keeps_the_last_calls_and_replaces_records_of_the_same_call() {
        let store = MemorySessionStore::new(2);
        for call in ["a", "b", "c"] {
            store.save_call(record(call, "s")).await.unwrap();
        }
        let ended = CallRecord { status: CallStatus::Completed, ..record("b", "s") };
        store.save_call(ended).await.unwrap();
        let kept = store.list_calls("s").await.unwrap();
        assert_eq!(kept.iter().map(|it| &*it.call).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(store.find_call("b").await.unwrap().unwrap().status, CallStatus::Completed);
        assert_eq!(store.find_call("a").await.unwrap(), None);
        store.remove_session("s").await.unwrap();
        assert!(store.list_calls("s").await.unwrap().is_empty());
    }
    #[cfg(feature = "testing")]
    #[tokio::test]
    async fn the_store_in_memory_keeps_the_promises() {
        crate::testing::check_session_store(&MemorySessionStore::default()).await;
    }
}
