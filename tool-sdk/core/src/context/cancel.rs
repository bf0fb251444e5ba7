//! Ends a call early: cancellation and time limits.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::Context;
use crate::error::ToolError;

/// Why a future was dropped before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "there are no other ways to end early")]
pub enum Interrupted {
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Aborted,
    /// The time limit was exceeded.
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
}

impl From<Interrupted> for ToolError {
    fn from(why: Interrupted) -> Self {
        match why {
            Interrupted::Aborted => Self::aborted(why),
            Interrupted::TimedOut(_) => Self::timeout(why),
        }
    }
}

pub(super) async fn race<F: Future>(
    cx: &Context,
    future: F,
    timeout: Duration,
) -> Result<F::Output, Interrupted> {
    tokio::select! {
        biased;
        value = future => Ok(value),
        () = cx.cancelled() => Err(Interrupted::Aborted),
        () = tokio::time::sleep(timeout) => Err(Interrupted::TimedOut(timeout)),
    }
}

/// The call no longer waits for the work.
const STATE_STOPPED: u8 = 1;

/// The work is changing something, so the call waits for its result even when it was cancelled.
const STATE_HELD: u8 = 2;

/// Tells work on another thread that the call no longer waits for it.
#[derive(Clone, Debug)]
pub struct WorkStop {
    /// Both flags in one atomic, so that stopping and holding have a definite order.
    state: Arc<AtomicU8>,
    deadline: Option<Instant>,
}

impl WorkStop {
    /// Returns whether the work should end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state.load(Ordering::SeqCst) & STATE_STOPPED != 0 || self.is_past_deadline()
    }

    /// Makes the call wait for the work, unless the work should end. Work that changes something
    /// calls this right before the change.
    ///
    /// From here on, a call that is cancelled or out of time waits a few seconds for the work and
    /// returns its result, so that the caller learns whether anything was changed. The work may
    /// still check [`is_stopped`](Self::is_stopped) and undo what it did.
    ///
    /// # Errors
    ///
    /// Fails with `aborted` when the work should end.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(cx: &tool_sdk::Context) -> Result<(), tool_sdk::ToolError> {
    /// use tool_sdk::ToolError;
    ///
    /// cx.run_blocking(|stop| {
    ///     let text = (0..1000).map(|n| format!("{n}\n")).collect::<String>();
    ///     stop.hold()?;
    ///     std::fs::write("numbers.txt", text)
    ///         .map_err(|error| ToolError::failed("cannot write `numbers.txt`").source(error))
    /// })
    /// .await
    /// # }
    /// ```
    pub fn hold(&self) -> Result<(), ToolError> {
        if self.is_past_deadline()
            || self.state.fetch_or(STATE_HELD, Ordering::SeqCst) & STATE_STOPPED != 0
        {
            return Err(ToolError::aborted("the call ended before the tool was done"));
        }
        Ok(())
    }

    /// Stops the work; returns whether the call still waits for it.
    pub(crate) fn stop(&self) -> bool {
        self.state.fetch_or(STATE_STOPPED, Ordering::SeqCst) & STATE_HELD != 0
    }

    /// Returns whether both belong to the same work.
    pub(crate) fn is_same_work(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Work on another thread that a call waits for. Stops the work when the waiting future is
/// dropped.
struct AwaitedWork<'a> {
    cx: &'a Context,
    stop: WorkStop,
}

impl<'a> AwaitedWork<'a> {
    fn start(cx: &'a Context) -> Self {
        let stop = WorkStop { state: Arc::default(), deadline: cx.deadline() };
        if let Some(sink) = &cx.sink {
            sink.work_started(cx, &stop);
        }
        Self { cx, stop }
    }
}

impl Drop for AwaitedWork<'_> {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(sink) = &self.cx.sink {
            sink.work_ended(self.cx, &self.stop);
        }
    }
}

pub(super) async fn run_blocking<T, W>(cx: &Context, work: W) -> Result<T, ToolError>
where
    T: Send + 'static,
    W: FnOnce(&WorkStop) -> Result<T, ToolError> + Send + 'static,
{
    let waited = AwaitedWork::start(cx);
    let stop = waited.stop.clone();
    match tokio::task::spawn_blocking(move || work(&stop)).await {
        Ok(result) => result,
        Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
        Err(failure) => Err(ToolError::aborted("the runtime is shutting down").source(failure)),
    }
}
