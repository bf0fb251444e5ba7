//! What an agent may spend: tokens, money, calls and time, in one budget for a whole tree of agents.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tool_sdk_core::provider::TokenUsage;

/// The limits of a [`SpendingBudget`]; what is `None` has no limit.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::SpendingLimits;
///
/// let limits = SpendingLimits { max_tokens: Some(200_000), ..SpendingLimits::default() };
/// assert_eq!(limits.max_calls, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct limits")]
pub struct SpendingLimits {
    /// Tokens of all requests and messages.
    pub max_tokens: Option<u64>,
    /// US dollars, by the [`ModelPrice`] of each agent's model.
    pub max_cost: Option<f64>,
    /// Calls of tools.
    pub max_calls: Option<u64>,
    /// Time since the budget was created.
    pub max_duration: Option<Duration>,
}

/// What a model costs, in US dollars per million tokens.
///
/// A stored price without `cached_input` has that of `input` for cached tokens, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "PriceFields")]
#[expect(clippy::exhaustive_structs, reason = "hosts construct prices")]
pub struct ModelPrice {
    /// Tokens of a request.
    pub input: f64,
    /// Tokens of a request that come from a cache.
    pub cached_input: f64,
    /// Tokens of a message.
    pub output: f64,
}

/// The fields of a stored [`ModelPrice`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFields {
    input: f64,
    cached_input: Option<f64>,
    output: f64,
}

impl From<PriceFields> for ModelPrice {
    fn from(fields: PriceFields) -> Self {
        let PriceFields { input, cached_input, output } = fields;
        Self { input, cached_input: cached_input.unwrap_or(input), output }
    }
}

impl ModelPrice {
    /// Returns the cost of one request in US dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "no request has 2^52 tokens")]
    pub fn cost(&self, usage: TokenUsage) -> f64 {
        let uncached = usage.input.saturating_sub(usage.cached_input) as f64;
        let (cached, output) = (usage.cached_input as f64, usage.output as f64);
        let sum = uncached * self.input + cached * self.cached_input + output * self.output;
        sum / 1_000_000.0
    }
}

/// A budget that an agent shares with the agents below it.
///
/// Each agent has limits of its own, and what it spends counts for every agent above it.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{SpendingBudget, SpendingLimit, SpendingLimits};
///
/// let root = SpendingBudget::new(SpendingLimits { max_calls: Some(1), ..SpendingLimits::default() });
/// let child = root.child(SpendingLimits::default());
/// child.charge_calls(1);
/// assert_eq!(child.check(), Err(SpendingLimit::Calls(1)));
/// ```
#[derive(Clone)]
pub struct SpendingBudget(Arc<BudgetNode>);

struct BudgetNode {
    limits: SpendingLimits,
    parent: Option<SpendingBudget>,
    started: Instant,
    spent: Mutex<SpentAmounts>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SpentAmounts {
    /// Tokens of requests and messages.
    pub tokens: u64,
    /// US dollars, of the requests whose price is known.
    pub cost: f64,
    /// Requests to models whose price is unknown, which are not in `cost`.
    pub unpriced_requests: u64,
    /// Calls of tools.
    pub calls: u64,
    /// The tokens by kind.
    pub usage: TokenUsage,
}

impl SpentAmounts {
    /// Returns what was spent since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let mut usage = self.usage;
        usage.input = usage.input.saturating_sub(before.usage.input);
        usage.cached_input = usage.cached_input.saturating_sub(before.usage.cached_input);
        usage.output = usage.output.saturating_sub(before.usage.output);
        Self {
            tokens: self.tokens.saturating_sub(before.tokens),
            // Without the noise of the difference of two sums.
            cost: ((self.cost - before.cost).max(0.0) * 1e9).round() / 1e9,
            unpriced_requests: self.unpriced_requests.saturating_sub(before.unpriced_requests),
            calls: self.calls.saturating_sub(before.calls),
            usage,
        }
    }
}

/// The limit that a budget has reached.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpendingLimit {
    /// The limit on tokens.
    #[error("the limit of {0} tokens is reached")]
    Tokens(u64),
    /// The limit on US dollars.
    #[error("the limit of {0} US dollars is reached")]
    Cost(f64),
    /// The limit on calls.
    #[error("the limit of {} is reached", count_calls(*.0))]
    Calls(u64),
    /// The limit on time.
    #[error("the limit of {} s is reached", .0.as_secs())]
    Duration(Duration),
}

impl Default for SpendingBudget {
    /// Creates a budget without limits, which counts.
    fn default() -> Self {
        Self::new(SpendingLimits::default())
    }
}

impl fmt::Debug for SpendingBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpendingBudget")
            .field("limits", &self.0.limits)
            .field("spent", &self.spent())
            .finish_non_exhaustive()
    }
}

fn count_calls(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

impl SpendingBudget {
    /// Creates a budget, whose time begins now.
    #[must_use]
    pub fn new(limits: SpendingLimits) -> Self {
        Self::with_parent(limits, None)
    }

    /// Creates the budget of an agent below this one.
    #[must_use]
    pub fn child(&self, limits: SpendingLimits) -> Self {
        Self::with_parent(limits, Some(self.clone()))
    }

    fn with_parent(limits: SpendingLimits, parent: Option<Self>) -> Self {
        let (started, spent) = (Instant::now(), Mutex::default());
        Self(Arc::new(BudgetNode { limits, parent, started, spent }))
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> SpendingLimits {
        self.0.limits
    }

    /// Returns what was spent, with what the agents below spent.
    #[must_use]
    pub fn spent(&self) -> SpentAmounts {
        *self.0.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the tokens of a request, and their cost, if the price is known.
    pub fn charge_tokens(&self, usage: TokenUsage, cost: Option<f64>) {
        self.charge_all(SpentAmounts {
            tokens: usage.total(),
            cost: cost.unwrap_or_default(),
            unpriced_requests: u64::from(cost.is_none()),
            calls: 0,
            usage,
        });
    }

    /// Counts calls of tools.
    pub fn charge_calls(&self, calls: u64) {
        self.charge_all(SpentAmounts { calls, ..SpentAmounts::default() });
    }

    /// Counts what was spent before, such as by an earlier run of the same conversation.
    pub fn charge_all(&self, more: SpentAmounts) {
        let mut node = Some(self);
        while let Some(Self(budget)) = node {
            let mut spent = budget.spent.lock().unwrap_or_else(PoisonError::into_inner);
            spent.tokens = spent.tokens.saturating_add(more.tokens);
            spent.cost += more.cost;
            spent.unpriced_requests += more.unpriced_requests;
            spent.calls = spent.calls.saturating_add(more.calls);
            let (usage, added) = (&mut spent.usage, more.usage);
            usage.input = usage.input.saturating_add(added.input);
            usage.cached_input = usage.cached_input.saturating_add(added.cached_input);
            usage.output = usage.output.saturating_add(added.output);
            node = budget.parent.as_ref();
        }
    }

    /// Checks the limits of this budget and of those above it.
    ///
    /// # Errors
    ///
    /// Fails with the first limit that is reached.
    pub fn check(&self) -> Result<(), SpendingLimit> {
        let mut node = Some(self);
        while let Some(budget) = node {
            budget.check_own()?;
            node = budget.0.parent.as_ref();
        }
        Ok(())
    }

    fn check_own(&self) -> Result<(), SpendingLimit> {
        let (limits, spent) = (&self.0.limits, self.spent());
        if let Some(max) = limits.max_tokens.filter(|max| spent.tokens >= *max) {
            return Err(SpendingLimit::Tokens(max));
        }
        if let Some(max) = limits.max_cost.filter(|max| spent.cost >= *max) {
            return Err(SpendingLimit::Cost(max));
        }
        if let Some(max) = limits.max_calls.filter(|max| spent.calls >= *max) {
            return Err(SpendingLimit::Calls(max));
        }
        match limits.max_duration.filter(|max| self.0.started.elapsed() >= *max) {
            Some(max) => Err(SpendingLimit::Duration(max)),
            None => Ok(()),
        }
    }

    /// Returns how many calls may still be made.
    pub(crate) fn calls_left(&self) -> u64 {
        let own = self.0.limits.max_calls.map(|max| max.saturating_sub(self.spent().calls));
        let above = self.0.parent.as_ref().map(Self::calls_left);
        own.unwrap_or(u64::MAX).min(above.unwrap_or(u64::MAX))
    }

    /// Returns when the time of this budget, or of one above it, is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let own = self.0.limits.max_duration.map(|max| self.0.started + max);
        let above = self.0.parent.as_ref().and_then(Self::deadline);
        own.into_iter().chain(above).min()
    }

    /// Returns whether this budget, or one above it, has a limit on money.
    pub(crate) fn limits_cost(&self) -> bool {
        let above = self.0.parent.as_ref().is_some_and(Self::limits_cost);
        self.0.limits.max_cost.is_some() || above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64) -> TokenUsage {
        let mut usage = TokenUsage::default();
        (usage.input, usage.output) = (input, output);
        usage
    }

    #[test]
    fn a_child_spends_for_its_parents() {
        let limits = SpendingLimits { max_tokens: Some(100), ..SpendingLimits::default() };
        let root = SpendingBudget::new(limits);
        let (one, two) = (root.child(SpendingLimits::default()), root.child(limits));
        one.charge_tokens(usage(50, 10), Some(0.5));
        assert_eq!((one.check(), two.check()), (Ok(()), Ok(())));
        two.charge_tokens(usage(30, 10), None);
        assert_eq!(root.spent().tokens, 100);
        assert_eq!((root.spent().unpriced_requests, one.spent().unpriced_requests), (1, 0));
        for budget in [&root, &one, &two] {
            assert_eq!(budget.check(), Err(SpendingLimit::Tokens(100)));
        }
    }

    #[test]
    fn cached_tokens_have_a_price_of_their_own() {
        let price = ModelPrice { input: 3.0, cached_input: 0.3, output: 15.0 };
        let mut used = usage(1_000_000, 100_000);
        used.cached_input = 500_000;
        assert!((price.cost(used) - (1.5 + 0.15 + 1.5)).abs() < 1e-9);
    }

    #[test]
    fn a_price_without_cached_tokens_has_that_of_a_request() {
        let read = serde_json::from_str::<ModelPrice>;
        let price = ModelPrice { input: 3.0, cached_input: 3.0, output: 15.0 };
        assert_eq!(read(r#"{"input": 3.0, "output": 15.0}"#).unwrap(), price);
        let price = ModelPrice { cached_input: 0.3, ..price };
        let text = r#"{"input": 3.0, "cached_input": 0.3, "output": 15.0}"#;
        assert_eq!(read(text).unwrap(), price);
        assert!(read(r#"{"input": 3.0, "output": 15.0, "cached": 1}"#).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn time_is_limited() {
        let max_duration = Some(Duration::from_secs(5));
        let root =
            SpendingBudget::new(SpendingLimits { max_duration, ..SpendingLimits::default() });
        let child = root.child(SpendingLimits::default());
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(child.check(), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        let error = child.check().unwrap_err();
        assert_eq!(error.to_string(), "the limit of 5 s is reached");
    }
}
