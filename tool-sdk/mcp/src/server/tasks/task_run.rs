//! Drives the call of a task until it ends, and removes the task when it expires.

use std::sync::Arc;

use rmcp::model::{CustomNotification, ErrorData, ServerNotification};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{EventKind, Outcome, Subscription};

use super::{MAX_KEPT_BYTES, MAX_RESULT_BYTES, Task, TaskStore};
use crate::server::call::{AwaitedInput, ResultSupport, SuspendableCall};
use crate::server::message_sink::MessageSink;

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
        task: Arc<Task>,
        store: Arc<TaskStore>,
        shutdown: CancellationToken,
    ) {
        let has_ended = tokio::select! {
            ended = timeout(task.ttl, self.drive(&task, &store)) => ended.is_ok(),
            () = shutdown.cancelled() => false,
        };
        if !has_ended {
            task.cancel();
        }
        let age = task.created_at.elapsed().unwrap_or_default();
        shutdown.run_until_cancelled(sleep(task.ttl.saturating_sub(age))).await;
        store.remove(&task.id);
    }

    async fn drive(self, task: &Task, store: &TaskStore) {
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

/// Notifies a client of 2025-11-25 when the status of its task changes, until the task has ended.
pub(super) async fn notify_status(task: Arc<Task>, sink: MessageSink) {
    let mut changes = task.watch();
    let mut notified = None;
    loop {
        let status = changes.borrow_and_update().status();
        if notified.is_some_and(|before| before != status) {
            let notification =
                CustomNotification::new("notifications/tasks/status", Some(task.to_json()));
            let notification = ServerNotification::CustomNotification(notification);
            if sink.notify(notification).await.is_err() {
                return;
            }
        }
        notified = Some(status);
        if status.is_terminal() || changes.changed().await.is_err() {
            return;
        }
    }
}
