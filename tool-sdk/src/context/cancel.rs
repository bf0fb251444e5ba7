//! How a call ends early: cancellation and time limits.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// The time was up.
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

/// Tells work on another thread that nobody waits for it any more.
#[derive(Clone, Debug)]
pub struct Stop {
    dropped: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// Whether the work should end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Sets the flag when the waiting future goes away, however it does.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) async fn blocking<T, W>(cx: &Context, work: W) -> Result<T, ToolError>
where
    T: Send + 'static,
    W: FnOnce(&Stop) -> Result<T, ToolError> + Send + 'static,
{
    let stop = Stop { dropped: Arc::default(), deadline: cx.deadline() };
    let _guard = SetOnDrop(Arc::clone(&stop.dropped));
    match tokio::task::spawn_blocking(move || work(&stop)).await {
        Ok(result) => result,
        Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
        Err(failure) => Err(ToolError::aborted("the runtime is shutting down").source(failure)),
    }
}
