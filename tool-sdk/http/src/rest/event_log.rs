//! A bounded log of events, which any number of readers follow at their own pace.
//!
//! A reader has a cursor and no queue, so a slow reader costs no memory. What tools report while
//! they run is dropped from the log first; a reader that is behind learns that events are missing.
//!
//! **Invariant:** the size of a log is bounded, and writing never waits for a reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tool_sdk_core::{EventKind, ToolEvent};

/// How many signals of running tools are kept, and how many bytes of output.
const MAX_SIGNALS: usize = 1024;
const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// How many other events are kept.
const MAX_STEPS: usize = 8192;

/// The last events of a session, of a user, or of all sessions.
#[derive(Debug)]
pub(super) struct EventLog {
    state: Mutex<LogState>,
    /// The number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct LogState {
    signals: VecDeque<Arc<ToolEvent>>,
    steps: VecDeque<Arc<ToolEvent>>,
    output_bytes: usize,
    /// The number of the last event that was dropped.
    last_dropped: u64,
    is_closed: bool,
}

/// What a reader gets.
#[derive(Debug)]
pub(super) enum LogEntry {
    /// The next event.
    Event(Arc<ToolEvent>),
    /// Some events after the reader's last one were dropped; the others follow.
    Gap,
}

impl Default for EventLog {
    fn default() -> Self {
        Self { state: Mutex::default(), last: watch::Sender::new(0) }
    }
}

impl EventLog {
    /// A poisoned lock still guards a whole log: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event; the numbers grow.
    pub(super) fn push(&self, event: Arc<ToolEvent>) {
        let seq = event.seq;
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
    fn push(&mut self, event: Arc<ToolEvent>) {
        if !is_signal(&event.kind) {
            self.steps.push_back(event);
            if self.steps.len() > MAX_STEPS {
                self.note_dropped(|state| state.steps.pop_front());
            }
            return;
        }
        self.output_bytes += output_bytes(&event.kind);
        self.signals.push_back(event);
        while self.signals.len() > MAX_SIGNALS || self.output_bytes > MAX_OUTPUT_BYTES {
            self.note_dropped(|state| state.signals.pop_front());
        }
    }

    fn note_dropped(&mut self, pop: impl FnOnce(&mut Self) -> Option<Arc<ToolEvent>>) {
        if let Some(event) = pop(self) {
            self.output_bytes -= output_bytes(&event.kind);
            self.last_dropped = self.last_dropped.max(event.seq);
        }
    }

    /// Returns the oldest event after the number `after`.
    fn next_after(&self, after: u64) -> Option<&Arc<ToolEvent>> {
        let first = |events: &'_ VecDeque<Arc<ToolEvent>>| {
            let at = events.partition_point(|it| it.seq <= after);
            (at < events.len()).then_some(at)
        };
        let signal = first(&self.signals).map(|at| &self.signals[at]);
        let step = first(&self.steps).map(|at| &self.steps[at]);
        signal.into_iter().chain(step).min_by_key(|it| it.seq)
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

fn output_bytes(kind: &EventKind) -> usize {
    match kind {
        EventKind::Output { text } => text.len(),
        _ => 0,
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
                    self.after = event.seq;
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
