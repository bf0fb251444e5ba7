//! What running calls do on other threads, for whoever ends a call.
//!
//! **Invariant:** work that is held is waited for; whoever stops it knows which of the two was
//! first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::call::CallId;
use crate::context::Stop;

/// The work of the calls of one session.
#[derive(Default)]
pub(super) struct Works(Mutex<Vec<Work>>);

/// Work of a call, which is known by its name and by when it began: a name may come twice.
struct Work {
    call: CallId,
    started: Instant,
    stop: Stop,
}

impl Works {
    /// A call begins to work.
    pub(super) fn begin(&self, call: &CallId, started: Instant, stop: &Stop) {
        let work = Work { call: call.clone(), started, stop: stop.clone() };
        self.all().push(work);
    }

    /// A call waits for this work no more.
    pub(super) fn end(&self, stop: &Stop) {
        let mut all = self.all();
        if let Some(at) = all.iter().position(|work| work.stop.is_same(stop)) {
            all.swap_remove(at);
        }
    }

    /// Stops all that a call works on; says whether any of it is held.
    pub(super) fn stop(&self, call: &CallId, started: Instant) -> bool {
        let all = self.all();
        let of_call = all.iter().filter(|work| work.started == started && work.call == *call);
        // Each of them is stopped, whatever the others are.
        of_call.fold(false, |is_held, work| work.stop.stop() | is_held)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
