//! The requests about tasks, and the start of a task.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, CustomResult, ErrorCode, ErrorData, InputResponses, ProtocolVersion,
    ServerRequest, ServerResult, TASKS_EXTENSION_ID, TaskAckResult,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tool_sdk_core::{CallId, TaskSupport};

use super::task_notifications::notify_status;
use super::{CallTask, RELATED_TASK_KEY, TaskOwner, TaskRun, task_ttl};
use crate::server::call::{OutcomeFuture, SuspendableCall};
use crate::server::connection::Connection;
use crate::server::event_relay::{EventRelay, NotificationTarget};
use crate::server::listing::ProtocolEra;
use crate::server::message::MessageParams;
use crate::server::request_context::RequestContext;
use crate::server::response::HandlerResult;
use crate::server::suspended_calls::random_handle;

/// The methods of the tasks of 2025-11-25, and of the later extension.
const LEGACY_METHODS: &[&str] = &["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"];
const MODERN_METHODS: &[&str] = &["tasks/get", "tasks/update", "tasks/cancel"];

/// What a client reads about a task that it has cancelled.
const CANCELLED: &str = "the task was cancelled by request";

/// Whether a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskUse {
    /// The client waits for the result.
    Never,
    /// At once, as a client of 2025-11-25 asks for it, which may say how long the task is kept.
    AtOnce { ttl: Option<Duration> },
    /// Once the tool runs.
    OnceStarted(TaskSupport),
}

/// The member `task` of a call.
#[derive(Deserialize)]
struct TaskParams {
    ttl: Option<u64>,
}

/// Returns the error for a modern client that does not support tasks.
pub(super) fn missing_tasks_error() -> ErrorData {
    let lacking = json!({ "extensions": { TASKS_EXTENSION_ID: {} } });
    ErrorData::missing_required_client_capability(
        ClientCapabilities::deserialize(&lacking).unwrap_or_default(),
    )
}

fn not_found(words: String) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None)
}

/// The start of a task.
impl Connection {
    /// Returns true if a tool of the client can be run as a task.
    pub(crate) fn has_task_tools(&self) -> bool {
        let view = self.toolset_view();
        view.permitted_definitions().any(|it| it.task_support != TaskSupport::Forbidden)
    }

    /// Returns the capability of 2025-11-25, which later revisions do not have.
    pub(crate) fn legacy_task_capability(&self) -> Value {
        let mut capability = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        if self.can_list_tasks() {
            capability["list"] = json!({});
        }
        capability
    }

    /// Returns true if the client may list its tasks: the server tells it apart from other clients.
    fn can_list_tasks(&self) -> bool {
        self.task_owner(ProtocolEra::Legacy).is_identified()
    }

    /// Returns whether a call becomes a task.
    pub(crate) fn task_use(
        &self,
        tool: &str,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Result<TaskUse, ErrorData> {
        let view = self.toolset_view();
        let support = view.definition(tool).map(|it| it.task_support).unwrap_or_default();
        if cx.era() == ProtocolEra::Modern {
            return match (support, cx.client.tasks) {
                (TaskSupport::Forbidden, _) | (TaskSupport::Optional, false) => Ok(TaskUse::Never),
                (TaskSupport::Required, false) => Err(missing_tasks_error()),
                (support, true) => Ok(TaskUse::OnceStarted(support)),
            };
        }
        let asked = match has_tasks(&cx.version) {
            true => params.member::<TaskParams>("task")?,
            false => None,
        };
        match (support, asked) {
            (TaskSupport::Required, None) => Err(not_found(format!(
                "`{tool}` can only be called as a task, with the member `task` of 2025-11-25"
            ))),
            (_, None) => Ok(TaskUse::Never),
            (TaskSupport::Forbidden, Some(_)) => {
                Err(not_found(format!("`{tool}` cannot be called as a task")))
            }
            (_, Some(asked)) => Ok(TaskUse::AtOnce { ttl: asked.ttl.map(Duration::from_millis) }),
        }
    }

    /// Adds a task for a call. Fails if too many tasks of the client run.
    pub(crate) fn add_task(
        &self,
        call: &SuspendableCall,
        tool: &str,
        ttl: Option<Duration>,
        era: ProtocolEra,
    ) -> Result<Arc<CallTask>, ErrorData> {
        let limit = call.view.definition(tool).and_then(|it| it.timeout);
        let task = Arc::new(CallTask::new(
            random_handle()?,
            self.task_owner(era),
            task_ttl(ttl, limit),
            self.approval_scope(),
            call.cancel.clone(),
        ));
        self.server.tasks.insert(&task)?;
        Ok(task)
    }

    /// Lets the call of a task run on, and returns the result that names the task.
    pub(crate) fn start_task(
        &self,
        task: Arc<CallTask>,
        mut run: TaskRun,
        cx: &RequestContext,
    ) -> HandlerResult {
        let (era, server) = (cx.era(), &self.server);
        if era == ProtocolEra::Legacy {
            run.call.outcome = self.relay_events(&task, run.call.id.clone(), run.call.outcome, cx);
            let notifying = notify_status(Arc::clone(&task), self.sink.clone());
            tokio::spawn(self.closed.clone().run_until_cancelled_owned(notifying));
        }
        let created = match era {
            ProtocolEra::Legacy => json!({ "task": task.to_json() }),
            ProtocolEra::Modern => {
                let mut created = task.to_json();
                created["resultType"] = "task".into();
                created
            }
        };
        tokio::spawn(run.run(task, Arc::clone(&server.tasks), server.shutdown.clone()));
        self.json_result(era, created)
    }

    /// Returns the call of a client of 2025-11-25 with its notifications, which go where those without a
    /// request go: the stream of the request ends with its result.
    fn relay_events(
        &self,
        task: &CallTask,
        call: CallId,
        outcome: OutcomeFuture,
        cx: &RequestContext,
    ) -> OutcomeFuture {
        let target = NotificationTarget {
            sink: self.sink.clone(),
            token: cx.meta.get_progress_token(),
            level: Some(self.log_threshold.get()),
            task: Some(task.id.clone()),
        };
        let cancel = task.call_cancel.clone();
        match EventRelay::subscribe(&self.server.pipeline, &call, target) {
            Some(relay) => Box::pin(async move { relay.forward_during(outcome, &cancel).await }),
            None => outcome,
        }
    }

    /// Returns whose the tasks of this client are.
    pub(crate) fn task_owner(&self, era: ProtocolEra) -> TaskOwner {
        TaskOwner {
            principal: self.principal.as_ref().map(|principal| principal.name().to_owned()),
            streams: self.is_at_streams().then(|| self.session().id().to_owned()),
            era,
        }
    }

    fn json_result(&self, era: ProtocolEra, result: Value) -> HandlerResult {
        self.result(era, ServerResult::CustomResult(CustomResult::new(result)))
    }
}

/// The requests about tasks.
impl Connection {
    /// Returns the result of a request that is answered at once; `None` for one that waits.
    pub(crate) fn answer_task_request(
        &self,
        method: &str,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Option<HandlerResult> {
        let era = cx.era();
        let is_known = match era {
            ProtocolEra::Legacy if method == "tasks/list" => self.can_list_tasks(),
            ProtocolEra::Legacy => LEGACY_METHODS.contains(&method),
            ProtocolEra::Modern => MODERN_METHODS.contains(&method),
        };
        if !is_known || (era == ProtocolEra::Legacy && !has_tasks(&cx.version)) {
            return Some(Err(not_found(method.to_owned())));
        }
        if era == ProtocolEra::Modern && !cx.client.tasks {
            return Some(Err(missing_tasks_error()));
        }
        match (era, method) {
            (_, "tasks/result") => None,
            (_, "tasks/list") => Some(self.list_tasks()),
            (ProtocolEra::Legacy, _) => Some(self.answer_legacy(method, params)),
            (ProtocolEra::Modern, _) => Some(self.answer_modern(method, params)),
        }
    }

    fn answer_modern(&self, method: &str, params: &MessageParams) -> HandlerResult {
        let task = self.find_task(params, ProtocolEra::Modern)?;
        match method {
            "tasks/get" => {
                task.note_result_read();
                let mut found = task.to_detailed_json();
                found["resultType"] = "complete".into();
                return self.json_result(ProtocolEra::Modern, found);
            }
            "tasks/update" => {
                let answers: InputResponses = params.required("inputResponses")?;
                task.accept_answers(&answers);
            }
            _ => task.cancel(CANCELLED),
        }
        self.result(ProtocolEra::Modern, ServerResult::TaskAckResult(TaskAckResult::new()))
    }

    fn answer_legacy(&self, method: &str, params: &MessageParams) -> HandlerResult {
        let task = self.find_task(params, ProtocolEra::Legacy)?;
        if method == "tasks/cancel" {
            if task.status().is_terminal() {
                let words = "the task has ended, so it cannot be cancelled";
                return Err(ErrorData::invalid_params(words, None));
            }
            task.cancel(CANCELLED);
        }
        self.json_result(ProtocolEra::Legacy, task.to_json())
    }

    /// Lists all tasks of a client of 2025-11-25 in one page.
    fn list_tasks(&self) -> HandlerResult {
        let tasks = self.server.tasks.list(&self.task_owner(ProtocolEra::Legacy));
        let tasks: Vec<Value> = tasks.iter().map(|task| task.to_json()).collect();
        self.json_result(ProtocolEra::Legacy, json!({ "tasks": tasks }))
    }

    fn find_task(
        &self,
        params: &MessageParams,
        era: ProtocolEra,
    ) -> Result<Arc<CallTask>, ErrorData> {
        let id: String = params.required("taskId")?;
        self.server.tasks.find(&id, &self.task_owner(era))
    }

    /// Waits for the result of a task. The client of 2025-11-25 is asked meanwhile.
    pub(crate) async fn task_result(
        &self,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> HandlerResult {
        let task = self.find_task(params, ProtocolEra::Legacy)?;
        let mut changes = task.watch();
        while !changes.borrow_and_update().status().is_terminal() {
            if task.open_requests().is_empty() {
                // The task is not dropped while it is waited for.
                let _ = changes.changed().await;
            } else {
                self.ask_for_task(&task, cx).await?;
            }
        }
        task.note_result_read();
        let mut result = task.result()?;
        result["_meta"][RELATED_TASK_KEY] = json!({ "taskId": task.id });
        self.json_result(ProtocolEra::Legacy, result)
    }

    /// Asks the client one question of a task. A client that answers with an error does not answer;
    /// one that is gone is asked by its next request for the result.
    async fn ask_for_task(&self, task: &CallTask, cx: &RequestContext) -> Result<(), ErrorData> {
        let _asking = task.asking.lock().await;
        let Some((key, request)) = task.open_requests().into_iter().next() else { return Ok(()) };
        let mut request = json!(request);
        request["params"]["_meta"][RELATED_TASK_KEY] = json!({ "taskId": task.id });
        let request = ServerRequest::deserialize(&request)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let mut changes = task.watch();
        let asked = async {
            let gone = |_| ErrorData::internal_error("the client is gone", None);
            self.outgoing.send_request(&cx.sink, request).await.map_err(gone)
        };
        let is_closed = changes.wait_for(|state| state.status().is_terminal());
        let answer = tokio::select! {
            answer = asked => answer?,
            _ = is_closed => return Ok(()),
        };
        match answer {
            Ok(answer) => task.accept_answers(&[(key.clone(), answer)].into()),
            Err(_) => task.drop_input(&key),
        }
        if task.open_requests().contains_key(&key) {
            // The answer has not the form that was asked for.
            task.drop_input(&key);
        }
        Ok(())
    }
}

/// Returns true if a protocol version with a handshake has tasks.
fn has_tasks(version: &ProtocolVersion) -> bool {
    *version >= ProtocolVersion::V_2025_11_25
}
