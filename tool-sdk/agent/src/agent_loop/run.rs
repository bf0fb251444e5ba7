//! One run of an agent: turn by turn, from a request to the answers of its calls.
//!
//! [`AgentRun::run_turn`] is one turn, from top to bottom.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::provider::{CallAnswer, MessageDelta, ModelApi, ModelMessage, StopReason};
use tool_sdk_core::{Batch, Call, ErrorKind, Session, ToolError, ToolsetView, provider};

use super::final_answer::FinalAnswer;
use super::{AgentEvent, AgentLoop, AgentOutcome, AgentStop, StopDecision, compaction};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, ToolChoice};
use crate::transcript::{Transcript, TranscriptEntry, TranscriptSummary};

/// How often a hook, or a missing final answer, may keep an agent from stopping.
const MAX_CONTINUATIONS: u32 = 8;
/// How often a request is sent again whose message broke off.
const MAX_BROKEN_MESSAGES: u32 = 2;
/// After how many compactions in a row that freed less than a fifth the agent stops.
const MAX_POOR_COMPACTIONS: u32 = 2;

/// One run of an agent.
pub(super) struct AgentRun<'a> {
    agent: &'a AgentLoop,
    session: Session,
    transcript: &'a mut Transcript,
    cancel: &'a CancellationToken,
    outcome: AgentOutcome,
    /// The tool for the final answer, if the run ends with one.
    pub(super) final_answer: Option<FinalAnswer>,
    /// How often in a row the model had ended its turn and had to go on.
    continuations: u32,
    /// How many compactions in a row freed little.
    poor_compactions: u32,
}

impl<'a> AgentRun<'a> {
    pub(super) fn new(
        agent: &'a AgentLoop,
        session: Session,
        transcript: &'a mut Transcript,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            agent,
            session,
            transcript,
            cancel,
            outcome: AgentOutcome::new(),
            final_answer: None,
            continuations: 0,
            poor_compactions: 0,
        }
    }

    /// Makes turns until the agent stops.
    pub(super) async fn run_turns(&mut self) -> AgentStop {
        loop {
            let turn = self.run_turn().await;
            if let Some(stop) = turn {
                return stop;
            }
        }
    }

    /// Makes one request and runs the calls of its message. Returns why the agent stops, if it does.
    async fn run_turn(&mut self) -> Option<AgentStop> {
        self.take_steering();
        if let Err(limit) = self.agent.budget.check() {
            return Some(AgentStop::Limit(limit));
        }
        if let Some(max) = self.agent.max_turns.filter(|max| self.outcome.turns >= *max) {
            return Some(AgentStop::TurnLimit(max));
        }
        self.run_start_hooks().await;
        // What a hook waited for.
        self.take_steering();
        let view = self.agent.pipeline.toolset().view_for(&self.session);
        if let Err(stop) = self.compact_if_needed(&view).await {
            return Some(stop);
        }
        let message = match self.request_message(&view).await {
            Ok(message) => message,
            Err(stop) => return Some(stop),
        };
        self.outcome.turns += 1;
        let calls = self.calls_of(&message, &view);
        let (stop, cut_off) = (message.stop.clone(), message.cut_off_error());
        self.agent.report_event(&AgentEvent::Message(&message));
        self.transcript.entries.push(TranscriptEntry::Model { message });
        if calls.is_empty() {
            return self.end_of_message(stop).await;
        }
        self.continuations = 0;
        self.answer_calls(calls, cut_off).await
    }

    fn take_steering(&mut self) {
        for text in self.agent.steering.take_all() {
            self.push_user(text);
        }
    }

    fn push_user(&mut self, text: String) {
        self.agent.report_event(&AgentEvent::UserMessage(&text));
        self.transcript.push_user(text, Vec::new());
    }

    async fn run_start_hooks(&mut self) {
        for hook in &self.agent.hooks {
            if let Some(text) = hook.turn_start(self.transcript).await {
                self.push_user(text);
            }
        }
    }

    /// Requests the next message. A message that breaks off is requested again; when that fails
    /// too, what arrived of it stays in the transcript.
    async fn request_message(
        &mut self,
        view: &Arc<ToolsetView>,
    ) -> Result<ModelMessage, AgentStop> {
        let mut broken = 0;
        let mut has_compacted = false;
        loop {
            let error = match self.request_once(Some(view), self.transcript).await {
                Ok(message) => {
                    self.charge_message(&message);
                    return Ok(message);
                }
                Err(RequestEnd::Stopped { stop, text }) => {
                    self.keep_partial_text(text);
                    return Err(stop);
                }
                Err(RequestEnd::Failed(error)) => error,
            };
            if error.kind == ModelErrorKind::ContextFull && !has_compacted {
                has_compacted = true;
                self.compact_conversation(view).await?;
                continue;
            }
            if error.partial.is_some() && error.kind.is_transient() && broken < MAX_BROKEN_MESSAGES
            {
                broken += 1;
                self.agent.report_event(&AgentEvent::MessageDiscarded);
                continue;
            }
            if let Some(partial) = error.partial.as_deref() {
                self.charge_message(partial);
                self.keep_partial_text(partial.text());
            }
            return Err(match error.kind {
                ModelErrorKind::ContextFull => AgentStop::ContextFull,
                _ => AgentStop::Failed(error),
            });
        }
    }

    /// Sends one request, until it ends, the host cancels, or the time of the budget is over.
    async fn request_once(
        &self,
        view: Option<&Arc<ToolsetView>>,
        transcript: &Transcript,
    ) -> Result<ModelMessage, RequestEnd> {
        let agent = self.agent;
        let system = agent.system_prompt();
        let request = ModelRequest {
            system: &system,
            transcript,
            tools: view.cloned(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: agent.max_output_tokens,
            reasoning_effort: agent.reasoning_effort,
            cache_key: self.session.id(),
        };
        // A summary is not shown.
        let is_shown = view.is_some();
        let mut text = String::new();
        let mut events = |event: ModelEvent| match &event {
            ModelEvent::Delta(delta) if is_shown => {
                if let MessageDelta::Text(more) = delta {
                    text.push_str(more);
                }
                agent.report_event(&AgentEvent::Delta(delta));
            }
            ModelEvent::Retry { delay, reason } => {
                agent.report_event(&AgentEvent::Retry { delay: *delay, reason });
            }
            ModelEvent::Delta(_) => {}
        };
        if is_shown {
            agent.report_event(&AgentEvent::RequestStarted);
        }
        let deadline = agent.budget.deadline();
        let stop = tokio::select! {
            biased;
            () = self.cancel.cancelled() => AgentStop::Cancelled,
            () = wait_until(deadline) => match agent.budget.check() {
                Err(limit) => AgentStop::Limit(limit),
                Ok(()) => AgentStop::Cancelled,
            },
            message = agent.model.respond(&request, &mut events) => {
                return message.map_err(RequestEnd::Failed);
            }
        };
        Err(RequestEnd::Stopped { stop, text })
    }

    fn charge_message(&mut self, message: &ModelMessage) {
        let cost = self.agent.price.map(|price| price.cost(message.usage));
        self.agent.budget.charge_tokens(message.usage, cost);
        self.outcome.add_usage(message.usage, cost.unwrap_or_default());
    }

    /// Keeps the text that the user has seen of a message that did not end.
    fn keep_partial_text(&mut self, text: String) {
        if !text.is_empty() {
            let message = ModelMessage::from_text(ModelApi::OpenAiChat, text);
            self.transcript.entries.push(TranscriptEntry::Model { message });
        }
    }

    fn calls_of(&self, message: &ModelMessage, view: &ToolsetView) -> Vec<Call<'static>> {
        let calls = message.calls();
        if !calls.is_empty() || !self.agent.parses_text_calls {
            return calls;
        }
        provider::parse_text_calls(&message.text(), view)
    }

    /// Decides what follows a message without calls.
    async fn end_of_message(&mut self, stop: StopReason) -> Option<AgentStop> {
        match stop {
            StopReason::Paused => return None,
            StopReason::Refusal => return Some(AgentStop::Refused),
            StopReason::ContextFull => return Some(AgentStop::ContextFull),
            StopReason::CutOff => {
                return self.continue_with("The connection broke. Go on where you stopped.");
            }
            StopReason::MaxTokens => {
                return self
                    .continue_with("Your message reached its limit. Go on where it stopped.");
            }
            _ => {}
        }
        // A message that arrived meanwhile is answered first.
        if self.agent.steering.has_messages() {
            return None;
        }
        if self.final_answer.is_some() {
            return self.continue_with(FinalAnswer::REMINDER);
        }
        for hook in &self.agent.hooks {
            if let StopDecision::Continue(text) = hook.stop(self.transcript).await {
                return self.continue_with(&text).map(|_| AgentStop::Finished);
            }
        }
        // A message that a hook waited for.
        if self.agent.steering.has_messages() {
            return None;
        }
        Some(AgentStop::Finished)
    }

    /// Lets the model go on, unless it was asked to too often in a row.
    fn continue_with(&mut self, text: &str) -> Option<AgentStop> {
        self.continuations += 1;
        if self.continuations > MAX_CONTINUATIONS {
            return Some(AgentStop::NoProgress);
        }
        self.push_user(text.to_owned());
        None
    }

    /// Answers every call of a message: runs those that may run.
    async fn answer_calls(
        &mut self,
        mut calls: Vec<Call<'static>>,
        cut_off: Option<ToolError>,
    ) -> Option<AgentStop> {
        let names: Vec<String> = calls.iter().map(|call| call.name.to_string()).collect();
        let is_text = self.agent.parses_text_calls && calls.iter().all(|call| call.id.is_none());
        if let Some(error) = cut_off {
            let refused: Vec<CallAnswer> = calls.iter().map(|it| refuse_call(it, &error)).collect();
            self.push_answers(refused, is_text);
            return self
                .continue_with("The connection broke before your message was complete. Go on.");
        }
        let left = usize::try_from(self.agent.budget.calls_left()).unwrap_or(usize::MAX);
        let beyond = calls.split_off(left.min(calls.len()));
        self.agent.budget.charge_calls(calls.len() as u64);
        self.outcome.calls += calls.len() as u64;
        let message: Arc<str> = format!("message-{}", self.transcript.entries.len()).into();
        let calls: Vec<Call<'static>> =
            calls.into_iter().map(|call| call.message(Arc::clone(&message))).collect();
        let session = self.session.clone().with_messages(self.transcript.to_messages());
        let outcomes = Batch::new(&self.agent.pipeline).run(&session, calls).await;
        let halted = outcomes.iter().find_map(|outcome| outcome.halt_reason()).map(str::to_owned);
        let final_answer = self.final_answer.as_ref().and_then(FinalAnswer::take_value);
        let mut answers: Vec<CallAnswer> = outcomes
            .iter()
            .zip(&names)
            .map(|(outcome, name)| CallAnswer::from_outcome(name.clone(), outcome))
            .collect();
        let limit = ToolError::aborted("the limit on calls is reached, so the call did not run");
        answers.extend(beyond.iter().map(|call| refuse_call(call, &limit)));
        self.push_answers(answers, is_text);
        if let Some(value) = final_answer {
            self.outcome.structured = Some(value);
            return Some(AgentStop::Finished);
        }
        if self.cancel.is_cancelled() {
            return Some(AgentStop::Cancelled);
        }
        halted.map(AgentStop::Halted)
    }

    /// Adds answers. Calls that stand in a text are answered by a message in the user's name,
    /// because their message has no calls for its provider.
    fn push_answers(&mut self, answers: Vec<CallAnswer>, is_text: bool) {
        self.agent.report_event(&AgentEvent::Answers(&answers));
        if !is_text {
            self.transcript.entries.push(TranscriptEntry::Answers { answers });
            return;
        }
        let result = |answer: &CallAnswer| {
            format!("<tool_result name=\"{}\">\n{}\n</tool_result>", answer.name, answer.text)
        };
        let text = answers.iter().map(result).collect::<Vec<_>>().join("\n");
        let attachments = answers.into_iter().flat_map(|answer| answer.attachments).collect();
        self.transcript.push_user(text, attachments);
    }

    /// Compacts the conversation when the next request would leave too little of the context.
    async fn compact_if_needed(&mut self, view: &Arc<ToolsetView>) -> Result<(), AgentStop> {
        let Some(policy) = &self.agent.compaction else { return Ok(()) };
        let fixed = self.fixed_tokens(view);
        if fixed >= policy.threshold() {
            let warning = format!(
                "the system prompt and the tools alone take about {fixed} of {} tokens",
                policy.context_tokens
            );
            self.agent.report_event(&AgentEvent::Warning(&warning));
            return Err(AgentStop::ContextFull);
        }
        if fixed + self.conversation_tokens(fixed) < policy.threshold() {
            return Ok(());
        }
        let results = compaction::prune_results(self.transcript, policy);
        if results > 0 {
            self.agent.report_event(&AgentEvent::Pruned { results });
        }
        if fixed + self.transcript.estimate_tokens() < policy.threshold() {
            return Ok(());
        }
        self.compact_conversation(view).await
    }

    /// Estimates the tokens of the conversation: what the provider counted for the last request,
    /// where that is more than the estimate, and what was added since.
    fn conversation_tokens(&self, fixed: u64) -> u64 {
        let entries = self.transcript.visible_entries();
        let counted = entries.iter().enumerate().rev().find_map(|(at, entry)| match entry {
            TranscriptEntry::Model { message } if message.usage.input > 0 => {
                let added: u64 =
                    entries[at + 1..].iter().map(|it| self.transcript.estimate_entry(it)).sum();
                Some(message.usage.total().saturating_sub(fixed) + added)
            }
            _ => None,
        });
        counted.unwrap_or(0).max(self.transcript.estimate_tokens())
    }

    /// Estimates the tokens that every request repeats: system prompt and tools.
    fn fixed_tokens(&self, view: &ToolsetView) -> u64 {
        let listing = provider::encode_listing(view, provider::Dialect::OpenAi);
        (self.agent.system_prompt().len() + listing.len()) as u64 / 4
    }

    /// Replaces the beginning of the conversation by a summary that the model writes.
    pub(super) async fn compact_conversation(
        &mut self,
        view: &ToolsetView,
    ) -> Result<(), AgentStop> {
        let Some(policy) = &self.agent.compaction else { return Err(AgentStop::ContextFull) };
        let end = compaction::recent_start(self.transcript, policy.recent_tokens);
        let covered = self.transcript.summary.as_ref().map_or(0, |summary| summary.covered);
        if end <= covered || self.poor_compactions >= MAX_POOR_COMPACTIONS {
            return Err(AgentStop::ContextFull);
        }
        let before = self.transcript.estimate_tokens();
        let summary = self.request_summary(end).await?;
        self.charge_message(&summary);
        let text = summary.text();
        if text.trim().is_empty() {
            let problem = "the model wrote no summary of the conversation";
            let error = ModelError::new(ModelErrorKind::Unavailable, problem);
            return Err(AgentStop::Failed(error));
        }
        let kept = compaction::kept_verbatim(self.transcript, end, policy);
        self.transcript.summary = Some(TranscriptSummary { text: text + &kept, covered: end });
        let after = self.transcript.estimate_tokens();
        self.agent
            .report_event(&AgentEvent::Compacted { tokens_before: before, tokens_after: after });
        let total = before + self.fixed_tokens(view);
        let is_poor = before.saturating_sub(after) < total / 5;
        self.poor_compactions = if is_poor { self.poor_compactions + 1 } else { 0 };
        Ok(())
    }

    /// Requests a summary of the first `end` entries. When they do not fit into the context either,
    /// the older half of them is left out.
    async fn request_summary(&self, end: usize) -> Result<ModelMessage, AgentStop> {
        let mut asked = self.transcript.clone();
        asked.entries.truncate(end);
        asked.push_user(compaction::SUMMARY_PROMPT, Vec::new());
        loop {
            let error = match self.request_once(None, &asked).await {
                Ok(message) => return Ok(message),
                Err(RequestEnd::Stopped { stop, .. }) => return Err(stop),
                Err(RequestEnd::Failed(error)) => error,
            };
            if error.kind != ModelErrorKind::ContextFull || !compaction::drop_older_half(&mut asked)
            {
                return Err(AgentStop::Failed(error));
            }
        }
    }

    pub(super) fn finish_run(mut self, stop: AgentStop) -> AgentOutcome {
        let reason = ToolError::new(ErrorKind::Aborted, "the agent stopped before the call ran");
        self.transcript.answer_open_calls(&reason);
        self.outcome.text = self.transcript.last_model_text().unwrap_or_default();
        self.outcome.stop = stop;
        self.outcome
    }
}

/// How a request ended without a message.
enum RequestEnd {
    /// The host or a limit ended it; `text` is what had arrived.
    Stopped {
        stop: AgentStop,
        text: String,
    },
    Failed(ModelError),
}

/// Waits until the deadline, without one forever.
async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Answers a call that does not run.
fn refuse_call(call: &Call<'_>, error: &ToolError) -> CallAnswer {
    let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
    CallAnswer::error(id, call.name.to_string(), error)
}
