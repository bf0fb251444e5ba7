//! The agent loop: from a message of the user to an answer, through calls of tools.
//!
//! Each turn sends the conversation to the model, runs the calls of its message as one batch through
//! the pipeline, and adds their answers. It ends when a message has no calls, a limit is reached, a
//! hook says so, or the host cancels.
//!
//! **Invariant:** the transcript is complete after every step: each call has exactly one answer, and
//! a call that ran is never sent to run again.

mod compaction;
mod event;
mod final_answer;
mod hook;
mod outcome;
mod prompt_sections;
mod run;
mod steering;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tool_sdk_core::{ClientKind, Pipeline, Schema, Session};

pub use self::compaction::CompactionPolicy;
pub use self::event::AgentEvent;
use self::final_answer::FinalAnswer;
use self::hook::DynAgentHook;
pub use self::hook::{AgentHook, StopDecision};
pub use self::outcome::{AgentOutcome, AgentStop};
pub use self::prompt_sections::{PromptSectionError, PromptSections};
use self::run::AgentRun;
pub use self::steering::SteeringQueue;
use crate::model::{DynModelClient, ModelClient, ReasoningEffort};
use crate::spending::{ModelPrice, SpendingBudget};
use crate::transcript::Transcript;

/// What receives the events of an agent.
type Observer = Arc<dyn Fn(&AgentEvent<'_>) + Send + Sync>;

/// An agent: a model, the tools of a pipeline, and limits.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::agent::{AgentLoop, AgentStop, ScriptedModel, Transcript};
/// use tool_sdk::{CancellationToken, Pipeline, Registry, Session, tool, tools};
///
/// /// Add two numbers.
/// #[tool(read)]
/// fn add(
///     /// One number.
///     a: i64,
///     /// The other number.
///     b: i64,
/// ) -> String {
///     (a + b).to_string()
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// // In a program this is a `ProviderClient`.
/// let model = ScriptedModel::new()
///     .calls(&[("call_1", "add", json!({ "a": 1, "b": 2 }))])
///     .says("It is 3.");
/// let pipeline = Pipeline::new(Registry::builder().add(tools![add]).build()?);
/// let agent = AgentLoop::new(pipeline, model).with_system("You are good with numbers.");
///
/// let mut transcript = Transcript::from_user("What is 1 + 2?");
/// let outcome = agent.run(&Session::new("s"), &mut transcript, &CancellationToken::new()).await;
/// assert_eq!((outcome.stop, outcome.text.as_str()), (AgentStop::Finished, "It is 3."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct AgentLoop {
    pipeline: Pipeline,
    model: Arc<dyn DynModelClient>,
    system: String,
    prompt_sections: PromptSections,
    max_turns: Option<u32>,
    max_output_tokens: Option<u32>,
    reasoning_effort: Option<ReasoningEffort>,
    compaction: Option<CompactionPolicy>,
    budget: SpendingBudget,
    price: Option<ModelPrice>,
    steering: SteeringQueue,
    hooks: Vec<Arc<dyn DynAgentHook>>,
    observer: Option<Observer>,
    output_schema: Option<Schema>,
    parses_text_calls: bool,
}

impl fmt::Debug for AgentLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentLoop")
            .field("model", &self.model.name())
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl AgentLoop {
    /// Creates an agent. It makes at most 100 turns in one run, and is not compacted.
    pub fn new(pipeline: Pipeline, model: impl ModelClient) -> Self {
        Self {
            pipeline,
            model: Arc::new(model),
            system: String::new(),
            prompt_sections: PromptSections::default(),
            max_turns: Some(100),
            max_output_tokens: None,
            reasoning_effort: None,
            compaction: None,
            budget: SpendingBudget::default(),
            price: None,
            steering: SteeringQueue::default(),
            hooks: Vec::new(),
            observer: None,
            output_schema: None,
            parses_text_calls: false,
        }
    }

    /// Sets the system prompt.
    pub fn with_system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// Sets the sections behind the system prompt, which may change between two requests.
    pub fn with_prompt_sections(mut self, sections: PromptSections) -> Self {
        self.prompt_sections = sections;
        self
    }

    /// Sets how many turns one run has at most: requests with the calls of their messages.
    pub fn with_max_turns(mut self, turns: Option<u32>) -> Self {
        self.max_turns = turns;
        self
    }

    /// Sets the maximum number of tokens of one message.
    pub fn with_max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets how much the model thinks.
    pub fn with_reasoning_effort(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning_effort = Some(effort);
        self
    }

    /// Sets how the conversation is kept within the model's context.
    pub fn with_compaction(mut self, policy: CompactionPolicy) -> Self {
        self.compaction = Some(policy);
        self
    }

    /// Sets the budget, which other agents may share.
    pub fn with_budget(mut self, budget: SpendingBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets what the model costs.
    pub fn with_price(mut self, price: ModelPrice) -> Self {
        self.price = Some(price);
        self
    }

    /// Sets the queue from which the agent takes messages while it runs.
    pub fn with_steering(mut self, steering: SteeringQueue) -> Self {
        self.steering = steering;
        self
    }

    /// Adds a hook.
    pub fn with_hook(mut self, hook: impl AgentHook) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Sets the callback that receives the agent's events. It must not block.
    pub fn with_observer(
        mut self,
        observer: impl Fn(&AgentEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Makes the agent end with a value of this schema, an object: the model gets one more tool, and
    /// the run is finished when a call of it fits. The value is [`AgentOutcome::structured`].
    pub fn with_output_schema(mut self, schema: Schema) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Finds calls that the model writes into its text, for models without native calls.
    pub fn with_text_calls(mut self) -> Self {
        self.parses_text_calls = true;
        self
    }

    /// Runs until the model has answered or a limit is reached, and leaves everything in
    /// `transcript`, which then can be continued.
    ///
    /// `cancel` ends the request and the calls that run; each gets an answer that says so.
    pub async fn run(
        &self,
        session: &Session,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> AgentOutcome {
        transcript.recover();
        let session = session
            .clone()
            .with_client(ClientKind::Agent)
            .with_model(self.model.name())
            .with_cancel(cancel.clone());
        let add_tool = |schema| FinalAnswer::add_tool(schema, &self.pipeline, &session);
        let final_answer = match self.output_schema.as_ref().map(add_tool).transpose() {
            Ok(added) => added,
            Err(error) => return AgentOutcome::failed_to_start(error.to_string()),
        };
        if self.price.is_none() && self.budget.limits_cost() {
            let warning = format!(
                "the price of the model `{}` is unknown, so the limit on cost has no effect",
                self.model.name()
            );
            self.report_event(&AgentEvent::Warning(&warning));
        }
        let mut run = AgentRun::new(self, session, transcript, cancel);
        run.final_answer = final_answer;
        let stop = run.run_turns().await;
        run.finish_run(stop)
    }

    /// Replaces the beginning of the conversation by a summary now, and returns the estimated tokens
    /// of the conversation before and after.
    ///
    /// # Errors
    ///
    /// Fails when there is nothing to replace, without a [`CompactionPolicy`], or when the model
    /// fails; the conversation is then as before.
    pub async fn compact(
        &self,
        session: &Session,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> Result<(u64, u64), AgentStop> {
        let before = transcript.estimate_tokens();
        let view = self.pipeline.toolset().view_for(session);
        let mut run = AgentRun::new(self, session.clone(), transcript, cancel);
        run.compact_conversation(&view).await?;
        Ok((before, transcript.estimate_tokens()))
    }

    /// Returns the system prompt of the next request.
    fn system_prompt(&self) -> String {
        format!("{}{}", self.system, self.prompt_sections.to_text())
    }

    fn report_event(&self, event: &AgentEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}
