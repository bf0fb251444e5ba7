//! What the rules of a session did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// What one rule did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleCounters {
    /// The events for which its condition was evaluated.
    pub events: u64,
    /// The events for which the condition held.
    pub matches: u64,
    /// The actions that were done.
    pub actions: u64,
    /// The actions that failed, or that a permission rule denied.
    pub failed_actions: u64,
    /// The events to which it did not react, because it had reacted too often.
    pub suppressed: u64,
    /// The events whose condition could not be evaluated.
    pub condition_errors: u64,
    /// The last error of the condition or of an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What the rules of a session did, by their names; clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReactionCounters(Arc<Mutex<CounterTable>>);

#[derive(Debug, Default)]
struct CounterTable {
    rules: BTreeMap<String, RuleCounters>,
    /// The events of chains that were too long.
    broken_chains: u64,
}

impl ReactionCounters {
    /// Returns what a rule did.
    #[must_use]
    pub fn of_rule(&self, name: &str) -> RuleCounters {
        self.table().rules.get(name).cloned().unwrap_or_default()
    }

    /// Returns how many events of rules had no reaction, because their chain was too long.
    #[must_use]
    pub fn broken_chains(&self) -> u64 {
        self.table().broken_chains
    }

    pub(super) fn change(&self, name: &str, change: impl FnOnce(&mut RuleCounters)) {
        let mut table = self.table();
        match table.rules.get_mut(name) {
            Some(counters) => change(counters),
            None => change(table.rules.entry(name.to_owned()).or_default()),
        }
    }

    pub(super) fn count_broken_chain(&self) {
        self.table().broken_chains += 1;
    }

    /// Returns what the user should know, one line each: what was suppressed, and what failed.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let table = self.table();
        let mut lines = Vec::new();
        for (name, counters) in &table.rules {
            let RuleCounters { suppressed, failed_actions, condition_errors, .. } = counters;
            let mut told = Vec::new();
            if *suppressed > 0 {
                told.push(format!(
                    "{} had no reaction by its `max_per_minute`",
                    count_noun(*suppressed, "event")
                ));
            }
            if *failed_actions > 0 {
                told.push(format!("{} failed", count_noun(*failed_actions, "action")));
            }
            if *condition_errors > 0 {
                let conditions = count_noun(*condition_errors, "condition");
                told.push(format!("{conditions} could not be evaluated"));
            }
            if told.is_empty() {
                continue;
            }
            let error = counters.last_error.as_ref().map(|error| format!(", such as: {error}"));
            lines.push(format!("rule `{name}`: {}{}", told.join(", "), error.unwrap_or_default()));
        }
        if table.broken_chains > 0 {
            let events = count_noun(table.broken_chains, "event");
            lines.push(format!("{events} of rules had no reaction: their chain was too long"));
        }
        lines
    }

    fn table(&self) -> MutexGuard<'_, CounterTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_noun(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
