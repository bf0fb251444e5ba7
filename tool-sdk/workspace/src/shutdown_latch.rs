//! The shutdown latch: the program waits for running file transactions before it exits.
//!
//! A thread that writes files continues after its call was dropped. If the program exited then,
//! half of a transaction would stay on disk. So the program calls [`shut_down_writes`] first:
//! new transactions are refused, uncommitted ones are rolled back, and the program waits for
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::WorkspaceError;

/// How many transactions are running.
static ACTIVE_WRITES: Mutex<usize> = Mutex::new(0);
static NO_WRITES: Condvar = Condvar::new();
/// Set while the count is locked. An atomic, so that reading it does not take the lock.
static IS_SHUTTING_DOWN: AtomicBool = AtomicBool::new(false);

/// A guard for a running transaction; shutdown waits until it is dropped.
pub(super) struct ShutdownGuard(());

impl ShutdownGuard {
    /// Registers a transaction. Fails when the program is shutting down.
    pub(super) fn begin() -> Result<Self, WorkspaceError> {
        let mut count = lock_count();
        if IS_SHUTTING_DOWN.load(Ordering::Relaxed) {
            return Err(WorkspaceError::aborted(
                "the program is shutting down, and nothing was written",
            ));
        }
        *count += 1;
        Ok(Self(()))
    }

    /// Returns whether the program is shutting down.
    pub(super) fn is_shutting_down(&self) -> bool {
        IS_SHUTTING_DOWN.load(Ordering::Relaxed)
    }
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        let mut count = lock_count();
        *count -= 1;
        if *count == 0 {
            NO_WRITES.notify_all();
        }
    }
}

/// Refuses new transactions, and waits up to `patience` until the running ones are committed or
/// rolled back.
///
/// This cannot be undone; it is called right before the program exits.
pub fn shut_down_writes(patience: Duration) {
    let count = lock_count();
    IS_SHUTTING_DOWN.store(true, Ordering::Relaxed);
    let waited = NO_WRITES.wait_timeout_while(count, patience, |count| *count > 0);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

fn lock_count() -> MutexGuard<'static, usize> {
    ACTIVE_WRITES.lock().unwrap_or_else(PoisonError::into_inner)
}
