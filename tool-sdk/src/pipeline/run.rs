//! Running a prepared call: to its end, its time limit or its cancellation.
//!
//! Most calls are done at the first poll; only one that waits costs a timer.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{self, Poll};

use tokio_util::sync::CancellationToken;

use crate::content::Output;
use crate::context::Context;
use crate::error::ToolError;
use crate::tool::{Prepared, Running};

/// Runs `prepared` until it is done, cancelled, out of time, or the pipeline is `closed`.
pub(super) async fn run(
    prepared: Box<dyn Prepared>,
    cx: &Context,
    closed: &CancellationToken,
) -> Result<Output, ToolError> {
    if cx.is_aborted() {
        return Err(aborted());
    }
    let started = catch_unwind(AssertUnwindSafe(|| prepared.run(cx.clone())));
    let mut running = match started {
        Ok(running) => Guarded(Some(running)),
        Err(panic) => return Err(panicked(&*panic)),
    };
    if let Poll::Ready(result) = poll_fn(|task| Poll::Ready(running.poll(task))).await {
        return result;
    }
    let expired = async {
        match cx.deadline() {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cx.cancelled() => Err(aborted()),
        () = closed.cancelled() => Err(aborted()),
        result = poll_fn(|task| running.poll(task)) => result,
        () = expired => Err(timed_out(cx)),
    }
}

/// A tool's future whose panics end only its own call, also those of its destructors.
struct Guarded(Option<Running>);

impl Guarded {
    fn poll(&mut self, task: &mut task::Context<'_>) -> Poll<Result<Output, ToolError>> {
        let Some(running) = &mut self.0 else {
            return Poll::Ready(Err(ToolError::internal("the call was polled after its end")));
        };
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(task))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(panicked(&*panic))),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let running = self.0.take();
        // What a destructor panics with is of no use to anybody any more.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(running)));
    }
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let words = panic
        .downcast_ref::<&str>()
        .map(|&words| words.to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned());
    ToolError::internal("the tool failed with a defect of its own")
        .hint("other tools still work; try another way")
        .source(words)
}

#[cold]
fn aborted() -> ToolError {
    ToolError::aborted("the call was cancelled")
}

#[cold]
fn timed_out(cx: &Context) -> ToolError {
    let after = cx.deadline().map(|deadline| deadline - cx.started()).unwrap_or_default();
    ToolError::timeout(format_args!("`{}` was stopped after {after:?}", cx.tool()))
        .hint("ask for less at once, or allow more time")
}
