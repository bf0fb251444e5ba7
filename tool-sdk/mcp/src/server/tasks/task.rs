//! The state of one task.
//!
//! **Invariant:** what a client sees of a task that has ended never changes again.

use std::time::{Duration, SystemTime};

use rmcp::model::{ErrorData, InputRequests, InputResponses, TaskStatus};
use serde_json::{Value, json};
use tokio::sync::watch;
use tool_sdk_core::GrantScope;
use tool_sdk_core::internal::{LazyCancelToken, rfc3339};

use super::POLL_INTERVAL;
use super::task_input::TaskInput;
use crate::server::call::AwaitedInput;
use crate::server::listing::ProtocolEra;

/// The longest status message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// Whose a task is. Clients of each era see only tasks of theirs, whose results have their form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskOwner {
    /// The name of the principal; anonymous clients over HTTP are one principal.
    pub(crate) principal: Option<String>,
    /// The session of a client at two streams, which ends with its connection.
    pub(crate) streams: Option<String>,
    pub(crate) era: ProtocolEra,
}

impl TaskOwner {
    /// Returns true if the server tells the owner apart from other clients.
    pub(super) fn is_identified(&self) -> bool {
        self.principal.is_some() || self.streams.is_some()
    }
}

/// A call that runs as a task.
pub(crate) struct CallTask {
    pub(crate) id: String,
    pub(super) owner: TaskOwner,
    pub(super) created_at: SystemTime,
    pub(super) ttl: Duration,
    /// The widest scope of an approval.
    approval_scope: GrantScope,
    /// Cancels the call.
    pub(super) call_cancel: LazyCancelToken,
    /// Held while a client of 2025-11-25 is asked, so that it is asked once.
    pub(super) asking: tokio::sync::Mutex<()>,
    state: watch::Sender<TaskState>,
}

/// What changes of a task.
pub(super) struct TaskState {
    progress: TaskProgress,
    /// What the tool said last about its progress, or why the task ended.
    message: Option<String>,
    updated_at: SystemTime,
    inputs: Vec<TaskInput>,
    /// How many inputs the task has waited for.
    input_count: u32,
    /// Whether the call has ended, which takes a moment after a cancellation.
    has_ended_call: bool,
    /// Whether the client has requested the result after the task ended.
    is_result_read: bool,
}

enum TaskProgress {
    Running,
    /// With the result of the call, or with the error that its request would have had.
    Ended {
        result: Result<Value, ErrorData>,
        status: TaskStatus,
        /// The size of the result.
        size: usize,
    },
    Cancelled,
}

impl TaskState {
    pub(super) fn status(&self) -> TaskStatus {
        match &self.progress {
            TaskProgress::Running if self.inputs.iter().any(|input| !input.is_settled()) => {
                TaskStatus::InputRequired
            }
            TaskProgress::Running => TaskStatus::Working,
            TaskProgress::Ended { status, .. } => *status,
            TaskProgress::Cancelled => TaskStatus::Cancelled,
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.progress, TaskProgress::Running)
    }

    fn end(&mut self, progress: TaskProgress, message: Option<String>) {
        if self.is_running() {
            self.progress = progress;
            self.message = message;
            self.inputs.clear();
            self.updated_at = SystemTime::now();
        }
    }
}

impl CallTask {
    pub(super) fn new(
        id: String,
        owner: TaskOwner,
        ttl: Duration,
        approval_scope: GrantScope,
        call_cancel: LazyCancelToken,
    ) -> Self {
        let created_at = SystemTime::now();
        let state = TaskState {
            progress: TaskProgress::Running,
            message: None,
            updated_at: created_at,
            inputs: Vec::new(),
            input_count: 0,
            has_ended_call: false,
            is_result_read: false,
        };
        Self {
            id,
            owner,
            created_at,
            ttl,
            approval_scope,
            call_cancel,
            asking: tokio::sync::Mutex::default(),
            state: watch::Sender::new(state),
        }
    }

    /// Returns a receiver of changes.
    pub(super) fn watch(&self) -> watch::Receiver<TaskState> {
        self.state.subscribe()
    }

    pub(super) fn status(&self) -> TaskStatus {
        self.state.borrow().status()
    }

    /// Sets the message that clients show while the task runs.
    pub(super) fn set_message(&self, message: &str) {
        let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
        self.state.send_if_modified(|state| {
            let is_new = state.is_running() && !message.is_empty();
            if is_new {
                state.message = Some(message);
                state.updated_at = SystemTime::now();
            }
            is_new
        });
    }

    /// Adds input that the call waits for.
    pub(super) fn add_input(&self, awaited: AwaitedInput) {
        self.state.send_modify(|state| {
            if state.is_running() {
                state.input_count += 1;
                state.inputs.push(TaskInput::new(state.input_count, awaited));
                state.updated_at = SystemTime::now();
            }
        });
    }

    /// Returns the questions that are not answered.
    pub(super) fn open_requests(&self) -> InputRequests {
        let state = self.state.borrow();
        let open = state.inputs.iter().filter(|input| !input.is_settled());
        open.flat_map(|input| input.open_requests(self.approval_scope)).collect()
    }

    /// Delivers answers; those to no open question are ignored.
    pub(super) fn accept_answers(&self, answers: &InputResponses) {
        self.state.send_modify(|state| {
            let inputs = std::mem::take(&mut state.inputs);
            let accept = |input: TaskInput| input.accept(answers, self.approval_scope);
            state.inputs = inputs.into_iter().filter_map(accept).collect();
            state.updated_at = SystemTime::now();
        });
    }

    /// Gives up the input that this question belongs to: the call goes on without an answer.
    pub(super) fn drop_input(&self, key: &str) {
        self.state.send_modify(|state| {
            state.inputs.retain(|input| !input.has_key(key));
            state.updated_at = SystemTime::now();
        });
    }

    /// Cancels the task and its call, and says why.
    pub(super) fn cancel(&self, reason: &str) {
        let reason = Some(reason.to_owned());
        self.state.send_modify(|state| state.end(TaskProgress::Cancelled, reason));
        self.call_cancel.token().cancel();
    }

    /// Ends the task with the result of its call.
    pub(super) fn end(&self, result: Result<Value, ErrorData>, size: usize) {
        let (status, message) = match &result {
            Err(error) => (TaskStatus::Failed, Some(error.message.clone().into_owned())),
            // Only later revisions tell a failed call from one that could not be made.
            Ok(result) if self.owner.era == ProtocolEra::Legacy && result["isError"] == true => {
                let text = result["content"][0]["text"].as_str().unwrap_or_default();
                (TaskStatus::Failed, Some(text.chars().take(MAX_MESSAGE_CHARS).collect()))
            }
            Ok(_) => (TaskStatus::Completed, None),
        };
        let progress = TaskProgress::Ended { result, status, size };
        self.state.send_modify(|state| {
            state.has_ended_call = true;
            state.end(progress, message);
        });
    }

    /// Returns true if the call has ended, so that the task costs nothing but memory.
    pub(super) fn has_ended_call(&self) -> bool {
        self.state.borrow().has_ended_call
    }

    /// Returns true if the task has a result that the client has not read.
    pub(super) fn has_unread_result(&self) -> bool {
        let state = self.state.borrow();
        matches!(state.progress, TaskProgress::Ended { .. }) && !state.is_result_read
    }

    /// Notes that the client reads the result, if there is one.
    pub(super) fn note_result_read(&self) {
        // No change for those who watch the task.
        self.state.send_if_modified(|state| {
            state.is_result_read = !state.is_running();
            false
        });
    }

    /// Returns the size of the result that is kept.
    pub(super) fn result_bytes(&self) -> usize {
        match self.state.borrow().progress {
            TaskProgress::Ended { size, .. } => size,
            TaskProgress::Running | TaskProgress::Cancelled => 0,
        }
    }

    /// Returns the result of a task that has ended.
    pub(super) fn result(&self) -> Result<Value, ErrorData> {
        let state = self.state.borrow();
        match &state.progress {
            TaskProgress::Ended { result, .. } => result.clone(),
            TaskProgress::Cancelled => {
                Err(ErrorData::internal_error(state.message.clone().unwrap_or_default(), None))
            }
            TaskProgress::Running => {
                Err(ErrorData::invalid_request("the task has not ended", None))
            }
        }
    }

    /// Returns the task as the protocol describes it, without what belongs to its status.
    pub(super) fn to_json(&self) -> Value {
        let (ttl, interval) = match self.owner.era {
            ProtocolEra::Legacy => ("ttl", "pollInterval"),
            ProtocolEra::Modern => ("ttlMs", "pollIntervalMs"),
        };
        let state = self.state.borrow();
        let mut task = json!({
            "taskId": self.id,
            "status": state.status(),
            "createdAt": rfc3339(self.created_at),
            "lastUpdatedAt": rfc3339(state.updated_at),
            ttl: to_millis(self.ttl),
            interval: to_millis(POLL_INTERVAL),
        });
        if let Some(message) = &state.message {
            task["statusMessage"] = message.as_str().into();
        }
        task
    }

    /// Returns the task with its questions, its result or its error.
    pub(super) fn to_detailed_json(&self) -> Value {
        let mut task = self.to_json();
        match &self.state.borrow().progress {
            TaskProgress::Ended { result: Ok(result), .. } => task["result"] = result.clone(),
            TaskProgress::Ended { result: Err(error), .. } => task["error"] = json!(error),
            TaskProgress::Cancelled | TaskProgress::Running => {}
        }
        let open = self.open_requests();
        if !open.is_empty() {
            task["inputRequests"] = json!(open);
        }
        task
    }
}

fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
