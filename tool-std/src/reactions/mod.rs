//! Reactions: rules that wait for events of calls and act on them. Event, condition, action.
//!
//! A rule is written in `reactions.toml` of the user's configuration folder, or in
//! `.agents/reactions.toml` of a project whose folder the user
//! [trusts](tool_sdk::TrustedFolders). Its condition is an expression in the Common Expression
//! Language (CEL) over the fields of the event and over values that rules remember. Its actions are the
//! tools [`notify_self`](fn@notify_self), [`log`](fn@log), [`set_state`](fn@set_state),
//! [`emit_event`](fn@emit_event), [`modify_prompt`](fn@modify_prompt) and
//! [`inject_context`](fn@inject_context), which are hidden from models and run through the pipeline
//! like every call. [`ReactionEngine`] joins them.
//!
//! | limit | value |
//! |---|---|
//! | rules of a file, actions of a rule | 64, 8 |
//! | length of an expression | 2,000 bytes |
//! | text of an event that an expression sees | 16 KiB a text, 100 items a list, 5,000 values |
//! | work of an expression | 200,000 steps by an estimate at load, 50 ms of the processor |
//! | events of rules that follow from each other | 8 |
//! | events of rules that follow from one event | 100 |
//! | reactions of a rule in a minute | 60, or its `max_per_minute` |
//! | events that wait before calls wait | 1,024 |
//!
//! **Invariant:** what an event says is data. It fills arguments, and never chooses a tool, a rule or a
//! part of the system prompt.

mod actions;
mod check_tool;
mod counters;
mod discovery;
mod engine;
mod expression;
mod host_files;
mod list_tool;
mod rule;
mod rule_file;
mod state;
mod template;
#[cfg(test)]
mod tests;

pub use self::actions::{emit_event, inject_context, log, modify_prompt, notify_self, set_state};
pub use self::check_tool::reaction_check;
pub use self::counters::{ReactionCounters, RuleCounters};
pub use self::discovery::ReactionRules;
pub use self::engine::{ReactionEngine, ReactionProgress};
pub use self::list_tool::reaction_list;
pub use self::rule::RuleScope;
pub use self::state::ReactionState;
