//! Changes that are on their way, for the program that wants to end.
//!
//! A thread that writes files goes on when nobody waits for it any more. Were the program to
//! end then, half of a change would stay. So whoever ends the program says so here: nothing
//! more is begun, what can still be undone is, and the program waits for that.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "cli")]
use std::time::Duration;

use crate::error::ToolError;

static STATE: Mutex<State> = Mutex::new(State { count: 0, is_ending: false });
static IDLE: Condvar = Condvar::new();

struct State {
    /// How many changes are on their way.
    count: usize,
    is_ending: bool,
}

/// A change for which the end of the program waits.
pub(super) struct Underway(());

impl Underway {
    /// Begins a change, unless the program ends.
    pub(super) fn begin() -> Result<Self, ToolError> {
        let mut state = lock();
        if state.is_ending {
            return Err(ToolError::aborted("the program ends, and nothing was written"));
        }
        state.count += 1;
        Ok(Self(()))
    }

    /// Whether the program ends.
    pub(super) fn is_unwanted(&self) -> bool {
        lock().is_ending
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut state = lock();
        state.count -= 1;
        if state.count == 0 {
            IDLE.notify_all();
        }
    }
}

/// Lets no change begin any more, and waits until those on their way are made or undone.
///
/// For the very end of a program: there is no way back.
#[cfg(feature = "cli")]
pub(crate) fn finish(patience: Duration) {
    let mut state = lock();
    state.is_ending = true;
    let waited = IDLE.wait_timeout_while(state, patience, |state| state.count > 0);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
