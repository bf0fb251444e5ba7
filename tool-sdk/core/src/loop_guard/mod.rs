//! Loop detection: finds calls that repeat and get nowhere.
//!
//! The pipeline calls [`LoopGuard::record_call`] before every call, after the before-hooks and
//! before the decision. It records the result of the call in the [`CallHistory`] of the session. A
//! repeat counts only while the result stays the same, so a poll whose result changes is not a loop. A
//! call that still runs, or waits for an approval, has no result to repeat, and only counts towards
//! the hard stop. A call of a batch that waited for earlier calls is [checked
//! again](LoopGuard::recheck_call) when these have ended.
//!
//! **Invariant:** nothing here refuses a call. The guard returns a finding; the pipeline decides.

mod call_rates;
mod key;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use self::call_rates::CallRates;
pub use self::settings::LoopGuardSettings;
use crate::name::matches_glob;

/// How many calls of a session are remembered.
const MAX_CALLS: usize = 64;

/// Detects repeated calls of a conversation.
///
/// The third call in a row with the same tool, the same arguments and the same result so far is a
/// loop, and so is the third round of a cycle of up to four calls. The user may approve it, which
/// restarts the count. Concurrent calls are not a loop, because a running call has no result yet. The
/// tenth identical call is refused even when earlier ones were approved and other calls lie
/// between, and so is the tenth call or round in a row, including calls that still run.
///
/// The guard forgets, so that a long conversation may look at the same file again:
///
/// * Only calls within the last ten minutes count, and at most the last 64.
/// * For the refusal, only calls after the last progress count. Progress is a different call that
///   succeeded with a result that no remembered call had.
/// * Calls of a session [without a conversation](crate::Session::with_stateless_calls) are not a loop;
///   the 61st identical call within a minute is refused.
///
/// Cheap to clone; the history belongs to the session.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tool_sdk::{LoopGuard, LoopGuardSettings};
///
/// let mut settings = LoopGuardSettings::default();
/// settings.threshold = 5;
/// settings.window = Duration::from_mins(2);
///
/// let guard = LoopGuard::new(settings)
///     .exempt("clock_*")
///     .exempt_calls("read_output", |arguments| arguments == "{}")
///     .threshold_of("fetch", 3);
/// # let _ = guard;
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoopGuard(Arc<LoopGuardRules>);

#[derive(Clone, Debug, Default)]
struct LoopGuardRules {
    settings: LoopGuardSettings,
    exempt: Vec<Exemption>,
    thresholds: Vec<(String, u32)>,
}

/// Tools whose calls may repeat without limit.
#[derive(Clone, Debug)]
struct Exemption {
    pattern: String,
    /// Restricts the exemption to some calls of the tools, by their arguments; `None` exempts all
    /// calls.
    when: Option<fn(&str) -> bool>,
}

impl LoopGuard {
    /// Creates a guard without exemptions. Values beyond what can be counted are reduced to the
    /// nearest one that can: thresholds are at least 2 and at most the 64 calls that are
    /// remembered.
    #[must_use]
    pub fn new(settings: LoopGuardSettings) -> Self {
        Self(Arc::new(LoopGuardRules { settings: settings.clamped(), ..LoopGuardRules::default() }))
    }

    /// Returns the settings, as they are enforced.
    #[must_use]
    pub fn settings(&self) -> &LoopGuardSettings {
        &self.0.settings
    }

    /// Sets [`LoopGuardSettings::threshold`].
    #[must_use]
    pub fn threshold(mut self, times: u32) -> Self {
        self.rules_mut().settings.threshold = clamp_to_history(times);
        self
    }

    /// Sets [`LoopGuardSettings::max_cycle`].
    #[must_use]
    pub fn max_cycle(mut self, calls: usize) -> Self {
        self.rules_mut().settings.max_cycle = calls.clamp(1, MAX_CALLS);
        self
    }

    /// Sets [`LoopGuardSettings::hard_stop`].
    #[must_use]
    pub fn hard_stop(mut self, times: u32) -> Self {
        self.rules_mut().settings.hard_stop = clamp_to_history(times);
        self
    }

    /// Sets [`LoopGuardSettings::window`].
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.rules_mut().settings.window = window;
        self
    }

    /// Exempts the tools whose name matches `pattern`; `*` stands for any text and `?` for one
    /// character.
    #[must_use]
    pub fn exempt(mut self, pattern: impl Into<String>) -> Self {
        self.rules_mut().exempt.push(Exemption { pattern: pattern.into(), when: None });
        self
    }

    /// Exempts some calls of the tools whose name matches `pattern`, such as an empty poll: those
    /// for whose arguments, as JSON text, `when` returns `true`.
    #[must_use]
    pub fn exempt_calls(mut self, pattern: impl Into<String>, when: fn(&str) -> bool) -> Self {
        self.rules_mut().exempt.push(Exemption { pattern: pattern.into(), when: Some(when) });
        self
    }

    /// Sets another [`threshold`](Self::threshold) for the tools whose name matches `pattern`; the
    /// last pattern that matches counts.
    ///
    /// In a cycle of several tools the tool of the last call counts.
    #[must_use]
    pub fn threshold_of(mut self, pattern: impl Into<String>, times: u32) -> Self {
        self.rules_mut().thresholds.push((pattern.into(), clamp_to_history(times)));
        self
    }

    fn rules_mut(&mut self) -> &mut LoopGuardRules {
        Arc::make_mut(&mut self.0)
    }

    /// Checks whether a call that is about to run repeats calls in `history`, and adds it there.
    ///
    /// The caller hands the ticket back to the history when the call has ended. A call whose ticket
    /// is dropped counts as one that still runs.
    pub(crate) fn record_call(
        &self,
        history: &CallHistory,
        tool: &str,
        arguments: &str,
        now: Instant,
    ) -> (HistoryTicket, LoopFinding) {
        if self.0.is_exempt(tool, arguments) {
            return (HistoryTicket::Exempt, LoopFinding::NoLoop);
        }
        let key = key::call_key(tool, arguments);
        let mut recent = history.lock_calls();
        let number = recent.push(key, now);
        let finding = self.0.evaluate(&recent, number, tool, now);
        (HistoryTicket::Remembered(number), finding)
    }

    /// Counts a call that belongs to no conversation: only a burst of identical calls is found.
    pub(crate) fn record_stateless_call(
        &self,
        history: &CallHistory,
        tool: &str,
        arguments: &str,
        now: Instant,
    ) -> (HistoryTicket, LoopFinding) {
        if self.0.is_exempt(tool, arguments) {
            return (HistoryTicket::Exempt, LoopFinding::NoLoop);
        }
        let key = key::call_key(tool, arguments);
        let times = history.lock_rates().count_call(key, now);
        let finding = match times > self.0.settings.stateless_calls_per_minute {
            true => LoopFinding::TooFrequent { times },
            false => LoopFinding::NoLoop,
        };
        (HistoryTicket::Counted(key), finding)
    }

    /// Checks a recorded call again that waited for earlier calls of its batch, which have results
    /// by now. Later calls do not count. A call that already left the history repeats nothing.
    pub(crate) fn recheck_call(
        &self,
        history: &CallHistory,
        tool: &str,
        ticket: &HistoryTicket,
        now: Instant,
    ) -> LoopFinding {
        let HistoryTicket::Remembered(number) = *ticket else { return LoopFinding::NoLoop };
        let mut recent = history.lock_calls();
        match recent.find_call(number) {
            Some(_) => self.0.evaluate(&recent, number, tool, now),
            None => LoopFinding::NoLoop,
        }
    }
}

impl LoopGuardRules {
    fn threshold_for(&self, tool: &str) -> u32 {
        let own = self.thresholds.iter().rfind(|(pattern, _)| matches_glob(pattern, tool));
        own.map_or(self.settings.threshold, |&(_, times)| times)
    }

    fn is_exempt(&self, tool: &str, arguments: &str) -> bool {
        !self.settings.is_enabled || self.exempt.iter().any(|exempt| exempt.covers(tool, arguments))
    }

    fn evaluate(&self, recent: &RecentCalls, number: u64, tool: &str, now: Instant) -> LoopFinding {
        let since = now.checked_sub(self.settings.window);
        recent.evaluate_call(number, self.threshold_for(tool), &self.settings, since)
    }
}

impl Exemption {
    fn covers(&self, tool: &str, arguments: &str) -> bool {
        matches_glob(&self.pattern, tool) && self.when.is_none_or(|when| when(arguments))
    }
}

fn clamp_to_history(times: u32) -> u32 {
    times.clamp(2, MAX_CALLS as u32)
}

/// What the guard found about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopFinding {
    /// The call does not repeat, or not often enough.
    NoLoop,
    /// The last `cycle` calls come for the `times`th time in a row; the user may approve the call.
    Repeated { times: u32, cycle: usize },
    /// The same call for the `times`th time; no approval is possible.
    Stopped { times: u32 },
    /// The same call for the `times`th time within a minute, outside of a conversation; no
    /// approval is possible.
    TooFrequent { times: u32 },
}

impl LoopFinding {
    /// Returns the message for the model: what repeats, and what to do instead.
    pub(crate) fn message(self, tool: &str) -> Option<String> {
        match self {
            Self::NoLoop => None,
            Self::Repeated { times, cycle: 1 } => Some(format!(
                "`{tool}` was called {times} times in a row with the same arguments, and the \
                 result will not change; use it or try something else"
            )),
            Self::Repeated { times, cycle } => Some(format!(
                "the last {cycle} calls, up to this one of `{tool}`, were made {times} times in a \
                 row, and their results will not change; use them or try something else"
            )),
            Self::Stopped { times } => Some(format!(
                "`{tool}` was called {times} times with the same arguments, and the result will \
                 not change; it is refused until another call brings a new result, so use the \
                 result or try something else"
            )),
            Self::TooFrequent { times } => Some(format!(
                "`{tool}` was called {times} times within a minute with the same arguments; use \
                 the result, wait a minute, or try something else"
            )),
        }
    }
}

/// A call's place in the history.
#[derive(Debug)]
pub(crate) enum HistoryTicket {
    /// The call does not count.
    Exempt,
    /// The call has this number among the recent calls.
    Remembered(u64),
    /// Calls with this key are counted per minute.
    Counted(u64),
}

/// The recent calls of a session, shared by its concurrent calls.
#[derive(Debug, Default)]
pub(crate) struct CallHistory {
    recent: Mutex<RecentCalls>,
    /// The calls that belong to no conversation.
    rates: Mutex<CallRates>,
}

impl CallHistory {
    /// Restarts the count of repeats after a call that a person approved. The hard stop goes on
    /// counting.
    pub(crate) fn mark_allowed(&self, ticket: &HistoryTicket) {
        if let HistoryTicket::Remembered(number) = *ticket {
            let mut recent = self.lock_calls();
            let next = recent.next;
            recent.allowed.retain(|allowed| next - allowed <= MAX_CALLS as u64);
            recent.allowed.push(number);
        }
    }

    /// Records that the call ran and returned this text, and `facts` that the text does not
    /// contain.
    pub(crate) fn record_result(
        &self,
        ticket: &HistoryTicket,
        result: Result<&str, &str>,
        facts: &str,
        now: Instant,
    ) {
        let is_success = result.is_ok();
        let key = key::result_key(result, facts);
        match *ticket {
            HistoryTicket::Exempt => {}
            HistoryTicket::Remembered(number) => {
                self.lock_calls().record_result(number, key, is_success, now);
            }
            HistoryTicket::Counted(call) => self.lock_rates().record_result(call, key),
        }
    }

    /// Records that the call did not run.
    ///
    /// The call keeps its place, as if it had the result of the identical call before it: a model
    /// that repeats a refused call is in a loop as well.
    pub(crate) fn record_not_run(&self, ticket: &HistoryTicket, now: Instant) {
        let HistoryTicket::Remembered(number) = *ticket else { return };
        let mut recent = self.lock_calls();
        let Some(&mut PastCall { key, .. }) = recent.find_call(number) else { return };
        let before = recent.calls_before(number).find(|call| call.key == key);
        let end = match before.map(|call| call.end) {
            Some(CallEnd::Returned(result)) => CallEnd::Returned(result),
            _ => CallEnd::NotRun,
        };
        if let Some(call) = recent.find_call(number) {
            call.end = end;
            call.ended = now;
        }
    }

    fn lock_calls(&self) -> MutexGuard<'_, RecentCalls> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_rates(&self) -> MutexGuard<'_, CallRates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last calls of a session.
#[derive(Debug, Default)]
struct RecentCalls {
    /// At most [`MAX_CALLS`], the oldest first.
    calls: VecDeque<PastCall>,
    /// The number of the next call.
    next: u64,
    /// The numbers of the calls that the user approved: calls up to such a number no longer count
    /// towards a threshold.
    allowed: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct PastCall {
    number: u64,
    key: u64,
    end: CallEnd,
    /// When the call ended; when it began, while it is open.
    ended: Instant,
    /// Whether it succeeded with a result that no remembered call had.
    is_progress: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallEnd {
    /// It still runs, or waits for an approval.
    Open,
    /// It did not run, so its result is unknown.
    NotRun,
    /// It returned the result with this key.
    Returned(u64),
}

impl PastCall {
    /// Whether this call repeats `older`, as far as is known.
    fn repeats(&self, older: &PastCall) -> bool {
        let changed = match (self.end, older.end) {
            (CallEnd::Returned(new), CallEnd::Returned(old)) => new != old,
            _ => false,
        };
        self.key == older.key && !changed
    }

    /// Whether the call is open, or ended at `since` or later.
    fn is_within(&self, since: Option<Instant>) -> bool {
        self.end == CallEnd::Open || since.is_none_or(|since| self.ended >= since)
    }
}

impl RecentCalls {
    /// Adds a call in place of the oldest; returns its number.
    fn push(&mut self, key: u64, now: Instant) -> u64 {
        let number = self.next;
        if self.calls.len() == MAX_CALLS {
            self.calls.pop_front();
        }
        let (end, ended, is_progress) = (CallEnd::Open, now, false);
        self.calls.push_back(PastCall { number, key, end, ended, is_progress });
        self.next += 1;
        number
    }

    /// Returns the call with this number, unless it has left the history.
    fn find_call(&mut self, number: u64) -> Option<&mut PastCall> {
        let oldest = self.calls.front()?.number;
        self.calls.get_mut(usize::try_from(number.checked_sub(oldest)?).ok()?)
    }

    /// Records the result of the call with this number.
    fn record_result(&mut self, number: u64, result: u64, is_success: bool, now: Instant) {
        let end = CallEnd::Returned(result);
        let is_new = !self.calls.iter().any(|call| call.end == end);
        if let Some(call) = self.find_call(number) {
            call.end = end;
            call.ended = now;
            call.is_progress = is_success && is_new;
        }
    }

    /// Returns the calls before this number, newest first.
    fn calls_before(&self, number: u64) -> impl Iterator<Item = &PastCall> + Clone {
        self.calls.iter().rev().skip_while(move |call| call.number >= number)
    }

    /// Returns the call with this number and the calls before it that ended at `since` or later,
    /// newest first.
    fn recent_calls(
        &self,
        number: u64,
        since: Option<Instant>,
    ) -> impl Iterator<Item = &PastCall> + Clone {
        self.calls_before(number + 1).take_while(move |call| call.is_within(since))
    }

    /// Checks what the call with this number repeats. Calls that ended before `since` do not count.
    fn evaluate_call(
        &self,
        number: u64,
        threshold: u32,
        settings: &LoopGuardSettings,
        since: Option<Instant>,
    ) -> LoopFinding {
        let recent = self.recent_calls(number, since);
        let is_finished = |call: &&PastCall| call.number == number || call.end != CallEnd::Open;
        // Running calls have no result that could be the same, but ten of them in a row are a loop.
        let cycles = 1..=settings.max_cycle;
        let in_flight =
            cycles.clone().map(|cycle| count_rounds(recent.clone(), cycle)).max().unwrap_or(0);
        let times = count_since_progress(recent.clone().filter(is_finished)).max(in_flight);
        if times >= settings.hard_stop {
            return LoopFinding::Stopped { times };
        }
        let allowed = self.allowed.iter().filter(|&&allowed| allowed <= number).max();
        let counted = number + 1 - allowed.map_or(0, |allowed| allowed + 1);
        let counted = usize::try_from(counted).unwrap_or(usize::MAX);
        let in_a_row = recent.take(counted).filter(is_finished);
        cycles
            .map(|cycle| (cycle, count_rounds(in_a_row.clone(), cycle)))
            .find(|&(_, times)| times >= threshold)
            .map_or(LoopFinding::NoLoop, |(cycle, times)| LoopFinding::Repeated { times, cycle })
    }
}

/// Counts the first of `calls`, which come newest first, and those identical to it, up to the last
/// different call that was progress.
fn count_since_progress<'c>(calls: impl Iterator<Item = &'c PastCall> + Clone) -> u32 {
    let Some(key) = calls.clone().next().map(|call| call.key) else { return 0 };
    let since_progress = calls.take_while(|call| call.key == key || !call.is_progress);
    count_rounds(since_progress.filter(|call| call.key == key), 1)
}

/// Counts how often the last `cycle` calls were made in a row; `calls` come newest first.
fn count_rounds<'c>(calls: impl Iterator<Item = &'c PastCall> + Clone, cycle: usize) -> u32 {
    let older = calls.clone().skip(cycle);
    let repeats = calls.zip(older).take_while(|(call, older)| call.repeats(older)).count();
    // At most the window.
    (repeats / cycle + 1) as u32
}
