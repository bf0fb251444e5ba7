//! A call of a native tool between its arguments and its end.
//!
//! What is waiting to run, and later the future, live in one allocation.

use std::any::Any;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Poll, ready};

use pin_project_lite::pin_project;

use super::Table;
use crate::call::{Note, RawArgs};
use crate::content::Output;
use crate::error::ToolError;
use crate::tool::args::{self, InvalidArgs};
use crate::tool::{Approved, Prepared, Running};

/// Fills `slots`, which stand in the order of the table's parameters; each is an `Option` of
/// its parameter's type.
///
/// # Errors
///
/// Fails with every fault of the arguments at once.
#[inline]
pub fn take(
    table: &Table,
    raw: &RawArgs<'_>,
    slots: &mut [&mut dyn Any],
) -> Result<Vec<Note>, InvalidArgs> {
    args::take(table, raw, slots)
}

/// Decodes all arguments as one struct, of which `slot` is an `Option`.
///
/// # Errors
///
/// Fails with every fault of the arguments at once.
pub fn take_struct(
    table: &Table,
    raw: &RawArgs<'_>,
    slot: &mut dyn Any,
) -> Result<Vec<Note>, InvalidArgs> {
    args::take_struct(table, raw, slot)
}

/// The value of a slot that [`take`] filled.
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

/// Makes a call ready: `start` runs when the pipeline says so, and `convert` when it ended.
pub fn stage<S, F>(
    notes: Vec<Note>,
    convert: fn(F::Output) -> Result<Output, ToolError>,
    start: S,
) -> Box<dyn Prepared>
where
    S: FnOnce(Approved<'_>) -> F + Send + 'static,
    F: Future + Send + 'static,
{
    Box::new(Staged { stage: Stage::Waiting { start }, convert, notes })
}

pin_project! {
    /// A call of a tool without hooks.
    struct Staged<S, F: Future> {
        #[pin]
        stage: Stage<S, F>,
        convert: fn(F::Output) -> Result<Output, ToolError>,
        notes: Vec<Note>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, F> {
        Waiting { start: S },
        Running { #[pin] future: F },
        Over,
    }
}

impl<S, F> Prepared for Staged<S, F>
where
    S: FnOnce(Approved<'_>) -> F + Send + 'static,
    F: Future + Send + 'static,
{
    fn run(mut self: Box<Self>, approved: Approved<'_>) -> Running {
        if let Stage::Waiting { start } = mem::replace(&mut self.stage, Stage::Over) {
            self.stage = Stage::Running { future: start(approved) };
        }
        Box::into_pin(self)
    }

    fn has_no_wish(&self) -> bool {
        true
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl<S, F: Future> Future for Staged<S, F> {
    type Output = Result<Output, ToolError>;

    fn poll(self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.stage.project() {
            StageProjection::Running { future } => {
                Poll::Ready((this.convert)(ready!(future.poll(task))))
            }
            _ => Poll::Ready(Err(ended())),
        }
    }
}

#[cold]
pub(super) fn ended() -> ToolError {
    ToolError::internal("the call was polled after its end")
}
