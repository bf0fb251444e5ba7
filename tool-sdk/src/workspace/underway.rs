//! Changes that are on their way, for the program that wants to end.
//!
//! A thread that writes files goes on when nobody waits for it any more. Were the program to
//! end then, half of a change would stay. So whoever ends the program says so here: nothing
//! more is begun, what can still be undone is, and the program waits for that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "cli")]
use std::time::Duration;

use crate::error::ToolError;

/// How many changes are on their way.
static COUNT: Mutex<usize> = Mutex::new(0);
static IDLE: Condvar = Condvar::new();
/// Set while that is locked; whoever only looks at it keeps nobody waiting.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// A change for which the end of the program waits.
pub(super) struct Underway(());

impl Underway {
    /// Begins a change, unless the program ends.
    pub(super) fn begin() -> Result<Self, ToolError> {
        let mut count = lock();
        if IS_ENDING.load(Ordering::Relaxed) {
            return Err(ToolError::aborted("the program ends, and nothing was written"));
        }
        *count += 1;
        Ok(Self(()))
    }

    /// Whether the program ends.
    pub(super) fn is_unwanted(&self) -> bool {
        IS_ENDING.load(Ordering::Relaxed)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let mut count = lock();
        *count -= 1;
        if *count == 0 {
            IDLE.notify_all();
        }
    }
}

/// Lets no change begin any more, and waits until those on their way are made or undone.
///
/// For the very end of a program: there is no way back.
#[cfg(feature = "cli")]
pub(crate) fn finish(patience: Duration) {
    let count = lock();
    IS_ENDING.store(true, Ordering::Relaxed);
    let waited = IDLE.wait_timeout_while(count, patience, |count| *count > 0);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

fn lock() -> MutexGuard<'static, usize> {
    COUNT.lock().unwrap_or_else(PoisonError::into_inner)
}
