//! A bounded log of events, which any number of readers follow at their own pace.
//!
//! A reader has a cursor and no queue, so a slow reader costs no memory. What tools report while
//! they run is dropped from the log first; a reader that is behind learns that events are missing.
//!
//! **Invariant:** the size of a log is bounded, and writing never waits for a reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::watch;
use tool_sdk_core::{EventKind, ToolEvent};

/// How much a log keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLimits {
    /// How many signals of running tools.
    max_signals: usize,
    /// How many other events.
    max_steps: usize,
    /// How many bytes of each of the two.
    max_bytes: usize,
}

impl LogLimits {
    /// The limits of the log of a session, of which there are thousands.
    pub(super) const SESSION: Self =
        Self { max_signals: 512, max_steps: 2048, max_bytes: 2 * 1024 * 1024 };
    /// The limits of the log of a user, and of all events.
    pub(super) const SHARED: Self =
        Self { max_signals: 1024, max_steps: 8192, max_bytes: 16 * 1024 * 1024 };
}

/// An event, and its JSON once a reader has asked for it: the readers of all logs share it.
#[derive(Debug)]
pub(super) struct LoggedEvent {
    pub(super) event: ToolEvent,
    /// When the server got the event.
    at: SystemTime,
    json: OnceLock<EventJson>,
}

/// An event as clients read it.
#[derive(Debug)]
pub(super) struct EventJson {
    /// The type of the event.
    pub(super) name: String,
    pub(super) text: String,
}

impl LoggedEvent {
    pub(super) fn new(event: ToolEvent) -> Self {
        Self { event, at: SystemTime::now(), json: OnceLock::new() }
    }

    pub(super) fn seq(&self) -> u64 {
        self.event.seq
    }

    pub(super) fn json(&self) -> &EventJson {
        self.json.get_or_init(|| {
            let mut event = serde_json::to_value(&self.event).unwrap_or_default();
            if let Value::Object(members) = &mut event {
                members.insert("at_ms".to_owned(), unix_millis(self.at).into());
            }
            EventJson::new(&event)
        })
    }
}

fn unix_millis(time: SystemTime) -> u64 {
    let elapsed = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

impl EventJson {
    pub(super) fn new(event: &Value) -> Self {
        let name = event["type"].as_str().unwrap_or("event").to_owned();
        Self { name, text: event.to_string() }
    }
}

/// The last events of a session, of a user, or of all sessions.
#[derive(Debug)]
pub(super) struct EventLog {
    state: Mutex<LogState>,
    /// The number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Debug)]
struct LogState {
    signals: EventQueue,
    steps: EventQueue,
    /// The number of the last event that was dropped.
    last_dropped: u64,
    is_closed: bool,
}

/// The last events of one sort, in order.
#[derive(Debug)]
struct EventQueue {
    events: VecDeque<Arc<LoggedEvent>>,
    max_events: usize,
    bytes: usize,
    max_bytes: usize,
}

/// What a reader gets.
#[derive(Debug)]
pub(super) enum LogEntry {
    /// The next event.
    Event(Arc<LoggedEvent>),
    /// Some events after the reader's last one were dropped; the others follow.
    Gap,
}

impl EventLog {
    pub(super) fn new(limits: LogLimits) -> Self {
        let queue = |max_events| EventQueue::new(max_events, limits.max_bytes);
        let (signals, steps) = (queue(limits.max_signals), queue(limits.max_steps));
        let state = LogState { signals, steps, last_dropped: 0, is_closed: false };
        Self { state: Mutex::new(state), last: watch::Sender::new(0) }
    }

    /// A poisoned lock still guards a whole log: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event; the numbers grow.
    pub(super) fn push(&self, event: Arc<LoggedEvent>) {
        let seq = event.seq();
        self.lock().push(event);
        self.last.send_replace(seq);
    }

    /// Returns the number of the last event, or 0.
    pub(super) fn last_seq(&self) -> u64 {
        *self.last.borrow()
    }

    /// Ends the log: readers get what is left and then nothing.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.last.send_modify(|_| {});
    }

    /// Returns a reader of the events after the number `after`.
    pub(super) fn read_after(self: &Arc<Self>, after: u64) -> LogReader {
        LogReader { changes: self.last.subscribe(), log: Arc::clone(self), after, reported_gap: 0 }
    }
}

impl LogState {
    fn push(&mut self, event: Arc<LoggedEvent>) {
        let queue = if is_signal(&event.event.kind) { &mut self.signals } else { &mut self.steps };
        if let Some(dropped) = queue.push(event) {
            self.last_dropped = self.last_dropped.max(dropped);
        }
    }

    /// Returns the oldest event after the number `after`.
    fn next_after(&self, after: u64) -> Option<&Arc<LoggedEvent>> {
        let queues = [&self.signals, &self.steps];
        queues.into_iter().filter_map(|it| it.next_after(after)).min_by_key(|it| it.seq())
    }
}

impl EventQueue {
    fn new(max_events: usize, max_bytes: usize) -> Self {
        Self { events: VecDeque::new(), max_events, bytes: 0, max_bytes }
    }

    /// Appends an event; returns the number of the last one that was dropped for it.
    fn push(&mut self, event: Arc<LoggedEvent>) -> Option<u64> {
        self.bytes += event_bytes(&event.event.kind);
        self.events.push_back(event);
        let mut dropped = None;
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(event) = self.events.pop_front() else { break };
            self.bytes -= event_bytes(&event.event.kind);
            dropped = Some(event.seq());
        }
        dropped
    }

    fn next_after(&self, after: u64) -> Option<&Arc<LoggedEvent>> {
        self.events.get(self.events.partition_point(|it| it.seq() <= after))
    }
}

/// Whether the event is what a tool reports while it runs.
fn is_signal(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Progress { .. }
            | EventKind::Metadata { .. }
            | EventKind::Emitted { .. }
            | EventKind::Output { .. }
    )
}

/// Returns about how many bytes of what a client or a tool sent an event holds, also as JSON.
fn event_bytes(kind: &EventKind) -> usize {
    2 * sent_bytes(kind)
}

fn sent_bytes(kind: &EventKind) -> usize {
    match kind {
        EventKind::Pending { arguments, .. }
        | EventKind::Started { arguments: Some(arguments) } => arguments.text_bytes(),
        EventKind::PermissionAsked(request) => {
            value_bytes(&request.arguments) + request.preview.as_ref().map_or(0, value_bytes)
        }
        EventKind::Metadata { value, .. } | EventKind::Emitted { data: value, .. } => {
            value_bytes(value)
        }
        EventKind::Output { text } => text.len(),
        EventKind::Completed { data: Some(data), .. } => value_bytes(data),
        _ => 0,
    }
}

fn value_bytes(value: &Value) -> usize {
    /// About what a number or a member costs.
    const SCALAR_BYTES: usize = 16;
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum::<usize>() + SCALAR_BYTES,
        Value::Object(members) => {
            members.iter().map(|(name, it)| name.len() + value_bytes(it) + SCALAR_BYTES).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR_BYTES,
    }
}

/// Follows a log.
#[derive(Debug)]
pub(super) struct LogReader {
    log: Arc<EventLog>,
    changes: watch::Receiver<u64>,
    /// The number of the last event that was read.
    after: u64,
    /// The number of the last dropped event that was reported.
    reported_gap: u64,
}

impl LogReader {
    /// Returns the next entry; waits for it. `None` once the log is closed and read.
    pub(super) async fn next(&mut self) -> Option<LogEntry> {
        loop {
            self.changes.mark_unchanged();
            {
                let state = self.log.lock();
                if state.last_dropped > self.after.max(self.reported_gap) {
                    self.reported_gap = state.last_dropped;
                    return Some(LogEntry::Gap);
                }
                if let Some(event) = state.next_after(self.after) {
                    self.after = event.seq();
                    return Some(LogEntry::Event(Arc::clone(event)));
                }
                if state.is_closed {
                    return None;
                }
            }
            self.changes.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk_core::{Call, Context, Definition, DynamicTool, Pipeline, Registry};
    use tool_sdk_core::{Risk, RiskClass, Schema, Session, ToolName};

    use super::*;

    /// Logs the events of `count` calls that each tell 100 bytes.
    async fn log_calls(limits: LogLimits, count: usize) -> Arc<EventLog> {
        let definition = Definition::new(ToolName::from_static("t"), "T.", Schema::default())
            .risk(Risk::new(RiskClass::Read));
        let tool = DynamicTool::new(definition, |_: Value, cx: Context| async move {
            cx.emit_output("x".repeat(100));
            "done"
        });
        let pipeline = Pipeline::new(Registry::builder().add(tool).build().unwrap());
        let mut events = pipeline.subscribe();
        let log = Arc::new(EventLog::new(limits));
        for _ in 0..count {
            pipeline.call(&Session::default(), Call::new("t", "{}")).await;
            while let Some(event) = events.try_recv() {
                log.push(Arc::new(LoggedEvent::new(event)));
            }
        }
        log.close();
        log
    }

    /// Returns how many gaps and how many events a reader from the start gets.
    async fn read(log: &Arc<EventLog>) -> (usize, usize) {
        let (mut reader, mut gaps, mut events) = (log.read_after(0), 0, 0);
        while let Some(entry) = reader.next().await {
            match entry {
                LogEntry::Gap => gaps += 1,
                LogEntry::Event(_) => events += 1,
            }
        }
        (gaps, events)
    }

    #[tokio::test]
    async fn keeps_the_last_events_within_its_limits() {
        let limits = LogLimits { max_signals: 100, max_steps: 100, max_bytes: 20_000 };
        // Each call is pending, started, tells something, and is completed.
        assert_eq!(read(&log_calls(limits, 10).await).await, (0, 40));
        let few = LogLimits { max_steps: 9, ..limits };
        assert_eq!(read(&log_calls(few, 10).await).await, (1, 19));
        let small = LogLimits { max_bytes: 500, ..limits };
        assert_eq!(read(&log_calls(small, 10).await).await, (1, 32));
    }

    #[test]
    fn the_size_of_a_value_counts_its_texts() {
        assert_eq!(value_bytes(&json!("abc")), 3);
        assert!(value_bytes(&json!({ "a": ["x".repeat(1000), 1] })) > 1000);
    }
}
