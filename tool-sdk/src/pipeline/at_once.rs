//! The straight way through the gates: for a call in which nobody has a say.
//!
//! Nothing waits here, so nothing has to be kept across a wait. It lets nothing through that
//! the [gates](super) would not: whatever a hook, a rule, a person or the guard against loops
//! might have to say something to is left standing before the hooks.

use std::task;

use super::frame::Frame;
use super::hooks::Heard;
use super::run::{self, First, Waiting};
use crate::content::Output;
use crate::error::ToolError;

/// Where a call was left that did not come to its result without waiting.
pub(super) enum Left {
    /// In its tool, which waits for something.
    Running(Waiting),
    /// Before the hooks.
    Standing(Heard),
}

/// Takes a call as far as it comes: prepared, and to its `result` when nobody has a say in it;
/// no further than that when it `is_slow`, for it waits for its turn or is traced.
///
/// A panic on the way is the call's failure. The result goes straight to its place: what was
/// only just written is slow to move.
#[inline(always)]
pub(super) fn go(
    frame: &mut Frame<'_>,
    is_slow: bool,
    task: &mut task::Context<'_>,
    result: &mut Option<Result<Output, ToolError>>,
) -> Option<Left> {
    let left = run::contained(|| straight(frame, is_slow, task, result));
    left.flatten().unwrap_or_else(|error| {
        *result = Some(Err(error));
        None
    })
}

#[inline(always)]
fn straight(
    frame: &mut Frame<'_>,
    is_slow: bool,
    task: &mut task::Context<'_>,
    result: &mut Option<Result<Output, ToolError>>,
) -> Result<Option<Left>, ToolError> {
    // admit
    frame.admit()?;

    // prepare
    let prepared = match frame.decode() {
        Ok(prepared) => prepared,
        Err(error) => return Err(frame.in_vain(error)),
    };
    frame.announce(&*prepared);

    // hooks, guard, decide, ask; a call that lets itself run so has nothing to note either
    let is_let_through = !is_slow
        && !frame.is_hooked()
        && frame.lets_run(&*prepared)
        && frame.is_no_loop(&*prepared);
    if !is_let_through {
        return Ok(Some(Left::Standing(Heard::new(prepared))));
    }

    // run
    if frame.is_aborted() {
        return Err(run::aborted());
    }
    frame.start();
    Ok(match run::begin(frame, prepared, task) {
        First::Done(done) => {
            *result = Some(done);
            None
        }
        First::Waiting(running) => Some(Left::Running(running)),
    })
}
