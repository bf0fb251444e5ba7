//! How long running calls have waited for a person: that time is not the tool's.
//!
//! Only calls that ask while they run are here, and only until they end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call::CallId;

/// The calls of one session for which somebody thinks, or has thought.
#[derive(Default)]
pub(super) struct Thoughts {
    calls: Mutex<HashMap<CallId, Thought>>,
    ended: Notify,
}

/// How long somebody has thought about one call.
#[derive(Default)]
struct Thought {
    before: Duration,
    /// Since when, and for how many asks.
    now: Option<(Instant, usize)>,
}

impl Thought {
    fn so_far(&self) -> Duration {
        self.before + self.now.map_or(Duration::ZERO, |(since, _)| since.elapsed())
    }
}

impl Thoughts {
    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, Thought>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to think about a call.
    pub(super) fn begin<'t>(&'t self, call: &'t CallId) -> Thinking<'t> {
        let mut calls = self.calls();
        let thought = calls.entry(call.clone()).or_default();
        let (_, asks) = thought.now.get_or_insert_with(|| (Instant::now(), 0));
        *asks += 1;
        Thinking { thoughts: self, call }
    }

    /// How long somebody has thought about the call until now.
    pub(super) fn so_far(&self, call: &CallId) -> Duration {
        self.calls().get(call).map_or(Duration::ZERO, Thought::so_far)
    }

    /// Waits until the call has used up the time that ends at `deadline` when nobody thinks.
    pub(super) async fn used_up(&self, call: &CallId, deadline: Instant) {
        loop {
            let ended = self.ended.notified();
            let (thought, is_open) = match self.calls().get(call) {
                None => (Duration::ZERO, false),
                Some(thought) => (thought.so_far(), thought.now.is_some()),
            };
            if is_open {
                ended.await;
                continue;
            }
            let Some(deadline) = deadline.checked_add(thought) else {
                return std::future::pending().await;
            };
            if Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }

    /// Forgets a call when what this gives is dropped.
    pub(super) fn until_the_end_of<'t>(&'t self, call: &'t CallId) -> Ending<'t> {
        Ending { thoughts: self, call }
    }
}

/// Somebody thinks about a call.
pub(super) struct Thinking<'t> {
    thoughts: &'t Thoughts,
    call: &'t CallId,
}

impl Drop for Thinking<'_> {
    fn drop(&mut self) {
        if let Some(thought) = self.thoughts.calls().get_mut(self.call)
            && let Some((since, asks)) = thought.now
        {
            match asks {
                1 => (thought.before, thought.now) = (thought.before + since.elapsed(), None),
                _ => thought.now = Some((since, asks - 1)),
            }
        }
        self.thoughts.ended.notify_waiters();
    }
}

/// A call that runs, about which somebody may think.
pub(super) struct Ending<'t> {
    thoughts: &'t Thoughts,
    call: &'t CallId,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.thoughts.calls().remove(self.call);
    }
}
