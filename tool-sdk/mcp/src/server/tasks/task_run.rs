//! Drives the call of a task until it ends, and removes the task when it expires.

use std::sync::Arc;

use rmcp::model::ErrorData;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{EventKind, Outcome, Subscription};

use super::{CallTask, MAX_KEPT_BYTES, MAX_RESULT_BYTES, TaskStore};
use crate::server::call::{AwaitedInput, ResultSupport, SuspendableCall};

/// The call of a task, and how its result is written.
pub(crate) struct TaskRun {
    pub(crate) call: SuspendableCall,
    /// The input that the call waits for already.
    pub(crate) awaited: Option<AwaitedInput>,
    pub(crate) tool: String,
    pub(crate) support: ResultSupport,
}

impl TaskRun {
    /// Runs the call to its end, and keeps the task until it expires.
    pub(super) async fn run(
        self,
        task: Arc<CallTask>,
        store: Arc<TaskStore>,
        shutdown: CancellationToken,
    ) {
        tokio::select! {
            ended = timeout(task.ttl, self.drive(&task, &store)) => if ended.is_err() {
                task.cancel("the task expired");
            },
            () = shutdown.cancelled() => task.cancel("the server shuts down"),
        }
        let age = task.created_at.elapsed().unwrap_or_default();
        let (id, rest) = (task.id.clone(), task.ttl.saturating_sub(age));
        let mut changes = task.watch();
        // From now on the store keeps the task, and may drop it for a new one before it expires.
        drop(task);
        let dropped = async { while changes.changed().await.is_ok() {} };
        tokio::select! {
            () = sleep(rest) => store.remove(&id),
            () = shutdown.cancelled() => store.remove(&id),
            () = dropped => {}
        }
    }

    async fn drive(self, task: &CallTask, store: &TaskStore) {
        let Self { mut call, awaited, tool, support } = self;
        if let Some(awaited) = awaited {
            task.add_input(awaited);
        }
        let mut events = call.trigger.take().map(|trigger| trigger.events);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(pending) = call.approvals.recv() => {
                    task.add_input(AwaitedInput::Approval(pending));
                }
                Some(questions) = call.questions.recv() => {
                    task.add_input(AwaitedInput::Questions(questions));
                }
                message = next_message(&mut events) => task.set_message(&message),
                outcome = &mut call.outcome => break outcome,
            }
        };
        call.cancel_on_drop.disarm();
        let result = to_result(&call, outcome, &tool, support);
        let size = result.as_ref().map_or(0, |result| result.to_string().len());
        match store.has_room(&task.owner, size) {
            true => task.end(result, size),
            false => {
                let words = format!(
                    "the call has ended, but its result of {size} bytes is not kept: one may have \
                     {MAX_RESULT_BYTES} bytes, and all of yours {MAX_KEPT_BYTES} bytes"
                );
                task.end(Err(ErrorData::internal_error(words, None)), 0);
            }
        }
    }
}

/// Returns the result that the request of the call would have had.
fn to_result(
    call: &SuspendableCall,
    outcome: Option<Outcome>,
    tool: &str,
    support: ResultSupport,
) -> Result<Value, ErrorData> {
    let outcome = outcome
        .ok_or_else(|| ErrorData::internal_error("the call ended without a result", None))?;
    call.to_result(outcome, tool, support).map(|result| json!(result))
}

/// Waits until the tool says something about its progress.
async fn next_message(events: &mut Option<Subscription>) -> String {
    while let Some(events) = events
        && let Some(event) = events.recv().await
    {
        if let EventKind::Progress { message, .. } = event.kind {
            return message;
        }
    }
    std::future::pending().await
}
