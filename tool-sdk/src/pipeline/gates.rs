//! The gates, one by one: for a call in which somebody has a say, or that has to wait.
//!
//! Who has what to say is known at each gate; here is only their order.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{self, Poll};

use super::at_once::{self, Left};
use super::frame::Frame;
use super::hooks::Heard;
use super::run::{self, First};
use super::turn::{Permit, Turn};
use super::{decide, hooks, trace};
use crate::content::Output;
use crate::error::ToolError;
use crate::loop_guard::Finding;
use crate::toolset::View;

/// Takes a call from where it was left to its `result`.
pub(super) async fn pass(
    frame: &mut Frame<'_>,
    left: Left,
    turn: Option<&dyn Turn>,
    is_traced: bool,
    view: &Arc<View>,
    result: &mut Option<Result<Output, ToolError>>,
) {
    let is_hooked = frame.is_hooked();
    let mut permit = None;
    let left = match left {
        Left::Standing(mut heard) if is_hooked => {
            // hooks
            trace::stage(frame, is_traced, "hooks");
            if let Err(error) = hooks::before(frame, &mut heard).await {
                *result = Some(Err(frame.refused(&*heard.prepared, error)));
                return;
            }
            let mut heard = Some(heard);
            let is_slow = turn.is_some() || is_traced;
            poll_fn(|task| {
                let on = |heard| on(frame, heard, turn, is_slow, view, task, result);
                Poll::Ready(heard.take().and_then(on))
            })
            .await
        }
        left => Some(left),
    };
    if let Some(left) = left {
        // Boxed, because most calls never wait and none should carry its room around.
        let slow = Box::pin(slowly(frame, left, turn, is_traced, view, &mut permit));
        *result = Some(slow.await);
    }

    // after
    if is_hooked
        && frame.has_run()
        && let Some(result) = result
    {
        trace::stage(frame, is_traced, "after");
        hooks::after(frame, result).await;
        frame.pass_on_halt(turn);
    }
    drop(permit);
}

/// Takes a call that its hooks have looked at as far as it comes at once.
#[inline]
fn on(
    frame: &mut Frame<'_>,
    heard: Heard,
    turn: Option<&dyn Turn>,
    is_slow: bool,
    view: &Arc<View>,
    task: &mut task::Context<'_>,
    result: &mut Option<Result<Output, ToolError>>,
) -> Option<Left> {
    frame.pass_on_halt(turn);
    // Only the tool itself is on its time.
    frame.begin_now();
    // A hook may have waited for long, or changed the rules itself.
    let is_current = frame.core.toolset.shows(view);
    match !is_slow && is_current && heard.is_quiet() {
        true => at_once::go_on(frame, heard.prepared, task, result),
        false => Some(Left::Standing(heard)),
    }
}

/// Takes a call that has to wait, or in which somebody has a say, until its tool is done.
async fn slowly(
    frame: &mut Frame<'_>,
    left: Left,
    turn: Option<&dyn Turn>,
    is_traced: bool,
    view: &Arc<View>,
    permit: &mut Option<Permit>,
) -> Result<Output, ToolError> {
    let heard = match left {
        Left::Running(running) => return run::wait(frame, running).await,
        Left::Standing(heard) => heard,
    };

    // guard, decide, ask
    trace::stage(frame, is_traced, "guard");
    let found = frame.guard(&*heard.prepared);
    trace::stage(frame, is_traced, "decide");
    let is_current = !frame.is_hooked() || frame.core.toolset.shows(view);
    let is_settled = is_current && heard.is_quiet() && frame.is_settled(&*heard.prepared);
    let mut prepared = if is_settled && found == Some(Finding::Fine) {
        heard.prepared
    } else {
        decide::approve(frame, heard, turn).await?
    };

    // turn
    if let Some(turn) = turn {
        trace::stage(frame, is_traced, "turn");
        *permit = Some(decide::in_turn(frame, turn, &mut *prepared).await?);
    }

    // run
    if frame.is_aborted() {
        return Err(run::aborted());
    }
    trace::stage(frame, is_traced, "run");
    run::contained(|| frame.note(&*prepared))?;
    frame.start();
    match run::first(frame, prepared).await {
        First::Done(result) => result,
        First::Waiting(running) => run::wait(frame, running).await,
    }
}
