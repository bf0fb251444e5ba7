//! Grants of one process that wait to be written: the call that gets the lock of the file writes
//! all of them at once (group commit).
//!
//! **Invariant:** one call of the process at a time waits for the lock, so many answers of one
//! process do not keep others out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{PrivateFileError, StoredGrant};

/// How long a process lets others go first after it released the lock. The system wakes those that
/// wait, but gives the lock to the one that comes first.
const RELEASE_PAUSE: Duration = Duration::from_millis(5);

/// The grants as they are stored, or why they are not.
pub(super) type WriteResult = Result<Vec<StoredGrant>, PrivateFileError>;

/// The grants that wait, and the turn to write them.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    waiting: Mutex<Vec<QueuedGrants>>,
    /// When the lock was released last; held by the call that writes.
    turn: Mutex<Option<Instant>>,
}

/// The grants of one call.
#[derive(Debug)]
pub(super) struct QueuedGrants {
    pub(super) grants: Vec<StoredGrant>,
    pub(super) slot: Arc<ResultSlot>,
}

/// Where a call finds its result once its grants were written.
#[derive(Debug, Default)]
pub(super) struct ResultSlot(Mutex<Option<WriteResult>>);

impl ResultSlot {
    pub(super) fn set(&self, result: WriteResult) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    pub(super) fn take(&self) -> Option<WriteResult> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The turn of a call to write what waits.
pub(super) struct WriteTurn<'q> {
    queue: &'q WriteQueue,
    released: MutexGuard<'q, Option<Instant>>,
}

impl WriteQueue {
    /// Adds grants; the call that writes them fills the slot.
    pub(super) fn push(&self, grants: Vec<StoredGrant>) -> Arc<ResultSlot> {
        let slot = Arc::default();
        self.lock_waiting().push(QueuedGrants { grants, slot: Arc::clone(&slot) });
        slot
    }

    /// Waits until no other call of this process writes.
    pub(super) fn wait_for_turn(&self) -> WriteTurn<'_> {
        let released = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        WriteTurn { queue: self, released }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Vec<QueuedGrants>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteTurn<'_> {
    /// Lets other processes go first if this one had the lock a moment ago.
    pub(super) fn let_others_pass(&self) {
        if let Some(rest) = self.released.and_then(|at| RELEASE_PAUSE.checked_sub(at.elapsed())) {
            thread::sleep(rest);
        }
    }

    /// Takes everything that waits by now.
    pub(super) fn take_waiting(&self) -> Vec<QueuedGrants> {
        std::mem::take(&mut *self.queue.lock_waiting())
    }

    /// Removes the grants of a call that gives up.
    pub(super) fn remove(&self, slot: &Arc<ResultSlot>) {
        self.queue.lock_waiting().retain(|queued| !Arc::ptr_eq(&queued.slot, slot));
    }

    /// Notes that the lock was released.
    pub(super) fn end(mut self) {
        *self.released = Some(Instant::now());
    }
}
