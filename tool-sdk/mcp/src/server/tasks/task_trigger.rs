//! When the call of a modern client becomes a task.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tool_sdk_core::{EventKind, Subscription, TaskSupport};

/// How long a tool may take before its call becomes a task, if the client may wait for the result. Most
/// calls end before, so that their clients need not poll.
const OPTIONAL_DELAY: Duration = Duration::from_millis(500);

/// Waits until a call becomes a task: its tool runs, and has taken a moment.
pub(crate) struct TaskTrigger {
    pub(super) events: Subscription,
    support: TaskSupport,
    /// When the call becomes a task, once its tool runs.
    due: Option<Instant>,
}

impl TaskTrigger {
    pub(crate) fn new(events: Subscription, support: TaskSupport) -> Self {
        Self { events, support, due: None }
    }

    /// Returns true if the client must not wait for the result.
    pub(crate) fn is_required(&self) -> bool {
        self.support == TaskSupport::Required
    }

    /// Waits until the call becomes a task.
    pub(crate) async fn wait(&mut self) {
        let due = loop {
            if let Some(due) = self.due {
                break due;
            }
            match self.events.recv().await {
                Some(event) if matches!(event.kind, EventKind::Started { .. }) => {
                    let delay = if self.is_required() { Duration::ZERO } else { OPTIONAL_DELAY };
                    self.due = Some(Instant::now() + delay);
                }
                Some(_) => {}
                None => std::future::pending().await,
            }
        };
        sleep_until(due).await;
    }

    /// Returns true if the tool runs: what it asks is asked by the task.
    pub(crate) fn has_started(&self) -> bool {
        self.due.is_some()
    }
}
