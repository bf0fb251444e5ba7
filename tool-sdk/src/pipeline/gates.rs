//! The gates, one by one: for a call in which somebody has a say, or that has to wait.
//!
//! Who has what to say is known at each gate; here is only their order.

use std::future::poll_fn;
use std::pin::Pin;
use std::slice;
use std::sync::Arc;
use std::task::{self, Poll};

use super::at_once::{self, Left, Place};
use super::frame::{Frame, Ran};
use super::hooks::Heard;
use super::run::{self, First};
use super::turn::{Permit, Turn};
use super::{decide, hooks, trace};
use crate::content::Output;
use crate::error::ToolError;
use crate::hook::{HookedCall, Registered};
use crate::loop_guard::Finding;
use crate::toolset::View;

/// What a call has with it on its way.
pub(super) struct Way<'a> {
    pub(super) turn: Option<&'a dyn Turn>,
    pub(super) is_traced: bool,
    pub(super) view: &'a Arc<View>,
    /// By which it runs beside others; held until hooks have looked at its result.
    pub(super) permit: Option<Permit>,
}

/// Takes a call from where it was `left` to its `result`.
///
/// Hooks that have nothing to say are asked here, and nothing stands in their way that waits. What
/// does wait is [boxed], because few calls do and the others should not carry its room around.
pub(super) async fn pass(
    frame: &mut Frame<'_>,
    left: &mut Option<Left>,
    way: &mut Way<'_>,
    result: &mut Place,
) {
    let is_straight = matches!(left, Some(Left::Hooked(_)));
    if is_straight {
        // hooks
        if frame.is_aborted() {
            *result = Some(Err(run::aborted()));
            return;
        }
        let mut hooks = frame.core.hooks.iter();
        let told = {
            let call = HookedCall::new(frame);
            match hooks::ask(frame, &call, &mut hooks) {
                None => None,
                Some(asked) => Some(boxed(|| asked.told()).await),
            }
        };
        match told {
            None => {
                poll_fn(|task| {
                    on(frame, left, way.view, task, result);
                    Poll::Ready(())
                })
                .await;
            }
            Some(told) => boxed(|| heed(frame, left, told, hooks, result)).await,
        }
    }
    if left.is_some() {
        boxed(|| each(frame, left, way, result)).await;
    }

    // after
    if frame.has_run()
        && let Some(result) = result
        && (is_straight || frame.is_hooked())
    {
        trace::stage(frame, way.is_traced, "after");
        let ran = Ran::new(frame);
        let call = HookedCall::new(&ran);
        for hook in hooks::of(frame) {
            let Some(looked) = hooks::look(frame, hook, &call, result) else { continue };
            match boxed(|| looked.instead()).await {
                Ok(None) => {}
                Ok(Some(other)) => *result = other,
                Err(aborted) => {
                    *result = Err(aborted);
                    return;
                }
            }
        }
        let halted = ran.halted();
        hooks::conclude(frame, halted, result);
        frame.pass_on_halt(way.turn);
    }
}

/// A future in a box, made where nobody else has to carry it.
#[cold]
#[inline(never)]
fn boxed<'f, F>(make: impl FnOnce() -> F) -> Pin<Box<dyn Future<Output = F::Output> + Send + 'f>>
where
    F: Future + Send + 'f,
{
    Box::pin(make())
}

/// Takes in what hooks say of a call, and leaves it before its tool.
async fn heed(
    frame: &mut Frame<'_>,
    left: &mut Option<Left>,
    told: Result<hooks::Said<'_>, ToolError>,
    hooks: slice::Iter<'_, Registered>,
    result: &mut Place,
) {
    let Some(Left::Hooked(prepared)) = left.take() else { return };
    let mut heard = Heard::new(prepared);
    match hooks::go_on(frame, told, hooks, &mut heard).await {
        // Only the tool itself is on its time.
        Ok(()) => frame.begin_now(),
        Err(error) => {
            *result = Some(Err(frame.refused(&*heard.prepared, error)));
            return;
        }
    }
    *left = Some(Left::Heard(heard));
}

/// Takes a call that nothing was said of as far as it comes at once.
#[inline(always)]
fn on(
    frame: &mut Frame<'_>,
    left: &mut Option<Left>,
    view: &Arc<View>,
    task: &mut task::Context<'_>,
    result: &mut Place,
) {
    let Some(Left::Hooked(prepared)) = left.take() else { return };
    // Only the tool itself is on its time.
    frame.begin_now();
    // A hook may have changed the rules itself.
    *left = match frame.core.toolset.shows(view) {
        true => at_once::go_on(frame, prepared, task, result),
        false => Some(Left::Heard(Heard::new(prepared))),
    };
}

/// Takes a call that stops at each gate from where it was left until its tool is done.
async fn each(
    frame: &mut Frame<'_>,
    left: &mut Option<Left>,
    way: &mut Way<'_>,
    result: &mut Place,
) {
    let heard = match left.take() {
        None => return,
        Some(Left::Running(running)) => {
            *result = Some(run::wait(frame, running).await);
            return;
        }
        Some(Left::Heard(heard)) => heard,
        Some(Left::Hooked(prepared) | Left::Standing(prepared)) => {
            let mut heard = Heard::new(prepared);
            if frame.is_hooked() {
                // hooks
                trace::stage(frame, way.is_traced, "hooks");
                if let Err(error) = hooks::before(frame, &mut heard).await {
                    *result = Some(Err(frame.refused(&*heard.prepared, error)));
                    return;
                }
                frame.pass_on_halt(way.turn);
                // Only the tool itself is on its time.
                frame.begin_now();
            }
            heard
        }
    };
    *result = Some(slowly(frame, heard, way).await);
}

/// Takes a call that has to wait, or in which somebody has a say, until its tool is done.
async fn slowly(
    frame: &mut Frame<'_>,
    heard: Heard,
    way: &mut Way<'_>,
) -> Result<Output, ToolError> {
    // guard, decide, ask
    trace::stage(frame, way.is_traced, "guard");
    let found = frame.guard(&*heard.prepared);
    trace::stage(frame, way.is_traced, "decide");
    let is_current = !frame.is_hooked() || frame.core.toolset.shows(way.view);
    let is_settled = is_current && heard.is_quiet() && frame.is_settled(&*heard.prepared);
    let mut prepared = if is_settled && found == Some(Finding::Fine) {
        heard.prepared
    } else {
        decide::approve(frame, heard, way.turn).await?
    };

    // turn
    if let Some(turn) = way.turn {
        trace::stage(frame, way.is_traced, "turn");
        way.permit = Some(decide::in_turn(frame, turn, &mut *prepared).await?);
    }

    // run
    if frame.is_aborted() {
        return Err(run::aborted());
    }
    trace::stage(frame, way.is_traced, "run");
    run::contained(|| frame.note(&*prepared))?;
    frame.start();
    match run::first(frame, prepared).await {
        First::Done(result) => result,
        First::Waiting(running) => run::wait(frame, running).await,
    }
}
