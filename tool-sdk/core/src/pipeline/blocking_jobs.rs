//! The blocking work of running calls on other threads.
//!
//! **Invariant:** the end of a call stops its jobs and tells whether one is held: such a job has
//! begun to change something, and the call waits for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::call::CallId;
use crate::context::WorkStop;

/// The blocking jobs of the calls of one session.
#[derive(Default)]
pub(super) struct BlockingJobs(Mutex<Vec<BlockingJob>>);

/// A job of a call. The call is identified by id and start time, because an id may be reused.
struct BlockingJob {
    call: CallId,
    started: Instant,
    stop: WorkStop,
}

impl BlockingJobs {
    /// Adds a job of a call.
    pub(super) fn add(&self, call: &CallId, started: Instant, stop: &WorkStop) {
        let job = BlockingJob { call: call.clone(), started, stop: stop.clone() };
        self.lock().push(job);
    }

    /// Removes a job that its call no longer waits for.
    pub(super) fn remove(&self, stop: &WorkStop) {
        let mut all = self.lock();
        if let Some(at) = all.iter().position(|job| job.stop.is_same_work(stop)) {
            all.swap_remove(at);
        }
    }

    /// Stops all jobs of a call; returns whether any of them is held.
    pub(super) fn stop_all(&self, call: &CallId, started: Instant) -> bool {
        let all = self.lock();
        let of_call = all.iter().filter(|job| job.started == started && job.call == *call);
        // No short circuit: each job is stopped.
        of_call.fold(false, |is_held, job| job.stop.stop() | is_held)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BlockingJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
