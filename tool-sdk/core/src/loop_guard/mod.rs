//! Loop detection: finds calls that repeat and get nowhere.
//!
//! The pipeline calls [`LoopGuard::record_call`] before every call, after the before-hooks and
//! before the decision. It records the result of the call in the [`CallHistory`] of the session. A
//! repeat counts only while the result stays the same, so a poll whose result changes is no loop. A
//! call that still runs, or waits for an approval, has no result to repeat, and only counts towards
//! the hard stop. A call of a batch that waited for earlier calls is [checked
//! again](LoopGuard::recheck_call) when these have ended.
//!
//! **Invariant:** nothing here refuses a call. The guard returns a finding; the pipeline decides.

mod key;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::name::matches_glob;

/// How many calls of a session are remembered.
const WINDOW: usize = 64;

/// Detects repeated calls of a session.
///
/// The third call in a row with the same tool, the same arguments and the same result so far is a
/// loop, and so is the third round of a cycle of up to four calls. The user may approve it, which
/// restarts the count. Concurrent calls are no loop, because a running call has no result yet. The
/// tenth identical call within the last 64 is refused even when earlier ones were approved, and so
/// is the tenth call or round in a row, including calls that still run.
///
/// Cheap to clone; the history belongs to the session.
///
/// # Examples
///
/// ```
/// use tool_sdk::LoopGuard;
///
/// let guard = LoopGuard::default()
///     .threshold(5)
///     .exempt("clock_*")
///     .exempt_calls("read_output", |arguments| arguments == "{}")
///     .threshold_of("fetch", 3);
/// # let _ = guard;
/// ```
#[derive(Clone, Debug)]
pub struct LoopGuard(Arc<LoopGuardSettings>);

#[derive(Clone, Debug)]
struct LoopGuardSettings {
    threshold: u32,
    max_cycle: usize,
    hard_stop: u32,
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

/// A threshold of three calls or rounds, cycles of up to four calls, a hard stop at ten, no
/// exemptions.
impl Default for LoopGuard {
    fn default() -> Self {
        Self(Arc::new(LoopGuardSettings {
            threshold: 3,
            max_cycle: 4,
            hard_stop: 10,
            exempt: Vec::new(),
            thresholds: Vec::new(),
        }))
    }
}

impl LoopGuard {
    /// Sets from which call in a row, or which round of a cycle, a repeat is a loop.
    ///
    /// At least 2, and at most the 64 calls that are remembered.
    #[must_use]
    pub fn threshold(mut self, times: u32) -> Self {
        self.settings_mut().threshold = clamp_to_window(times);
        self
    }

    /// Sets the longest cycle, in calls; 1 finds only the same call in a row.
    #[must_use]
    pub fn max_cycle(mut self, calls: usize) -> Self {
        self.settings_mut().max_cycle = calls.clamp(1, WINDOW);
        self
    }

    /// Sets at which identical call the call is refused, even with other calls in between.
    ///
    /// Calls in a row, or in cycles of up to four calls, count even while they still run or wait.
    /// The limit holds for every tool that is not exempt, also when its threshold is higher. At
    /// least 2, and at most the 64 calls that are remembered.
    #[must_use]
    pub fn hard_stop(mut self, times: u32) -> Self {
        self.settings_mut().hard_stop = clamp_to_window(times);
        self
    }

    /// Exempts the tools whose name matches `pattern`; `*` stands for any text and `?` for one
    /// character.
    #[must_use]
    pub fn exempt(mut self, pattern: impl Into<String>) -> Self {
        self.settings_mut().exempt.push(Exemption { pattern: pattern.into(), when: None });
        self
    }

    /// Exempts some calls of the tools whose name matches `pattern`, such as an empty poll: those
    /// for whose arguments, as JSON text, `when` returns `true`.
    #[must_use]
    pub fn exempt_calls(mut self, pattern: impl Into<String>, when: fn(&str) -> bool) -> Self {
        self.settings_mut().exempt.push(Exemption { pattern: pattern.into(), when: Some(when) });
        self
    }

    /// Sets another [`threshold`](Self::threshold) for the tools whose name matches `pattern`; the
    /// last pattern that matches counts.
    ///
    /// In a cycle of several tools the tool of the last call counts.
    #[must_use]
    pub fn threshold_of(mut self, pattern: impl Into<String>, times: u32) -> Self {
        self.settings_mut().thresholds.push((pattern.into(), clamp_to_window(times)));
        self
    }

    fn settings_mut(&mut self) -> &mut LoopGuardSettings {
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
    ) -> (HistoryTicket, LoopFinding) {
        if self.0.exempt.iter().any(|exempt| exempt.covers(tool, arguments)) {
            return (HistoryTicket(None), LoopFinding::NoLoop);
        }
        let key = key::call_key(tool, arguments);
        let mut recent = history.lock_calls();
        let number = recent.push(key);
        let threshold = self.0.threshold_for(tool);
        (HistoryTicket(Some(number)), recent.evaluate_call(number, threshold, &self.0))
    }

    /// Checks a recorded call again that waited for earlier calls of its batch, which have results
    /// by now. Later calls do not count. A call that already left the history repeats nothing.
    pub(crate) fn recheck_call(
        &self,
        history: &CallHistory,
        tool: &str,
        ticket: &HistoryTicket,
    ) -> LoopFinding {
        let Some(number) = ticket.0 else { return LoopFinding::NoLoop };
        let mut recent = history.lock_calls();
        match recent.find_call(number) {
            Some(_) => recent.evaluate_call(number, self.0.threshold_for(tool), &self.0),
            None => LoopFinding::NoLoop,
        }
    }
}

impl LoopGuardSettings {
    fn threshold_for(&self, tool: &str) -> u32 {
        let own = self.thresholds.iter().rfind(|(pattern, _)| matches_glob(pattern, tool));
        own.map_or(self.threshold, |&(_, times)| times)
    }
}

impl Exemption {
    fn covers(&self, tool: &str, arguments: &str) -> bool {
        matches_glob(&self.pattern, tool) && self.when.is_none_or(|when| when(arguments))
    }
}

fn clamp_to_window(times: u32) -> u32 {
    times.clamp(2, WINDOW as u32)
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
                 not change; it is refused from now on, so use the result or try something else"
            )),
        }
    }
}

/// A call's place in the history; an exempt call has none.
#[derive(Debug)]
pub(crate) struct HistoryTicket(Option<u64>);

/// The recent calls of a session, shared by its concurrent calls.
#[derive(Debug, Default)]
pub(crate) struct CallHistory(Mutex<RecentCalls>);

impl CallHistory {
    /// Restarts the count of repeats after a call that a person approved. The hard stop goes on
    /// counting.
    pub(crate) fn mark_allowed(&self, ticket: &HistoryTicket) {
        if let Some(number) = ticket.0 {
            let mut recent = self.lock_calls();
            let next = recent.next;
            recent.allowed.retain(|allowed| next - allowed <= WINDOW as u64);
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
    ) {
        let Some(number) = ticket.0 else { return };
        let result = key::result_key(result, facts);
        if let Some(call) = self.lock_calls().find_call(number) {
            call.end = CallEnd::Returned(result);
        }
    }

    /// Records that the call did not run.
    ///
    /// The call keeps its place, as if it had the result of the identical call before it: a model
    /// that repeats a refused call is in a loop as well.
    pub(crate) fn record_not_run(&self, ticket: &HistoryTicket) {
        let Some(number) = ticket.0 else { return };
        let mut recent = self.lock_calls();
        let Some(&mut PastCall { key, .. }) = recent.find_call(number) else { return };
        let before = recent.calls_before(number).find(|call| call.key == key);
        let end = match before.map(|call| call.end) {
            Some(CallEnd::Returned(result)) => CallEnd::Returned(result),
            _ => CallEnd::NotRun,
        };
        if let Some(call) = recent.find_call(number) {
            call.end = end;
        }
    }

    fn lock_calls(&self) -> MutexGuard<'_, RecentCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last calls of a session.
#[derive(Debug)]
struct RecentCalls {
    /// Each call is stored in the slot of its number; a new call replaces the oldest.
    calls: [PastCall; WINDOW],
    /// The number of the next call.
    next: u64,
    /// The numbers of the calls that the user approved: calls up to such a number no longer count
    /// towards a threshold.
    allowed: Vec<u64>,
}

impl Default for RecentCalls {
    fn default() -> Self {
        let calls = [PastCall { key: 0, end: CallEnd::Open }; WINDOW];
        Self { calls, next: 0, allowed: Vec::new() }
    }
}

/// Returns the slot of the call with this number.
const fn slot_index(number: u64) -> usize {
    (number % WINDOW as u64) as usize
}

#[derive(Clone, Copy, Debug)]
struct PastCall {
    key: u64,
    end: CallEnd,
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
}

impl RecentCalls {
    /// Adds a call in the slot of the oldest; returns its number.
    fn push(&mut self, key: u64) -> u64 {
        let number = self.next;
        self.calls[slot_index(number)] = PastCall { key, end: CallEnd::Open };
        self.next += 1;
        number
    }

    /// Returns the call with this number, unless it has left the history.
    fn find_call(&mut self, number: u64) -> Option<&mut PastCall> {
        let is_known = self.next - number <= WINDOW as u64;
        is_known.then(|| &mut self.calls[slot_index(number)])
    }

    /// Returns the calls before this number, newest first.
    fn calls_before(&self, number: u64) -> impl Iterator<Item = &PastCall> + Clone {
        let oldest = self.next.saturating_sub(WINDOW as u64);
        (oldest..number).rev().map(|number| &self.calls[slot_index(number)])
    }

    /// Returns the call with this number and up to `most` finished calls before it, newest first.
    fn finished_calls(&self, number: u64, most: usize) -> impl Iterator<Item = &PastCall> + Clone {
        let calls = self.calls_before(number + 1).take(most).enumerate();
        calls.filter(|(at, call)| *at == 0 || call.end != CallEnd::Open).map(|(_, call)| call)
    }

    /// Checks what the call with this number repeats.
    fn evaluate_call(
        &self,
        number: u64,
        threshold: u32,
        settings: &LoopGuardSettings,
    ) -> LoopFinding {
        let key = self.calls[slot_index(number)].key;
        let identical = self.finished_calls(number, usize::MAX).filter(|call| call.key == key);
        // Running calls have no result that could be the same, but ten of them in a row are a loop.
        let cycles = 1..=settings.max_cycle;
        let in_flight =
            cycles.clone().map(|cycle| count_rounds(self.calls_before(number + 1), cycle)).max();
        let times = count_rounds(identical, 1).max(in_flight.unwrap_or(0));
        if times >= settings.hard_stop {
            return LoopFinding::Stopped { times };
        }
        let allowed = self.allowed.iter().filter(|&&allowed| allowed <= number).max();
        let counted = number + 1 - allowed.map_or(0, |allowed| allowed + 1);
        let in_a_row = self.finished_calls(number, usize::try_from(counted).unwrap_or(usize::MAX));
        cycles
            .map(|cycle| (cycle, count_rounds(in_a_row.clone(), cycle)))
            .find(|&(_, times)| times >= threshold)
            .map_or(LoopFinding::NoLoop, |(cycle, times)| LoopFinding::Repeated { times, cycle })
    }
}

/// Counts how often the last `cycle` calls were made in a row; `calls` come newest first.
fn count_rounds<'c>(calls: impl Iterator<Item = &'c PastCall> + Clone, cycle: usize) -> u32 {
    let older = calls.clone().skip(cycle);
    let repeats = calls.zip(older).take_while(|(call, older)| call.repeats(older)).count();
    // At most the window.
    (repeats / cycle + 1) as u32
}
