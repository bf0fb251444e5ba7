//! The notes that the rules judged for each move, from the approval until the call runs.
//!
//! **Invariant:** a path is in the set of a call only if each plan of the call had it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_sdk::CallId;

/// How many calls may wait. A call whose set was dropped fails with a conflict.
const MAX_CALLS: usize = 64;

/// The judged moves of a session.
#[derive(Clone, Default)]
pub(crate) struct JudgedMoves {
    calls: Arc<Mutex<VecDeque<JudgedMove>>>,
}

/// A move that was judged and has not run.
struct JudgedMove {
    call: CallId,
    from: String,
    to: String,
    paths: BTreeSet<String>,
}

impl JudgedMove {
    fn is_of(&self, call: &CallId, from: &str, to: &str) -> bool {
        self.call == *call && self.from == from && self.to == to
    }
}

impl JudgedMoves {
    /// Adds the paths that a plan changes. The resources of a call may be made several times, not
    /// each time for a decision, so a path that another plan of the call did not have is left out.
    pub(crate) fn add(&self, call: &CallId, from: &str, to: &str, paths: BTreeSet<String>) {
        let mut calls = self.lock();
        if let Some(known) = calls.iter_mut().find(|known| known.is_of(call, from, to)) {
            return known.paths.retain(|path| paths.contains(path));
        }
        if calls.len() == MAX_CALLS {
            calls.pop_front();
        }
        let (from, to) = (from.to_owned(), to.to_owned());
        calls.push_back(JudgedMove { call: call.clone(), from, to, paths });
    }

    /// Removes the paths of a call; none when nothing was judged.
    pub(crate) fn take(&self, call: &CallId, from: &str, to: &str) -> BTreeSet<String> {
        let mut calls = self.lock();
        let at = calls.iter().position(|known| known.is_of(call, from, to));
        at.and_then(|at| calls.remove(at)).map(|known| known.paths).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<JudgedMove>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tool_sdk::testing;

    use super::*;

    fn paths(paths: &[&str]) -> BTreeSet<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn only_paths_of_each_plan_of_a_call_are_judged() {
        let (moves, cx) = (JudgedMoves::default(), testing::context());
        let call = cx.call_id();
        moves.add(call, "a.md", "b.md", paths(&["a.md", "x.md"]));
        moves.add(call, "a.md", "b.md", paths(&["a.md", "x.md", "late.md"]));
        moves.add(call, "a.md", "c.md", paths(&["a.md"]));
        assert_eq!(moves.take(call, "a.md", "b.md"), paths(&["a.md", "x.md"]));
        assert_eq!(moves.take(call, "a.md", "b.md"), paths(&[]));
        assert_eq!(moves.take(call, "a.md", "c.md"), paths(&["a.md"]));
    }

    #[test]
    fn few_calls_wait() {
        let (moves, cx) = (JudgedMoves::default(), testing::context());
        for number in 0..=MAX_CALLS {
            moves.add(cx.call_id(), "a.md", &number.to_string(), paths(&["a.md"]));
        }
        assert!(moves.take(cx.call_id(), "a.md", "0").is_empty());
        assert!(!moves.take(cx.call_id(), "a.md", "1").is_empty());
    }
}
