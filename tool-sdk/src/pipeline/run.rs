//! Running a prepared call: to its end, its time limit or its cancellation.
//!
//! Most calls are done at the first poll; only one that waits costs a timer.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;

use super::frame::Frame;
use crate::content::Output;
use crate::error::ToolError;
use crate::tool::{Approved, Prepared};

/// How long a call that is over waits for work that is held.
const SETTLING: Duration = Duration::from_secs(5);

/// What is told of a call that is over and may have changed something.
const CHANGED: &str = "it had begun to make its changes; look at what is there before you go on";

type Result = std::result::Result<Output, ToolError>;

/// What the first poll of a call gives.
pub(super) enum First {
    Done(Result),
    Waiting(Waiting<'static, Output>),
}

/// Begins to run `prepared`, for who contains panics; most calls are done then, and their result
/// is in its place before anything is dropped. Gives what is not.
#[inline(always)]
pub(super) fn begin(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Option<Result>,
) -> Option<Waiting<'static, Output>> {
    let mut context = || frame.context_to_run();
    let mut running = prepared.run(Approved::by_pipeline(&mut context));
    match running.as_mut().poll(task) {
        Poll::Ready(done) => {
            *result = Some(done);
            None
        }
        Poll::Pending => Some(Waiting::on(running)),
    }
}

/// The same for who has no task at hand.
pub(super) fn first(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
) -> impl Future<Output = First> {
    let mut prepared = Some(prepared);
    poll_fn(move |task| {
        let mut result = None;
        let begin = |prepared| contained(|| begin(frame, prepared, task, &mut result));
        Poll::Ready(match prepared.take().map(begin).transpose() {
            Ok(Some(Some(waiting))) => First::Waiting(waiting),
            Ok(_) => First::Done(result.unwrap_or_else(|| Err(begun_twice()))),
            Err(error) => First::Done(Err(error)),
        })
    })
}

#[cold]
fn begun_twice() -> ToolError {
    ToolError::internal("the call was begun twice")
}

/// Waits for a call that was not done at once, while it has time and somebody wants it.
pub(super) async fn wait(frame: &mut Frame<'_>, mut running: Waiting<'static, Output>) -> Result {
    frame.begun();
    frame.write_repeat();
    let thoughts = &frame.core.kept(frame.session).thoughts;
    let id = frame.id.clone();
    let _ends = thoughts.until_the_end_of(&id);
    let expired = async {
        match frame.deadline() {
            Some(deadline) => {
                tokio::time::sleep_until(deadline).await;
                thoughts.used_up(&id, deadline).await;
            }
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        biased;
        () = frame.given_up() => aborted(),
        result = poll_fn(|task| running.poll(task)) => return result,
        () = expired => timed_out(frame),
    };
    settled(frame, running, ended).await
}

/// The result of a call that is over: it `ended` so, unless work of it is held that tells what it
/// did.
async fn settled(
    frame: &mut Frame<'_>,
    mut running: Waiting<'static, Output>,
    ended: ToolError,
) -> Result {
    let works = &frame.core.kept(frame.session).works;
    let (id, started) = (frame.id, frame.started());
    let is_held = || works.stop(id, started);
    if !is_held() {
        return Err(ended);
    }
    let done = poll_fn(|task| match running.poll(task) {
        Poll::Pending if !is_held() => Poll::Ready(None),
        polled => polled.map(Some),
    });
    match tokio::time::timeout(SETTLING, done).await {
        Ok(Some(result)) => result,
        // It waits for something else by now, or for too long.
        Ok(None) | Err(_) => Err(ended.hint(CHANGED)),
    }
}

/// A future of a tool or a hook whose panics are its own failure, also those of its destructors.
pub(super) struct Waiting<'a, T>(Option<Running<'a, T>>);

type Running<'a, T> = Pin<Box<dyn Future<Output = std::result::Result<T, ToolError>> + Send + 'a>>;

impl<'a, T> Waiting<'a, T> {
    pub(super) fn on(running: Running<'a, T>) -> Self {
        Self(Some(running))
    }

    pub(super) fn poll(
        &mut self,
        task: &mut task::Context<'_>,
    ) -> Poll<std::result::Result<T, ToolError>> {
        let Some(running) = &mut self.0 else {
            return Poll::Ready(Err(ToolError::internal("the call was polled after its end")));
        };
        contained(|| running.as_mut().poll(task)).unwrap_or_else(|error| Poll::Ready(Err(error)))
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        let running = self.0.take();
        // What a destructor panics with is of no use to anybody any more.
        let _ = contained(|| drop(running));
    }
}

/// What `work` gives; a panic in it is an error of this call.
#[inline(always)]
pub(super) fn contained<T>(work: impl FnOnce() -> T) -> std::result::Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(&*panic))
}

/// The failure of a call whose tool panicked: the words are for the host.
#[cold]
pub(super) fn panicked(panic: &(dyn Any + Send)) -> ToolError {
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
pub(super) fn aborted() -> ToolError {
    ToolError::aborted("the call was cancelled")
}

#[cold]
fn timed_out(frame: &Frame<'_>) -> ToolError {
    let after = frame.deadline().map(|deadline| deadline - frame.started()).unwrap_or_default();
    ToolError::timeout(format_args!("`{}` was stopped after {after:?}", frame.definition.name))
        .hint("ask for less at once, or allow more time")
}
