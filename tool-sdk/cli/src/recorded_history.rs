//! The history of `serve http` where calls are recorded: calls of this server from memory, and those of
//! earlier ones from the recorded history.
//!
//! **Invariant:** a client removes nothing that the user wanted recorded.

use std::io;
use std::time::SystemTime;

use tool_sdk_core::{CallRecord, EventRecord, MemorySessionStore, SessionStore, SessionSummary};
use tool_sdk_store::SqliteStore;

/// A history in memory before a recorded one, which the recorder of the pipeline writes.
pub(super) struct RecordedHistory {
    own: MemorySessionStore,
    recorded: SqliteStore,
}

impl RecordedHistory {
    pub(super) fn new(recorded: SqliteStore) -> Self {
        Self { own: MemorySessionStore::default(), recorded }
    }
}

impl SessionStore for RecordedHistory {
    async fn save_call(&self, record: CallRecord) -> io::Result<()> {
        self.own.save_call(record).await
    }

    async fn find_call(&self, call: &str) -> io::Result<Option<CallRecord>> {
        match self.own.find_call(call).await? {
            Some(record) => Ok(Some(record)),
            None => self.recorded.find_call(call).await,
        }
    }

    async fn list_calls(&self, session: &str) -> io::Result<Vec<CallRecord>> {
        let own = self.own.list_calls(session).await?;
        if own.is_empty() { self.recorded.list_calls(session).await } else { Ok(own) }
    }

    async fn remove_session(&self, session: &str) -> io::Result<()> {
        self.own.remove_session(session).await
    }

    async fn save_event(&self, record: EventRecord) -> io::Result<()> {
        self.own.save_event(record).await
    }

    async fn list_events(&self, call: &str) -> io::Result<Vec<EventRecord>> {
        self.own.list_events(call).await
    }

    async fn summarize_sessions(&self) -> io::Result<Vec<SessionSummary>> {
        self.own.summarize_sessions().await
    }

    async fn remove_calls_before(&self, time: SystemTime) -> io::Result<u64> {
        self.own.remove_calls_before(time).await
    }
}
