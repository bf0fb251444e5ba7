//! Notifies clients when the status of their tasks changes: one of 2025-11-25 of all its tasks, and a
//! modern one of those that its `subscriptions/listen` request names.

use std::sync::Arc;

use futures_util::future::join_all;
use rmcp::model::{
    CustomNotification, ErrorData, GetMeta as _, RequestId, ServerNotification, TaskStatus,
};
use serde::Deserialize;

use super::task_requests::missing_tasks_error;
use super::{CallTask, MAX_TASKS};
use crate::server::connection::Connection;
use crate::server::message::MessageParams;
use crate::server::message_sink::MessageSink;
use crate::server::request_context::RequestContext;

/// The part of the filter of a subscription that is about tasks.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TaskFilter {
    task_ids: Option<Vec<String>>,
}

impl Connection {
    /// Returns the tasks that a modern client subscribes to; ids of other tasks are left out.
    pub(crate) fn subscribed_tasks(
        &self,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Result<Vec<Arc<CallTask>>, ErrorData> {
        let filter: TaskFilter = params.member("notifications")?.unwrap_or_default();
        let Some(ids) = filter.task_ids else { return Ok(Vec::new()) };
        if !cx.client.tasks {
            return Err(missing_tasks_error());
        }
        let owner = self.task_owner(cx.era());
        let own =
            ids.iter().take(MAX_TASKS).filter_map(|id| self.server.tasks.find(id, &owner).ok());
        Ok(own.collect())
    }
}

/// Notifies a client of 2025-11-25 of one task until that has ended. The result of its call has said that
/// the task works.
pub(super) async fn notify_status(task: Arc<CallTask>, sink: MessageSink) {
    notify_each_status(&task, Some(TaskStatus::Working), &sink, None).await;
}

/// Notifies a modern client of these tasks until they have ended: of their state now, which may have
/// changed since it subscribed, and of each change.
pub(crate) async fn notify_subscriber(tasks: &[Arc<CallTask>], sink: &MessageSink, id: &RequestId) {
    join_all(tasks.iter().map(|task| notify_each_status(task, None, sink, Some(id)))).await;
}

/// Sends a notification whenever the status of a task is not the one that the client knows, until the
/// task has ended or the client is gone.
async fn notify_each_status(
    task: &CallTask,
    mut known: Option<TaskStatus>,
    sink: &MessageSink,
    subscription: Option<&RequestId>,
) {
    let mut changes = task.watch();
    loop {
        let status = changes.borrow_and_update().status();
        if known != Some(status)
            && sink.notify(status_notification(task, subscription)).await.is_err()
        {
            return;
        }
        known = Some(status);
        if status.is_terminal() || changes.changed().await.is_err() {
            return;
        }
    }
}

/// Returns the notification of a task: for a subscription it has the whole state.
fn status_notification(task: &CallTask, subscription: Option<&RequestId>) -> ServerNotification {
    let (method, params) = match subscription {
        Some(_) => ("notifications/tasks", task.to_detailed_json()),
        None => ("notifications/tasks/status", task.to_json()),
    };
    let notification = CustomNotification::new(method, Some(params));
    let mut notification = ServerNotification::CustomNotification(notification);
    if let Some(id) = subscription {
        notification.get_meta_mut().set_subscription_id(id.clone());
    }
    notification
}
