//! The straight way through the gates: for a call in which nobody has a say.
//!
//! Nothing waits here, so nothing has to be kept across a wait. It lets nothing through that
//! the [gates](super) would not: whatever a rule, a person or the guard against loops might
//! have to say something to is left standing. Hooks may wait, so a call that they look at
//! leaves the way before them, and comes back to it when they had nothing to say. What
//! subscribers are told stands in a function of its own, so that nobody else carries it.

use std::task;

use super::frame::Frame;
use super::hooks::Heard;
use super::run::{self, First, Waiting};
use crate::content::Output;
use crate::error::ToolError;
use crate::tool::Prepared;

/// Where a call was left that did not come to its result without waiting.
pub(super) enum Left {
    /// In its tool, which waits for something.
    Running(Waiting),
    /// Before its hooks, and nothing but those makes it stop.
    Hooked(Box<dyn Prepared>),
    /// Before its hooks, if it has some.
    Standing(Box<dyn Prepared>),
    /// Behind its hooks.
    Heard(Heard),
}

/// The result of a call has its place from the start: what was only just written is slow to
/// move.
pub(super) type Place = Option<Result<Output, ToolError>>;

/// Takes a call as far as it comes: prepared, and to its `result` when nobody has a say in it;
/// no further than that when it `is_slow`, for it waits for its turn or is traced.
///
/// A panic on the way is the call's failure.
#[inline(always)]
pub(super) fn go(
    frame: &mut Frame<'_>,
    is_slow: bool,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Option<Left> {
    let left = run::contained(|| straight(frame, is_slow, task, result));
    settled(left.flatten(), result)
}

/// Takes a call to its `result` that hooks had nothing to say to.
#[inline]
pub(super) fn go_on(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Option<Left> {
    let left = run::contained(|| onward(frame, prepared, task, result));
    settled(left.flatten(), result)
}

/// Where a call was left; a failure is its result.
#[inline(always)]
fn settled(left: Result<Option<Left>, ToolError>, result: &mut Place) -> Option<Left> {
    left.unwrap_or_else(|error| {
        *result = Some(Err(error));
        None
    })
}

#[inline(always)]
fn straight(
    frame: &mut Frame<'_>,
    is_slow: bool,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Result<Option<Left>, ToolError> {
    // admit
    frame.admit()?;

    // prepare
    let prepared = match frame.decode() {
        Ok(prepared) => prepared,
        Err(error) => return Err(frame.in_vain(error)),
    };

    // hooks
    if is_slow || frame.is_hooked() {
        frame.announce(&*prepared);
        return Ok(Some(match is_slow {
            true => Left::Standing(prepared),
            false => Left::Hooked(prepared),
        }));
    }
    if frame.is_heard() {
        return aloud(frame, prepared, task, result);
    }
    frame.begin_unheard();
    onward(frame, prepared, task, result)
}

/// The rest of the way of a call that somebody listens to.
#[inline(never)]
fn aloud(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Result<Option<Left>, ToolError> {
    let runs = frame.lets_run(&*prepared) && frame.is_unguarded() && !frame.is_aborted();
    if !runs {
        frame.announce(&*prepared);
        return onward(frame, prepared, task, result);
    }
    frame.announce_start(&*prepared);
    Ok(begin(frame, prepared, task, result))
}

#[inline(always)]
fn onward(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Result<Option<Left>, ToolError> {
    // guard, decide, ask; a call that lets itself run so has nothing to note either
    if !frame.lets_run(&*prepared) || !frame.is_no_loop(&*prepared) {
        return Ok(Some(Left::Heard(Heard::new(prepared))));
    }

    // run
    if frame.is_aborted() {
        return Err(run::aborted());
    }
    frame.start();
    Ok(begin(frame, prepared, task, result))
}

#[inline(always)]
fn begin(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Option<Left> {
    match run::begin(frame, prepared, task) {
        First::Done(done) => {
            *result = Some(done);
            None
        }
        First::Waiting(running) => Some(Left::Running(running)),
    }
}
