//! Runs the tool until it ends, its timeout expires or the call is cancelled.
//!
//! **Invariant:** a panic of the tool is one failed call.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use super::invocation::Invocation;
use crate::content::Output;
use crate::error::ToolError;
use crate::tool::{ExecutionPermit, PreparedCall};
use futures_util::future::BoxFuture;

/// How long an ended call waits for blocking work that must not be abandoned.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The hint for a call that ended while such work was under way.
const MAY_HAVE_CHANGED: &str =
    "it had begun to make its changes; look at what is there before you go on";

impl Invocation<'_> {
    /// Runs the authorized call.
    pub(super) async fn run_tool(
        &mut self,
        prepared: Box<dyn PreparedCall>,
    ) -> Result<Output, ToolError> {
        self.enter_stage("execute");
        let tool = Arc::clone(&self.tool);
        let lifetime = tool.plugin_lifetime();
        let _running = match lifetime {
            Some(lifetime) => Some(lifetime.begin_call().ok_or_else(|| lifetime.unloaded_error())?),
            None => None,
        };
        self.metadata.notes = catch_panic(|| prepared.notes().to_vec())?;
        self.emit_started();
        self.reset_clock();
        let context = self.context();
        let permit = ExecutionPermit::issue(context, self.was_read);
        let running = catch_panic(|| prepared.run(permit))?;
        let mut running = ContainedFuture::new(running);
        // Most tools are done at the first poll and need neither timer nor cancellation.
        if let Poll::Ready(result) =
            std::future::poll_fn(|task| Poll::Ready(running.poll_contained(task))).await
        {
            return result;
        }
        let state = self.inner.session_state(self.session);
        let clock = &state.prompt_clock;
        let id = self.origin.id.clone();
        let _forget_when_done = clock.forget_on_drop(&id);
        let deadline = self.deadline();
        let expired = async {
            match deadline {
                Some(deadline) => clock.wait_until_used_up(&id, deadline).await,
                None => std::future::pending().await,
            }
        };
        let unloaded = async {
            match lifetime {
                Some(lifetime) => {
                    lifetime.unloading.cancelled().await;
                    lifetime.unloaded_error()
                }
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            biased;
            () = self.cancelled() => cancelled_error(),
            error = unloaded => error,
            result = self.poll_with_room(&mut running) => return result,
            () = expired => self.timeout_error(),
        };
        self.settle(running, ended).await
    }

    /// Runs the tool on, except while a lossless subscriber has to read first: what a tool emits
    /// between two polls is all that can be added to a full queue.
    async fn poll_with_room(
        &self,
        running: &mut ContainedFuture<'static, Output>,
    ) -> Result<Output, ToolError> {
        loop {
            let polled = std::future::poll_fn(|task| match self.is_held_back() {
                true => Poll::Ready(None),
                false => running.poll_contained(task).map(Some),
            });
            match polled.await {
                Some(result) => return result,
                None => self.inner.bus.wait_for_room().await,
            }
        }
    }

    /// Ends a call that was cancelled or timed out: stops its blocking work, and waits for work
    /// that must not be abandoned, whose result then counts.
    async fn settle(
        &self,
        mut running: ContainedFuture<'static, Output>,
        ended: ToolError,
    ) -> Result<Output, ToolError> {
        let jobs = &self.inner.session_state(self.session).blocking_jobs;
        let has_held_work = || jobs.stop_all(&self.origin.id, self.started);
        if !has_held_work() {
            return Err(ended);
        }
        let settled = std::future::poll_fn(|task| match running.poll_contained(task) {
            // The tool waits for something else by now.
            Poll::Pending if !has_held_work() => Poll::Ready(None),
            polled => polled.map(Some),
        });
        match tokio::time::timeout(SETTLE_TIMEOUT, settled).await {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => Err(ended.hint(MAY_HAVE_CHANGED)),
        }
    }

    fn timeout_error(&self) -> ToolError {
        let name = &self.definition().name;
        ToolError::timeout(format_args!("`{name}` was stopped after {:?}", self.timeout()))
            .hint("ask for less at once, or allow more time")
    }
}

/// A future of a tool or a hook whose panics become errors, also those of its destructors.
pub(super) struct ContainedFuture<'a, T>(Option<BoxFuture<'a, Result<T, ToolError>>>);

impl<'a, T> ContainedFuture<'a, T> {
    pub(super) fn new(future: BoxFuture<'a, Result<T, ToolError>>) -> Self {
        Self(Some(future))
    }

    fn poll_contained(&mut self, task: &mut task::Context<'_>) -> Poll<Result<T, ToolError>> {
        let Some(future) = &mut self.0 else {
            return Poll::Ready(Err(ToolError::internal("the call was polled after its end")));
        };
        catch_panic(|| future.as_mut().poll(task)).unwrap_or_else(|error| Poll::Ready(Err(error)))
    }
}

impl<T> Future for ContainedFuture<'_, T> {
    type Output = Result<T, ToolError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.poll_contained(task)
    }
}

impl<T> Drop for ContainedFuture<'_, T> {
    fn drop(&mut self) {
        let future = self.0.take();
        let _ = catch_panic(|| drop(future));
    }
}

/// Runs `work`; a panic in it becomes an error of the call.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_error(&*panic))
}

/// The error of a call whose tool panicked: the panic's message is for the host alone.
fn panic_error(panic: &(dyn Any + Send)) -> ToolError {
    let message = panic
        .downcast_ref::<&str>()
        .map(|&message| message.to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic with a non-string payload".to_owned());
    ToolError::internal("the tool failed with a defect of its own")
        .hint("other tools still work; try another way")
        .source(message)
}

pub(super) fn cancelled_error() -> ToolError {
    ToolError::aborted("the call was cancelled")
}
