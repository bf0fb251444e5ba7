//! How a run of an agent ended.

use serde_json::Value;
use tool_sdk_core::provider::TokenUsage;

use crate::model::{ModelError, ModelErrorKind};
use crate::spending::SpendingLimit;

/// The end of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentOutcome {
    /// Why the agent stopped.
    pub stop: AgentStop,
    /// The text of the model's last message.
    pub text: String,
    /// The final answer, with [`with_output_schema`](crate::AgentLoop::with_output_schema).
    pub structured: Option<Value>,
    /// The turns of this run.
    pub turns: u32,
    /// The calls of this run.
    pub calls: u64,
    /// The tokens of this run.
    pub usage: TokenUsage,
    /// The cost of this run in US dollars; 0 when the price is unknown.
    pub cost: f64,
}

/// Why an agent stopped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentStop {
    /// The model has answered.
    Finished,
    /// The host cancelled the run.
    Cancelled,
    /// The run reached its limit of turns.
    TurnLimit(u32),
    /// The budget reached a limit.
    Limit(SpendingLimit),
    /// A hook ended the run, for this reason.
    Halted(String),
    /// The model refused to answer.
    Refused,
    /// The conversation does not fit into the model's context, and compacting it does not help.
    ContextFull,
    /// The model was told to go on several times and got no further.
    NoProgress,
    /// The model failed.
    Failed(ModelError),
}

impl PartialEq for AgentStop {
    /// Compares the reasons; failures by their kind.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TurnLimit(one), Self::TurnLimit(two)) => one == two,
            (Self::Limit(one), Self::Limit(two)) => one == two,
            (Self::Halted(one), Self::Halted(two)) => one == two,
            (Self::Failed(one), Self::Failed(two)) => one.kind == two.kind,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl std::fmt::Display for AgentStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Finished => f.write_str("the model has answered"),
            Self::Cancelled => f.write_str("the run was cancelled"),
            Self::TurnLimit(1) => f.write_str("the limit of 1 turn is reached"),
            Self::TurnLimit(turns) => write!(f, "the limit of {turns} turns is reached"),
            Self::Limit(limit) => limit.fmt(f),
            Self::Halted(reason) => write!(f, "a hook ended the run: {reason}"),
            Self::Refused => f.write_str("the model refused to answer"),
            Self::ContextFull => {
                f.write_str("the conversation does not fit into the context of the model")
            }
            Self::NoProgress => f.write_str("the model was told to go on and got no further"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl AgentOutcome {
    pub(super) fn new() -> Self {
        Self {
            stop: AgentStop::Cancelled,
            text: String::new(),
            structured: None,
            turns: 0,
            calls: 0,
            usage: TokenUsage::default(),
            cost: 0.0,
        }
    }

    pub(super) fn failed_to_start(problem: String) -> Self {
        let error = ModelError::new(ModelErrorKind::InvalidRequest, problem);
        Self { stop: AgentStop::Failed(error), ..Self::new() }
    }

    pub(super) fn add_usage(&mut self, usage: TokenUsage, cost: f64) {
        self.usage.input = self.usage.input.saturating_add(usage.input);
        self.usage.cached_input = self.usage.cached_input.saturating_add(usage.cached_input);
        self.usage.output = self.usage.output.saturating_add(usage.output);
        self.cost += cost;
    }
}
