//! Calls that a server runs as tasks: asks for the state until the task has ended, answers its questions,
//! and fetches the result.
//!
//! A server of 2026-07-28 may make a task of any call. One of 2025-11-25 is asked to, and only for a tool
//! that requires it.
//!
//! **Invariant:** a task whose caller stops waiting is cancelled on the server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, CustomRequest, GetTaskParams,
    GetTaskRequest, InputRequests, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::PeerRequestOptions;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use super::notifications::ProgressSteps;
use super::{
    RmcpConnection, answer_input_requests, convert_via_json, invalid_result_error,
    parse_custom_result,
};
use crate::client::remote::{ErrorClass, RemoteCall, RemoteError, RemoteResult};

/// How long a server of 2025-11-25 should keep a task, in milliseconds.
const TASK_TTL_MS: u64 = 60 * 60 * 1000;
/// How often the state is asked for if the server does not say, and within which bounds if it does.
const DEFAULT_INTERVAL_MS: u64 = 1000;
const INTERVAL_BOUNDS_MS: [u64; 2] = [100, 60_000];
/// How long sending a cancellation may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than any call takes: the limit of the whole call ends it before.
const NO_SILENCE_LIMIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The state of a task, as servers of both protocols describe it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteTask {
    task_id: String,
    status: RemoteTaskStatus,
    status_message: Option<String>,
    /// In milliseconds, from a server of 2025-11-25.
    poll_interval: Option<u64>,
    poll_interval_ms: Option<u64>,
    input_requests: Option<InputRequests>,
    result: Option<Value>,
    error: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RemoteTaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl RemoteTask {
    fn interval(&self) -> Duration {
        let [least, most] = INTERVAL_BOUNDS_MS;
        let wanted = self.poll_interval_ms.or(self.poll_interval).unwrap_or(DEFAULT_INTERVAL_MS);
        Duration::from_millis(wanted.clamp(least, most))
    }
}

impl RmcpConnection {
    /// Calls a tool of a 2025-11-25 server as a task. A server that ignores it runs the call as usual.
    pub(super) async fn call_as_legacy_task(
        &self,
        call: &RemoteCall<'_>,
    ) -> Result<RemoteResult, RemoteError> {
        let params = json!({
            "name": call.tool, "arguments": call.arguments, "task": { "ttl": TASK_TTL_MS },
        });
        let request = CustomRequest::new("tools/call", Some(params));
        let request = ClientRequest::CustomRequest(request);
        let (response, steps) = self.await_response(request, call).await?;
        let response: Value = convert_via_json(&response).ok_or_else(invalid_result_error)?;
        match response.get("task").map(RemoteTask::deserialize) {
            Some(Ok(task)) => self.follow_task(&task.task_id, call, Some(steps)).await,
            Some(Err(_)) => Err(invalid_task_error()),
            None => parse_custom_result(response).ok_or_else(invalid_result_error),
        }
    }

    /// Waits until a task has ended, and returns its result. Cancels the task when the caller stops
    /// waiting. An error of the connection names the task, so that the caller can go on with another
    /// connection.
    pub(super) async fn follow_task(
        &self,
        id: &str,
        call: &RemoteCall<'_>,
        mut steps: Option<ProgressSteps>,
    ) -> Result<RemoteResult, RemoteError> {
        let mut cancel_on_drop = TaskGuard { connection: self, id: Some(id.to_owned()) };
        let followed = self.follow_to_end(id, call, &mut steps).await;
        match followed {
            Err(error) if error.class == ErrorClass::Connection => {
                cancel_on_drop.id = None;
                Err(RemoteError { task: Some(id.to_owned()), ..error })
            }
            Err(error) => Err(error),
            Ok(result) => {
                cancel_on_drop.id = None;
                Ok(result)
            }
        }
    }

    async fn follow_to_end(
        &self,
        id: &str,
        call: &RemoteCall<'_>,
        steps: &mut Option<ProgressSteps>,
    ) -> Result<RemoteResult, RemoteError> {
        let mut messages = StatusMessages::default();
        let mut answered = HashSet::new();
        loop {
            let task = self.fetch_task(id, call).await?;
            messages.report(task.status_message.as_deref(), call);
            match (task.status, self.is_older_server()) {
                (RemoteTaskStatus::Working, _) => {}
                (RemoteTaskStatus::Cancelled, _) => {
                    return Err(RemoteError::aborted("the server cancelled the task"));
                }
                // The server asks its questions while it is asked for the result.
                (_, true) => return self.fetch_result(id, call, steps).await,
                (RemoteTaskStatus::InputRequired, false) => {
                    self.answer_task(&task, call, &mut answered).await?;
                }
                (RemoteTaskStatus::Completed, false) => {
                    let result = task.result.and_then(parse_custom_result);
                    return result.ok_or_else(invalid_result_error);
                }
                (RemoteTaskStatus::Failed, false) => return Err(failure_error(&task)),
            }
            self.wait_for_change(task.interval(), call, steps).await;
        }
    }

    async fn fetch_task(&self, id: &str, call: &RemoteCall<'_>) -> Result<RemoteTask, RemoteError> {
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id)));
        let (response, _) = self.await_response(request, call).await?;
        convert_via_json(&response).ok_or_else(invalid_task_error)
    }

    /// Fetches the result of a 2025-11-25 server, which waits for the end of the task and asks its
    /// questions meanwhile.
    async fn fetch_result(
        &self,
        id: &str,
        call: &RemoteCall<'_>,
        steps: &mut Option<ProgressSteps>,
    ) -> Result<RemoteResult, RemoteError> {
        let params = json!({ "taskId": id });
        let request = CustomRequest::new("tasks/result", Some(params));
        let call = RemoteCall {
            timeout: NO_SILENCE_LIMIT,
            cancel: call.cancel.clone(),
            request_handler: call.request_handler,
            on_progress: call.on_progress,
            arguments: call.arguments,
            server: call.server,
            tool: call.tool,
            task_support: call.task_support,
        };
        let waiting = self.await_response(ClientRequest::CustomRequest(request), &call);
        tokio::pin!(waiting);
        let (response, _) = loop {
            tokio::select! {
                response = &mut waiting => break response?,
                () = report_next_step(steps, &call) => {}
            }
        };
        let response: Value = convert_via_json(&response).ok_or_else(invalid_result_error)?;
        parse_custom_result(response).ok_or_else(invalid_result_error)
    }

    /// Answers the questions of a task that were not answered before.
    async fn answer_task(
        &self,
        task: &RemoteTask,
        call: &RemoteCall<'_>,
        answered: &mut HashSet<String>,
    ) -> Result<(), RemoteError> {
        let mut requests = task.input_requests.clone().unwrap_or_default();
        requests.retain(|key, _| answered.insert(key.clone()));
        let Some(answers) = answer_input_requests(call, Some(requests)).await? else {
            return Ok(());
        };
        let params = UpdateTaskParams::new(task.task_id.as_str(), answers);
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        self.await_response(request, call).await.map(|_| ())
    }

    /// Waits until the state of a task should be asked for again: after the interval, or when the server
    /// notifies a change.
    async fn wait_for_change(
        &self,
        interval: Duration,
        call: &RemoteCall<'_>,
        steps: &mut Option<ProgressSteps>,
    ) {
        let [least, _] = INTERVAL_BOUNDS_MS;
        let (now, least) = (Instant::now(), Duration::from_millis(least));
        loop {
            tokio::select! {
                () = sleep_until(now + interval) => return,
                () = self.notifications.task_changed() => return sleep_until(now + least).await,
                () = report_next_step(steps, call) => {}
            }
        }
    }
}

/// Reports the next progress notification of the call that became the task.
async fn report_next_step(steps: &mut Option<ProgressSteps>, call: &RemoteCall<'_>) {
    if let Some(steps) = steps
        && let Some(step) = steps.next_step().await
    {
        return step.report_to(call.on_progress);
    }
    std::future::pending().await
}

/// Reports what the server says about the state of a task as progress.
#[derive(Default)]
struct StatusMessages {
    last: Option<String>,
    count: u64,
}

impl StatusMessages {
    fn report(&mut self, message: Option<&str>, call: &RemoteCall<'_>) {
        if let Some(message) = message
            && self.last.as_deref() != Some(message)
        {
            self.count += 1;
            self.last = Some(message.to_owned());
            (call.on_progress)(self.count, None, message.to_owned());
        }
    }
}

/// Cancels a task on the server when it is dropped.
struct TaskGuard<'c> {
    connection: &'c RmcpConnection,
    id: Option<String>,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let RmcpConnection { service, cancellations, runtime, .. } = self.connection;
        let service = Arc::clone(service);
        let cancellation = async move {
            let request = CancelTaskRequest::new(CancelTaskParams::new(id));
            let request = ClientRequest::CancelTaskRequest(request);
            let options = PeerRequestOptions::no_options();
            // If it cannot be sent, the server ends the task when it expires.
            let sent = service.peer().send_cancellable_request(request, options);
            if let Ok(Ok(handle)) = timeout(CANCEL_TIMEOUT, sent).await {
                let _ = timeout(CANCEL_TIMEOUT, handle.rx).await;
            }
        };
        cancellations.spawn_on(cancellation, runtime);
    }
}

fn invalid_task_error() -> RemoteError {
    RemoteError::protocol("the server's response is not a task")
}

fn failure_error(task: &RemoteTask) -> RemoteError {
    let said = task.error.as_ref().and_then(|error| error["message"].as_str());
    let said = said.or(task.status_message.as_deref()).unwrap_or("the server does not say why");
    RemoteError::protocol(format_args!("the task failed: {said}"))
}
