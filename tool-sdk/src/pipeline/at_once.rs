//! The straight way through the gates: for a call in which nobody has a say.
//!
//! Nothing waits here, so nothing has to be kept across a wait. It lets nothing through that
//! the [gates](super) would not: whatever a hook, a rule, a person or the guard against loops
//! might have to say something to is left standing before the hooks.

use std::task;

use super::before::Heard;
use super::frame::Frame;
use super::run::{self, First, Waiting};
use crate::content::Output;
use crate::error::ToolError;

/// How far a call came without waiting.
pub(super) enum AtOnce {
    /// To its result.
    Ended(Result<Output, ToolError>),
    /// Into its tool, which waits for something.
    Runs(Waiting),
    /// Before the hooks.
    Stands(Heard),
}

/// Takes a call as far as it comes: prepared, and to its result when nobody has a say in it;
/// no further than that when it `is_slow`, for it waits for its turn or is traced.
///
/// A panic on the way is the call's failure.
#[inline(always)]
pub(super) fn go(frame: &mut Frame<'_>, is_slow: bool, task: &mut task::Context<'_>) -> AtOnce {
    run::contained(|| straight(frame, is_slow, task))
        .unwrap_or_else(|error| AtOnce::Ended(Err(error)))
}

#[inline(always)]
fn straight(frame: &mut Frame<'_>, is_slow: bool, task: &mut task::Context<'_>) -> AtOnce {
    // admit
    if let Err(error) = frame.admit() {
        return AtOnce::Ended(Err(error));
    }

    // prepare
    let prepared = match frame.decode() {
        Ok(prepared) => prepared,
        Err(error) => return AtOnce::Ended(Err(error)),
    };
    frame.announce(&*prepared);

    // hooks, guard, decide, ask; a call that lets itself run so has nothing to note either
    let is_let_through = !is_slow
        && !frame.is_hooked()
        && frame.lets_run(&*prepared)
        && frame.is_no_loop(&*prepared);
    if !is_let_through {
        return AtOnce::Stands(Heard::new(prepared));
    }

    // run
    if frame.is_aborted() {
        return AtOnce::Ended(Err(run::aborted()));
    }
    frame.start();
    match run::begin(frame, prepared, task) {
        First::Done(result) => AtOnce::Ended(result),
        First::Waiting(running) => AtOnce::Runs(running),
    }
}
