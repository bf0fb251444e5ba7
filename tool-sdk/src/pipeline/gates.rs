//! The gates, one by one: for a call in which somebody has a say, or that has to wait.
//!
//! Who has what to say is known at each gate; here is only their order.

use std::sync::Arc;

use super::at_once::Left;
use super::frame::Frame;
use super::run::{self, First};
use super::turn::Turn;
use super::{decide, hooks, trace};
use crate::content::Output;
use crate::error::ToolError;
use crate::toolset::View;

/// Takes a call from where it was left to its result.
pub(super) async fn pass(
    frame: &mut Frame<'_>,
    left: Left,
    turn: Option<&dyn Turn>,
    is_traced: bool,
    view: &Arc<View>,
) -> Result<Output, ToolError> {
    let mut heard = match left {
        // Boxed, because most calls never wait and none should carry its room around.
        Left::Running(running) => return Box::pin(run::wait(frame, running)).await,
        Left::Standing(heard) => heard,
    };

    // hooks
    let mut is_current = true;
    let is_hooked = frame.is_hooked();
    if is_hooked {
        trace::stage(frame, is_traced, "hooks");
        if let Err(error) = hooks::before(frame, &mut heard).await {
            return Err(frame.refused(&*heard.prepared, error));
        }
        frame.pass_on_halt(turn);
        // Only the tool itself is on its time.
        frame.begin_now();
        // A hook may have waited for long, or changed the rules itself.
        is_current = frame.core.toolset.shows(view);
    }

    // guard, decide, ask
    trace::stage(frame, is_traced, "decide");
    let is_settled = is_current && heard.is_quiet() && frame.is_settled(&*heard.prepared);
    let mut prepared = if is_settled && frame.is_no_loop(&*heard.prepared) {
        heard.prepared
    } else {
        Box::pin(decide::approve(frame, heard, turn)).await?
    };
    let permit = match turn {
        Some(turn) => {
            trace::stage(frame, is_traced, "turn");
            Some(Box::pin(decide::in_turn(frame, turn, &mut *prepared)).await?)
        }
        None => None,
    };

    // run
    if frame.is_aborted() {
        return Err(run::aborted());
    }
    trace::stage(frame, is_traced, "run");
    frame.note(&*prepared);
    frame.start();
    let first = run::first(frame, prepared);
    let mut result = match first.await {
        First::Done(result) => result,
        First::Waiting(running) => Box::pin(run::wait(frame, running)).await,
    };

    // after
    if is_hooked {
        trace::stage(frame, is_traced, "after");
        hooks::after(frame, &mut result).await;
        frame.pass_on_halt(turn);
    }
    drop(permit);
    result
}
