//! A prepared call of a native tool.
//!
//! A call is one allocation. A tool without a context parameter is stored as its future from the
//! start, since a future does nothing until it is polled; a tool with one is stored as a closure
//! until it gets the context.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use pin_project_lite::pin_project;

use super::Table;
use crate::call::{ArgumentNote, RawArgs};
use crate::content::Output;
use crate::context::Context;
use crate::error::ToolError;
use crate::tool::args::{self, InvalidArgs, ParsedArgs};
use crate::tool::path_collector::{ArgPaths, fill_path_defaults};
use crate::tool::{ExecutionPermit, OutputFuture, PreparedCall, Resource};

/// Decodes the arguments into `slots`, which are in the order of the table's parameters; each is
/// an `Option` of its parameter's type.
///
/// # Errors
///
/// Fails with all faults of the arguments at once.
#[inline]
pub fn take(
    table: &Table,
    raw: &RawArgs<'_>,
    slots: &mut [&mut dyn Any],
) -> Result<ParsedArgs, InvalidArgs> {
    let (taken, paths) = ArgPaths::collect(table, || {
        let taken = args::parse_args(table, raw, slots)?;
        fill_path_defaults(table, slots);
        Ok(taken)
    });
    taken.map(|taken| ParsedArgs { paths, ..taken })
}

/// Decodes all arguments as one struct into `slot`, which is an `Option` of it.
///
/// # Errors
///
/// Fails with all faults of the arguments at once.
pub fn take_struct(
    table: &Table,
    raw: &RawArgs<'_>,
    slot: &mut dyn Any,
) -> Result<ParsedArgs, InvalidArgs> {
    let (taken, paths) = ArgPaths::collect(table, || args::parse_struct(table, raw, slot));
    taken.map(|taken| ParsedArgs { paths, ..taken })
}

/// Returns the value of a slot that [`take`] filled.
///
/// # Panics
///
/// Never after a successful [`take`]: a required argument that is absent is a fault.
#[inline]
pub fn filled<T>(slot: Option<T>) -> T {
    match slot {
        Some(value) => value,
        None => unfilled(),
    }
}

#[cold]
fn unfilled() -> ! {
    panic!("a required argument was neither taken nor reported")
}

/// Prepares a call whose future needs no context; `convert` converts its output to the result.
pub fn stage<F>(
    taken: ParsedArgs,
    convert: fn(F::Output) -> Result<Output, ToolError>,
    future: F,
) -> Box<dyn PreparedCall>
where
    F: Future + Send + 'static,
{
    Box::new(Staged { future, convert, taken })
}

/// Prepares a call that needs the context; `start` creates the future when the pipeline runs it.
pub fn stage_in<S, F>(taken: ParsedArgs, start: S) -> Box<dyn PreparedCall>
where
    S: FnOnce(Context) -> F + Send + 'static,
    F: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    Box::new(Waiting { start: Some(start), taken, running: None })
}

pin_project! {
    /// A prepared call without callbacks, stored as its future.
    struct Staged<F: Future> {
        #[pin]
        future: F,
        convert: fn(F::Output) -> Result<Output, ToolError>,
        taken: ParsedArgs,
    }
}

impl<F: Future + Send + 'static> PreparedCall for Staged<F> {
    fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
        Box::into_pin(self)
    }

    fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        self.taken.resources(cx)
    }

    fn paths(&self, cx: &Context) -> Vec<Resource> {
        self.taken.paths(cx)
    }

    fn notes(&self) -> &[ArgumentNote] {
        &self.taken.notes
    }
}

impl<F: Future> Future for Staged<F> {
    type Output = Result<Output, ToolError>;

    fn poll(self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.future.poll(task).map(this.convert)
    }
}

pin_project! {
    /// A call without callbacks, before and while it runs.
    struct Waiting<S, F> {
        start: Option<S>,
        taken: ParsedArgs,
        #[pin]
        running: Option<F>,
    }
}

impl<S, F> PreparedCall for Waiting<S, F>
where
    S: FnOnce(Context) -> F + Send + 'static,
    F: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    fn run(mut self: Box<Self>, approved: ExecutionPermit) -> OutputFuture {
        self.running = self.start.take().map(|start| start(approved.context()));
        Box::into_pin(self)
    }

    fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        self.taken.resources(cx)
    }

    fn paths(&self, cx: &Context) -> Vec<Resource> {
        self.taken.paths(cx)
    }

    fn notes(&self) -> &[ArgumentNote] {
        &self.taken.notes
    }
}

impl<S, F> Future for Waiting<S, F>
where
    F: Future<Output = Result<Output, ToolError>>,
{
    type Output = Result<Output, ToolError>;

    fn poll(self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        match self.project().running.as_pin_mut() {
            Some(running) => running.poll(task),
            None => Poll::Ready(Err(not_started())),
        }
    }
}

#[cold]
pub(super) fn not_started() -> ToolError {
    ToolError::internal("the call was polled before it was started")
}
