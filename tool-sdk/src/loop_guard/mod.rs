//! Finds calls that repeat and get nowhere.
//!
//! The pipeline asks [`LoopGuard::record_call`] before every call, after the hooks and before
//! the decision, and tells the [`CallHistory`] of the session what became of it. A repeat counts
//! only while the result stays the same, so that a poll whose answer changes is no loop. A call that
//! still runs or waits for an answer has none that it could repeat, and counts towards the hard stop
//! alone; a call of a batch that waited for those before it is [looked at again](LoopGuard::recheck_call)
//! once they are over.
//!
//! **Invariant:** nothing here refuses a call. It says what it found; the pipeline decides.

mod key;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::name::matches_glob;

/// How many calls of a session are remembered.
const WINDOW: usize = 64;

/// When repeated calls of a session are a loop.
///
/// The third call in a row with the same tool, the same arguments and the same result so far
/// is one; so is the third round of up to four calls. Somebody may allow it, and counting
/// starts anew. Calls that run at the same time are none: what still runs has no result. The tenth
/// call of that kind within the last 64 is refused, whatever was allowed, and so is the tenth call or
/// round in a row of calls that may all still run.
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

/// Calls that may repeat as they like.
#[derive(Clone, Debug)]
struct Exemption {
    pattern: String,
    /// Which calls of the tools; all of them when it does not say.
    when: Option<fn(&str) -> bool>,
}

/// Three calls or rounds, rounds of up to four calls, a hard stop at ten, nothing exempt.
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
    /// From which call in a row on, or from which round of a cycle on, it is a loop.
    ///
    /// At least 2, and at most the 64 calls that are remembered.
    #[must_use]
    pub fn threshold(mut self, times: u32) -> Self {
        self.settings_mut().threshold = clamp_to_window(times);
        self
    }

    /// The most calls that a cycle may have; 1 finds only the same call in a row.
    #[must_use]
    pub fn max_cycle(mut self, calls: usize) -> Self {
        self.settings_mut().max_cycle = calls.clamp(1, WINDOW);
        self
    }

    /// From which identical call on nothing but a change helps, other calls in between or not.
    ///
    /// In a row, or in rounds of up to four calls, those count as well that still run or wait. It
    /// holds for every tool that is not exempt, also where a threshold is higher. At
    /// least 2, and at most the 64 calls that are remembered.
    #[must_use]
    pub fn hard_stop(mut self, times: u32) -> Self {
        self.settings_mut().hard_stop = clamp_to_window(times);
        self
    }

    /// Lets the tools whose name matches `pattern` repeat as they like; `*` stands for any
    /// text and `?` for one character.
    #[must_use]
    pub fn exempt(mut self, pattern: impl Into<String>) -> Self {
        self.settings_mut().exempt.push(Exemption { pattern: pattern.into(), when: None });
        self
    }

    /// Lets some calls of the tools whose name matches `pattern` repeat as they like, such as
    /// an empty poll: those for whose arguments, as JSON text, `when` says so.
    #[must_use]
    pub fn exempt_calls(mut self, pattern: impl Into<String>, when: fn(&str) -> bool) -> Self {
        self.settings_mut().exempt.push(Exemption { pattern: pattern.into(), when: Some(when) });
        self
    }

    /// Another [`threshold`](Self::threshold) for the tools whose name matches `pattern`; the
    /// last pattern that matches counts.
    ///
    /// In a cycle of several tools the one that is called last counts.
    #[must_use]
    pub fn threshold_of(mut self, pattern: impl Into<String>, times: u32) -> Self {
        self.settings_mut().thresholds.push((pattern.into(), clamp_to_window(times)));
        self
    }

    fn settings_mut(&mut self) -> &mut LoopGuardSettings {
        Arc::make_mut(&mut self.0)
    }

    /// Says what a call repeats that is about to run, as far as `history` knows, and adds it there.
    ///
    /// The ticket goes back to the history when it is known how the call ended. A call whose ticket
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

    /// Says what a call repeats that was written down and then waited for those before it: they are
    /// over by now, and have results. Those behind it do not count, and neither does one that is too
    /// long ago.
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

/// What a call repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopFinding {
    /// Nothing that matters.
    NoLoop,
    /// The last `cycle` calls for the `times`th time in a row; somebody may allow it.
    Repeated { times: u32, cycle: usize },
    /// The same call for the `times`th time; nobody may allow it.
    Stopped { times: u32 },
}

impl LoopFinding {
    /// What the model is told: what repeats, and what to do instead.
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

    /// Records that the call ran and gave this text, and these facts where the text does not say
    /// all.
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
    /// It keeps its place, as if it had given the result of the identical call before it: a model
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
    /// Each in the place that its number gives it; a new one takes that of the oldest.
    calls: [PastCall; WINDOW],
    /// The number of the next call.
    next: u64,
    /// The numbers of the calls that somebody allowed: those up to it count towards no threshold
    /// any more.
    allowed: Vec<u64>,
}

impl Default for RecentCalls {
    fn default() -> Self {
        let calls = [PastCall { key: 0, end: CallEnd::Open }; WINDOW];
        Self { calls, next: 0, allowed: Vec::new() }
    }
}

/// Where the call of this number stands.
const fn slot_index(number: u64) -> usize {
    (number % WINDOW as u64) as usize
}

#[derive(Clone, Copy, Debug)]
struct PastCall {
    key: u64,
    end: CallEnd,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallEnd {
    /// It still runs, or waits for an answer.
    Open,
    /// It did not run, and nobody knows what it would have given.
    NotRun,
    /// It gave this.
    Returned(u64),
}

impl PastCall {
    /// Whether this call was `older` again, as far as is known.
    fn repeats(&self, older: &PastCall) -> bool {
        let changed = match (self.end, older.end) {
            (CallEnd::Returned(new), CallEnd::Returned(old)) => new != old,
            _ => false,
        };
        self.key == older.key && !changed
    }
}

impl RecentCalls {
    /// Adds a call in the place of the oldest; returns its number.
    fn push(&mut self, key: u64) -> u64 {
        let number = self.next;
        self.calls[slot_index(number)] = PastCall { key, end: CallEnd::Open };
        self.next += 1;
        number
    }

    /// The call of this number, unless it is too long ago.
    fn find_call(&mut self, number: u64) -> Option<&mut PastCall> {
        let is_known = self.next - number <= WINDOW as u64;
        is_known.then(|| &mut self.calls[slot_index(number)])
    }

    /// The calls before this number, newest first.
    fn calls_before(&self, number: u64) -> impl Iterator<Item = &PastCall> + Clone {
        let oldest = self.next.saturating_sub(WINDOW as u64);
        (oldest..number).rev().map(|number| &self.calls[slot_index(number)])
    }

    /// The call of this number, and those of the `most` up to it that are over, newest first.
    fn finished_calls(&self, number: u64, most: usize) -> impl Iterator<Item = &PastCall> + Clone {
        let calls = self.calls_before(number + 1).take(most).enumerate();
        calls.filter(|(at, call)| *at == 0 || call.end != CallEnd::Open).map(|(_, call)| call)
    }

    /// What the call of this number repeats of those before it.
    fn evaluate_call(
        &self,
        number: u64,
        threshold: u32,
        settings: &LoopGuardSettings,
    ) -> LoopFinding {
        let key = self.calls[slot_index(number)].key;
        let identical = self.finished_calls(number, usize::MAX).filter(|call| call.key == key);
        // What still runs gives nothing that could be the same; but nobody needs so much of it.
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

/// How often the last `cycle` calls were made in a row; `calls` come newest first.
fn count_rounds<'c>(calls: impl Iterator<Item = &'c PastCall> + Clone, cycle: usize) -> u32 {
    let older = calls.clone().skip(cycle);
    let repeats = calls.zip(older).take_while(|(call, older)| call.repeats(older)).count();
    // At most the window.
    (repeats / cycle + 1) as u32
}
