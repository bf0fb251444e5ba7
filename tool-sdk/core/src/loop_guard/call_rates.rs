//! Counts identical calls per minute, for calls that belong to no conversation.
//!
//! Several clients may share such a session, so identical calls say nothing about a loop until
//! they come faster than people and models make them.
//!
//! **Invariant:** the memory is bounded: at most [`MAX_KEYS`] different calls are counted.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_mins(1);

/// How many different calls are counted at once; all are forgotten when there are more.
const MAX_KEYS: usize = 4096;

/// The calls of the last minute, by the key of the call.
#[derive(Debug, Default)]
pub(super) struct CallRates(HashMap<u64, CallRate>);

#[derive(Debug)]
struct CallRate {
    /// When the minute began.
    since: Instant,
    calls: u32,
    /// The key of the last result.
    result: Option<u64>,
}

impl CallRates {
    /// Counts a call; returns how many identical calls its minute has.
    pub(super) fn count_call(&mut self, key: u64, now: Instant) -> u32 {
        let is_current = |rate: &CallRate| now.saturating_duration_since(rate.since) < MINUTE;
        if self.0.len() >= MAX_KEYS {
            self.0.retain(|_, rate| is_current(rate));
        }
        if self.0.len() >= MAX_KEYS {
            self.0.clear();
        }
        let new = || CallRate { since: now, calls: 0, result: None };
        let rate = self.0.entry(key).or_insert_with(new);
        if !is_current(rate) {
            *rate = new();
        }
        rate.calls = rate.calls.saturating_add(1);
        rate.calls
    }

    /// Records the result of a call; a changed result restarts the count.
    pub(super) fn record_result(&mut self, key: u64, result: u64) {
        if let Some(rate) = self.0.get_mut(&key)
            && rate.result.replace(result).is_some_and(|before| before != result)
        {
            rate.calls = 1;
        }
    }
}
