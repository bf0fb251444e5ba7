//! The straight way through the gates: for a call in which nobody has a say.
//!
//! Nothing waits here, so nothing has to be kept across a wait. It lets nothing through that
//! the [gates](super) would not: whatever a rule, a person or the guard against loops might
//! have to say something to is left standing, and so is a call at the hook that says something
//! or takes its time. What subscribers are told, and what hooks are asked, stands in functions of
//! their own, so that nobody else carries it.

use std::task;

use super::frame::{Frame, Seen};
use super::hooks::{self, Asked, Heard, Looked, Row, Shown};
use super::run::{self, Waiting};
use super::trace::{self, Traced};
use crate::content::Output;
use crate::error::ToolError;
use crate::tool::Prepared;

/// Where a call was left that did not come to its end without waiting.
pub(super) enum Left<'a> {
    /// Before its hooks, if it has some.
    Standing(Box<dyn Prepared>),
    /// At a hook, with others behind it.
    Asked(Box<dyn Prepared>, Asked<'a, 'a>, Row<'a>),
    /// Behind its hooks.
    Heard(Heard),
    /// In its tool, which waits for something.
    Running(Waiting<'static, Output>),
    /// Before the hooks that look at its result, if it has some.
    Done(Result<Output, ToolError>),
    /// At the only hook that looks at its result, which stays in its place.
    Looked(&'a Seen<'a>, Looked<'a>),
}

/// The result of a call has its place from the start: what was only just written is slow to
/// move.
pub(super) type Place = Option<Result<Output, ToolError>>;

/// Takes a call as far as it comes: prepared, and to its `result` when nobody has a say in it;
/// no further than that when it `is_slow`, for it waits for its turn or is traced.
///
/// A panic on the way is the call's failure.
#[inline(always)]
pub(super) fn go<'a: 'r, 'r, T: Traced>(
    frame: &mut Frame<'a>,
    is_slow: bool,
    task: &mut task::Context<'_>,
    shown: &'r mut Shown<'r>,
    result: &'r mut Place,
) -> Option<Left<'r>> {
    run::contained(|| straight::<T>(frame, is_slow, task, shown, result))
        .unwrap_or_else(|error| Some(Left::Done(Err(error))))
}

#[inline(always)]
fn straight<'a: 'r, 'r, T: Traced>(
    frame: &mut Frame<'a>,
    is_slow: bool,
    task: &mut task::Context<'_>,
    shown: &'r mut Shown<'r>,
    result: &'r mut Place,
) -> Option<Left<'r>> {
    // admit
    if let Err(error) = frame.admit() {
        return failed(error, result);
    }

    // prepare
    trace::stage(frame, T::IS_ON, "prepare");
    let prepared = match frame.decode() {
        Ok(prepared) => prepared,
        Err(error) => return failed(frame.in_vain(error), result),
    };

    // hooks, guard
    if is_slow {
        frame.announce(&*prepared);
        return Some(Left::Standing(prepared));
    }
    if frame.is_watched() {
        return watched(frame, prepared, task, shown, result);
    }
    if frame.is_heard() {
        return aloud(frame, prepared, task, result);
    }
    frame.begin_unheard();

    // decide, ask, run
    if !frame.lets_run(&*prepared) {
        return Some(Left::Heard(Heard::new(prepared)));
    }
    onward(frame, prepared, task, result)
}

/// The rest of the way of a call that hooks or the guard against loops look at.
#[inline(never)]
fn watched<'a: 'r, 'r>(
    frame: &mut Frame<'a>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    shown: &'r mut Shown<'r>,
    result: &'r mut Place,
) -> Option<Left<'r>> {
    frame.announce(&*prepared);

    // hooks
    let hooks = &*frame.core.hooks;
    let mut row = Row::of(frame);
    let (seen, call) = shown.show(frame);
    if !hooks.is_empty() {
        if frame.is_aborted() {
            return failed(run::aborted(), result);
        }
        if let Some(asked) = hooks::ask(seen, call, &mut row) {
            return Some(Left::Asked(prepared, asked, row));
        }
        // Only the tool itself is on its time.
        frame.begin_soon();
    }

    // guard, decide, ask; a hook may have changed the rules itself, and a call that lets itself run
    // so has nothing to note either
    let runs = frame.is_current() && frame.lets_run(&*prepared) && frame.is_no_loop(&*prepared);
    if !runs {
        return Some(Left::Heard(Heard::new(prepared)));
    }

    // run
    if let Some(left) = onward(frame, prepared, task, result) {
        return Some(left);
    }
    if !frame.has_run() {
        return None;
    }

    // after
    match hooks {
        _ if row.asked == 0 => {}
        [only] => {
            frame.is_done(seen);
            if let Some(looked) = hooks::look(seen, only, call, result.as_mut()?) {
                return Some(Left::Looked(seen, looked));
            }
            frame.heed(seen.halted());
        }
        _ => return result.take().map(Left::Done),
    }
    None
}

/// The rest of the way of a call that somebody listens to, and nobody else looks at.
#[inline(never)]
fn aloud(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Option<Left<'static>> {
    if !frame.lets_run(&*prepared) {
        frame.announce(&*prepared);
        return Some(Left::Heard(Heard::new(prepared)));
    }
    if frame.is_aborted() {
        frame.announce(&*prepared);
        return failed(run::aborted(), result);
    }
    frame.announce_start(&*prepared);
    begin(frame, prepared, task, result)
}

/// Runs a call that nobody has a say in any more.
#[inline(always)]
fn onward(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Option<Left<'static>> {
    if frame.is_aborted() {
        return failed(run::aborted(), result);
    }
    frame.start();
    begin(frame, prepared, task, result)
}

#[inline(always)]
fn begin(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) -> Option<Left<'static>> {
    run::begin(frame, prepared, task, result).map(Left::Running)
}

/// The end of a call whose tool does not run.
#[inline(always)]
fn failed(error: ToolError, result: &mut Place) -> Option<Left<'static>> {
    *result = Some(Err(error));
    None
}
