//! The agent: model clients, and the loop from a message of a model to calls of tools and back.
//!
//! ```text
//! model          the port to language models, and clients for the providers' APIs
//! transcript     the conversation
//! sampling       the model answers what tools and foreign servers ask it
//! spending       what an agent may spend, and the agents below it
//! agents         agents as files: name, prompt, model, tools, rules, limits
//! subagents      agents that other agents start
//! agent_loop     turns of requests and calls, with limits, compaction, steering and hooks
//! ```
//!
//! **Invariant:** tools run through the pipeline alone, so rules, approvals and hooks hold for every
//! call of an agent.

#![forbid(unsafe_code)]

// The macro names the facade.
extern crate tool_sdk_core as tool_sdk;

mod agent_loop;
mod agents;
mod model;
mod sampling;
mod spending;
mod subagents;
mod transcript;

pub use self::agent_loop::{
    AgentEvent, AgentHook, AgentLoop, AgentOutcome, AgentStop, CompactionPolicy,
    PromptSectionError, PromptSections, SteeringQueue, StopDecision,
};

pub use self::agents::{
    AgentCatalog, AgentDefinition, AgentFolders, AgentOrigin, AgentUsage, InvalidAgentFile,
};
pub use self::model::{
    ApiKey, ApiKeyError, InvalidEndpoint, InvalidReasoningEffort, ModelClient, ModelError,
    ModelErrorKind, ModelEvent, ModelRequest, ProviderClient, ReasoningEffort, RetryPolicy,
    ScriptedModel, ToolChoice,
};
pub use self::sampling::SamplingHandler;
pub use self::spending::{ModelPrice, SpendingBudget, SpendingLimit, SpendingLimits, SpentAmounts};
pub use self::subagents::{
    SubagentLimits, SubagentModel, SubagentReport, SubagentService, SubagentStatus,
};
pub use self::transcript::{Transcript, TranscriptEntry, TranscriptSummary};
