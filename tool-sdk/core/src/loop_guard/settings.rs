//! The settings of a loop guard, as a host reads them from flags, variables and files.
//!
//! **Invariant:** every value is valid: [`LoopGuard::new`](crate::LoopGuard::new) reduces those
//! that cannot be counted.

use std::time::Duration;

use super::{MAX_CALLS, clamp_to_history};

/// How a [`LoopGuard`](crate::LoopGuard) counts.
///
/// # Examples
///
/// ```
/// use tool_sdk::{LoopGuard, LoopGuardSettings};
///
/// let mut settings = LoopGuardSettings::default();
/// assert_eq!((settings.threshold, settings.hard_stop), (3, 10));
/// settings.hard_stop = 1000;
/// assert_eq!(LoopGuard::new(settings).settings().hard_stop, 64);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopGuardSettings {
    /// Whether calls are checked at all; `true` by default.
    pub is_enabled: bool,
    /// From which call in a row, or which round of a cycle, the user is asked; 3 by default.
    ///
    /// At least 2, and at most the 64 calls that are remembered.
    pub threshold: u32,
    /// At which identical call the call is refused, even with other calls in between; 10 by
    /// default.
    ///
    /// Calls in a row, or in cycles of up to [`max_cycle`](Self::max_cycle) calls, count even while
    /// they still run or wait. The limit holds for every tool that is not exempt, also when its
    /// threshold is higher. Counting starts anew after a different call that succeeded with a
    /// result that no remembered call had. At least 2, and at most the 64 calls that are
    /// remembered.
    pub hard_stop: u32,
    /// The longest cycle, in calls; 1 finds only the same call in a row; 4 by default.
    pub max_cycle: usize,
    /// Calls that ended longer ago do not count; ten minutes by default.
    pub window: Duration,
    /// How many identical calls within a minute a session may make whose calls [belong to no
    /// conversation](crate::Session::with_stateless_calls); 60 by default. A call with a new result
    /// restarts the count.
    pub stateless_calls_per_minute: u32,
}

/// The user is asked at the third call in a row or the third round of up to four calls, and the
/// tenth identical call within ten minutes is refused.
impl Default for LoopGuardSettings {
    fn default() -> Self {
        Self {
            is_enabled: true,
            threshold: 3,
            hard_stop: 10,
            max_cycle: 4,
            window: Duration::from_mins(10),
            stateless_calls_per_minute: 60,
        }
    }
}

impl LoopGuardSettings {
    /// Returns settings that check nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self { is_enabled: false, ..Self::default() }
    }

    /// Returns the nearest settings that can be counted.
    pub(super) fn clamped(mut self) -> Self {
        self.threshold = clamp_to_history(self.threshold);
        self.hard_stop = clamp_to_history(self.hard_stop);
        self.max_cycle = self.max_cycle.clamp(1, MAX_CALLS);
        self
    }
}
