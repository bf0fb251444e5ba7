//! One agent that was started: its conversation, its state, what it reports.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_sdk_core::{Session, ToolError};

use crate::agent_loop::{AgentOutcome, AgentStop, SteeringQueue};
use crate::agents::AgentDefinition;
use crate::transcript::Transcript;

/// What an agent reports to the one that started it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SubagentReport {
    /// The id, such as `explore-1`.
    pub id: String,
    /// The name of the agent.
    pub agent: String,
    /// The newest task.
    pub task: String,
    /// Whether it works.
    pub status: SubagentStatus,
    /// The text of its last message.
    pub answer: String,
    /// The turns of all its runs.
    pub turns: u32,
    /// The calls of all its runs.
    pub calls: u64,
    /// The tokens of all its runs.
    pub tokens: u64,
    /// The cost of all its runs in US dollars; 0 when the price is unknown.
    pub cost: f64,
}

impl SubagentReport {
    /// Returns the number of calls in words, such as `1 call`.
    pub(super) fn count_calls(&self) -> String {
        format!("{} call{}", self.calls, if self.calls == 1 { "" } else { "s" })
    }
}

/// Whether an agent works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SubagentStatus {
    /// It works.
    Running,
    /// It has answered.
    Finished,
    /// It stopped before it had an answer, for this reason.
    Stopped(String),
    /// It was cancelled.
    Cancelled,
}

/// An agent that was started.
pub(super) struct SubagentRecord {
    id: String,
    number: usize,
    definition: AgentDefinition,
    parent_session: String,
    session_id: String,
    steering: SteeringQueue,
    state: Mutex<RecordState>,
    is_running: watch::Sender<bool>,
}

struct RecordState {
    transcript: Transcript,
    report: SubagentReport,
    token: CancellationToken,
}

impl SubagentRecord {
    /// Creates an agent that is about to run.
    pub(super) fn new(
        number: usize,
        definition: AgentDefinition,
        parent: &Session,
        task: &str,
        token: CancellationToken,
    ) -> Self {
        let id = format!("{}-{number}", definition.name());
        let report = SubagentReport {
            id: id.clone(),
            agent: definition.name().to_owned(),
            task: task.to_owned(),
            status: SubagentStatus::Running,
            answer: String::new(),
            turns: 0,
            calls: 0,
            tokens: 0,
            cost: 0.0,
        };
        let state = RecordState { transcript: Transcript::from_user(task), report, token };
        Self {
            session_id: format!("{}/{id}", parent.id()),
            parent_session: parent.id().to_owned(),
            id,
            number,
            definition,
            steering: SteeringQueue::default(),
            state: Mutex::new(state),
            is_running: watch::Sender::new(true),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn definition(&self) -> &AgentDefinition {
        &self.definition
    }

    pub(super) fn session_id(&self) -> &str {
        &self.session_id
    }

    pub(super) fn parent_session(&self) -> &str {
        &self.parent_session
    }

    pub(super) fn is_started_by(&self, session: &Session) -> bool {
        self.parent_session == session.id()
    }

    pub(super) fn steering(&self) -> &SteeringQueue {
        &self.steering
    }

    pub(super) fn is_running(&self) -> bool {
        *self.is_running.borrow()
    }

    pub(super) fn report(&self) -> SubagentReport {
        self.state().report.clone()
    }

    /// Waits until the agent does not work.
    pub(super) async fn wait_until_ended(&self) {
        let _ = self.is_running.subscribe().wait_for(|is_running| !is_running).await;
    }

    pub(super) fn cancel_run(&self) {
        self.state().token.cancel();
    }

    /// Returns a guard that cancels the run when it is dropped.
    pub(super) fn cancel_guard(&self) -> DropGuard {
        self.state().token.clone().drop_guard()
    }

    /// Sends a message to a running agent; returns whether it works.
    pub(super) fn push_message(&self, message: &str) -> bool {
        let _state = self.state();
        let is_running = self.is_running();
        if is_running {
            self.steering.push(message);
        }
        is_running
    }

    /// Lets an agent that has ended go on with another task.
    pub(super) fn begin_again(
        &self,
        task: &str,
        token: CancellationToken,
    ) -> Result<(), ToolError> {
        let mut state = self.state();
        if self.is_running() {
            return Err(ToolError::conflict(format_args!("the agent `{}` still works", self.id))
                .hint("wait for it, or send it a message"));
        }
        state.token = token;
        state.transcript.push_user(task, Vec::new());
        task.clone_into(&mut state.report.task);
        state.report.status = SubagentStatus::Running;
        self.is_running.send_replace(true);
        Ok(())
    }

    /// Takes the conversation for a run.
    pub(super) fn take_transcript(&self) -> Transcript {
        std::mem::take(&mut self.state().transcript)
    }

    /// Records the end of a run. Returns the conversation when a message waits, so that the agent has
    /// to go on.
    pub(super) fn finish_run(
        &self,
        outcome: &AgentOutcome,
        transcript: Transcript,
    ) -> Option<Transcript> {
        let mut state = self.state();
        let report = &mut state.report;
        report.status = match &outcome.stop {
            AgentStop::Finished => SubagentStatus::Finished,
            AgentStop::Cancelled => SubagentStatus::Cancelled,
            stop => SubagentStatus::Stopped(stop.to_string()),
        };
        outcome.text.clone_into(&mut report.answer);
        report.turns += outcome.turns;
        report.calls += outcome.calls;
        report.tokens += outcome.usage.total();
        report.cost += outcome.cost;
        if outcome.stop == AgentStop::Finished && self.steering.has_messages() {
            report.status = SubagentStatus::Running;
            return Some(transcript);
        }
        state.transcript = transcript;
        self.is_running.send_replace(false);
        None
    }

    /// Records that the task of the run ended without an outcome, because it panicked.
    pub(super) fn finish_lost(&self) {
        let mut state = self.state();
        if self.is_running() {
            state.report.status = SubagentStatus::Stopped("its task ended".to_owned());
            self.is_running.send_replace(false);
        }
    }

    #[cfg(test)]
    pub(super) fn transcript_for_test(&self) -> Transcript {
        self.state().transcript.clone()
    }

    fn state(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
