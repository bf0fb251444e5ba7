//! Stops the time limit of running calls while a prompt is open.
//!
//! Holds only calls that open prompts while they run, and only until they end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call::{CallId, CallOrigin};

/// The prompts of the running calls of one session, and how long they were open.
#[derive(Default)]
pub(super) struct PromptClock {
    calls: Mutex<HashMap<CallId, PausedTime>>,
    ended: Notify,
}

/// How long prompts of one call have been open.
#[derive(Default)]
struct PausedTime {
    before: Duration,
    /// Since when prompts are open, and how many.
    now: Option<(Instant, usize)>,
}

impl PausedTime {
    fn total(&self) -> Duration {
        self.before + self.now.map_or(Duration::ZERO, |(since, _)| since.elapsed())
    }
}

impl PromptClock {
    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, PausedTime>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses the time of a call until the returned guard is dropped.
    fn pause<'t>(&'t self, call: &'t CallId) -> PromptPause<'t> {
        let mut calls = self.calls();
        let paused = calls.entry(call.clone()).or_default();
        let (_, prompts) = paused.now.get_or_insert_with(|| (Instant::now(), 0));
        *prompts += 1;
        PromptPause { clock: self, call }
    }

    /// Pauses the time of a call and of the calls around it, while a prompt is open.
    pub(super) fn pause_call<'t>(&'t self, call: &'t CallOrigin) -> Vec<PromptPause<'t>> {
        let mut paused = self.pause_ancestors(call);
        paused.push(self.pause(&call.id));
        paused
    }

    /// Pauses the time of the calls around a call that does not run yet, while a prompt is open.
    pub(super) fn pause_ancestors<'t>(&'t self, call: &'t CallOrigin) -> Vec<PromptPause<'t>> {
        call.ancestors().map(|ancestor| self.pause(&ancestor.id)).collect()
    }

    /// Returns how long the time of the call has been paused so far.
    pub(super) fn paused_time(&self, call: &CallId) -> Duration {
        self.calls().get(call).map_or(Duration::ZERO, PausedTime::total)
    }

    /// Waits until the call has used up the time that ends at `deadline`; time with an open prompt
    /// does not count.
    pub(super) async fn wait_until_used_up(&self, call: &CallId, deadline: Instant) {
        tokio::time::sleep_until(deadline).await;
        loop {
            let ended = self.ended.notified();
            let (paused, is_open) = match self.calls().get(call) {
                None => (Duration::ZERO, false),
                Some(paused) => (paused.total(), paused.now.is_some()),
            };
            if is_open {
                ended.await;
                continue;
            }
            let Some(deadline) = deadline.checked_add(paused) else {
                return std::future::pending().await;
            };
            if Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }

    /// Forgets a call when the returned guard is dropped.
    pub(super) fn forget_on_drop<'t>(&'t self, call: &'t CallId) -> ForgetOnDrop<'t> {
        ForgetOnDrop { clock: self, call }
    }
}

/// Pauses the time of a call while a prompt is open.
pub(super) struct PromptPause<'t> {
    clock: &'t PromptClock,
    call: &'t CallId,
}

impl Drop for PromptPause<'_> {
    fn drop(&mut self) {
        if let Some(paused) = self.clock.calls().get_mut(self.call)
            && let Some((since, prompts)) = paused.now
        {
            match prompts {
                1 => (paused.before, paused.now) = (paused.before + since.elapsed(), None),
                _ => paused.now = Some((since, prompts - 1)),
            }
        }
        self.clock.ended.notify_waiters();
    }
}

/// Forgets a call when it has ended.
pub(super) struct ForgetOnDrop<'t> {
    clock: &'t PromptClock,
    call: &'t CallId,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.clock.calls().remove(self.call);
    }
}
