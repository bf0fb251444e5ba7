//! How many agents there are, how deep they nest, and what each may spend.

use std::time::Duration;

use crate::spending::SpendingLimits;

/// The limits of agents that other agents start.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::SubagentLimits;
///
/// let limits = SubagentLimits { max_depth: 1, ..SubagentLimits::default() };
/// assert_eq!((limits.max_running, limits.max_agents), (20, 200));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct limits")]
pub struct SubagentLimits {
    /// How many work at a time, in the whole tree; 20 by default.
    pub max_running: usize,
    /// How many there are, with those that have ended; 200 by default.
    pub max_agents: usize,
    /// How deep agents start agents: 1 lets only the first agent start some; 2 by default.
    pub max_depth: usize,
    /// The turns of one run; 50 by default.
    pub max_turns: u32,
    /// What one agent may spend, with those that it starts; a million tokens, 300 calls and 20
    /// minutes by default. An agent's own limits apply as well.
    pub each: SpendingLimits,
}

impl Default for SubagentLimits {
    fn default() -> Self {
        Self {
            max_running: 20,
            max_agents: 200,
            max_depth: 2,
            max_turns: 50,
            each: SpendingLimits {
                max_tokens: Some(1_000_000),
                max_cost: None,
                max_calls: Some(300),
                max_duration: Some(Duration::from_mins(20)),
            },
        }
    }
}
