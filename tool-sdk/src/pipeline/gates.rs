//! The gates, one by one: for a call in which somebody has a say, or that has to wait.
//!
//! Who has what to say is known at each gate; here is only their order.

use std::pin::Pin;

use super::at_once::{Left, Place};
use super::frame::Frame;
use super::hooks::{Asked, Heard, Row};
use super::run::{self, First};
use super::turn::{Permit, Turn};
use super::{decide, hooks, trace};
use crate::content::Output;
use crate::error::ToolError;
use crate::hook::HookedCall;
use crate::loop_guard::Finding;
use crate::tool::Prepared;

/// What a call has with it on its way.
pub(super) struct Way<'a> {
    pub(super) turn: Option<&'a dyn Turn>,
    pub(super) is_traced: bool,
    /// By which it runs beside others; held until hooks have looked at its result.
    pub(super) permit: Option<Permit>,
}

/// Takes a call from where it was `left` to its end; gives its result, unless that stays in its
/// place.
///
/// What waits is [boxed], because few calls do and the others should not carry its room around.
pub(super) async fn pass(frame: &mut Frame<'_>, left: Left<'_>, way: &mut Way<'_>) -> Place {
    let mut result = match left {
        Left::Standing(prepared) => boxed(|| standing(frame, prepared, way)).await,
        Left::Asked(prepared, asked, hooks) => {
            boxed(|| answered(frame, prepared, asked, hooks, way)).await
        }
        Left::Heard(heard) => boxed(|| slowly(frame, heard, way)).await,
        Left::Running(running) => boxed(|| run::wait(frame, running)).await,
        Left::Done(result) => result,
        Left::Looked(seen, looked) => {
            let instead = boxed(|| looked.instead()).await;
            if instead.is_ok() {
                frame.heed(seen.halted());
            }
            return instead.unwrap_or_else(|aborted| Some(Err(unseen(aborted))));
        }
    };
    if frame.has_run() && frame.is_hooked() {
        after(frame, way, &mut result).await;
    }
    Some(result)
}

/// Lets hooks look at what became of a call.
async fn after(frame: &mut Frame<'_>, way: &mut Way<'_>, result: &mut Result<Output, ToolError>) {
    trace::stage(frame, way.is_traced, "after");
    let halted = {
        let seen = frame.seen();
        frame.is_done(&seen);
        let call = HookedCall::new(&seen);
        for hook in hooks::of(frame) {
            let Some(looked) = hooks::look(&seen, hook, &call, result) else { continue };
            match boxed(|| looked.instead()).await {
                Ok(None) => {}
                Ok(Some(other)) => *result = other,
                Err(aborted) => {
                    *result = Err(unseen(aborted));
                    return;
                }
            }
        }
        seen.halted().map(str::to_owned)
    };
    frame.heed(halted.as_deref());
    hooks::conclude(frame, result);
    frame.pass_on_halt(way.turn);
}

/// The end of a call that was cancelled before all hooks had seen its result.
fn unseen(aborted: ToolError) -> ToolError {
    aborted.hint("the tool has run; its effect is not undone")
}

type Boxed<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// A future in a box, made where nobody else has to carry it.
#[cold]
#[inline(never)]
fn boxed<'f, F>(make: impl FnOnce() -> F) -> Boxed<'f, F::Output>
where
    F: Future + Send + 'f,
{
    Box::pin(make())
}

/// Takes a call that stops at each gate until its tool is done.
async fn standing(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    way: &mut Way<'_>,
) -> Result<Output, ToolError> {
    let mut heard = Heard::new(prepared);
    if frame.is_hooked() {
        // hooks
        trace::stage(frame, way.is_traced, "hooks");
        let told = hooks::before(frame, &mut heard).await;
        behind_hooks(frame, told, &heard, way)?;
    }
    slowly(frame, heard, way).await
}

/// The same of a call that was left at a hook.
async fn answered(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
    asked: Asked<'_, '_>,
    others: Row<'_>,
    way: &mut Way<'_>,
) -> Result<Output, ToolError> {
    let mut heard = Heard::new(prepared);
    let told = asked.told().await;
    let told = hooks::go_on(frame, told, others, &mut heard).await;
    behind_hooks(frame, told, &heard, way)?;
    slowly(frame, heard, way).await
}

/// Lets a call go on that hooks looked at, unless what they `told` refuses it.
fn behind_hooks(
    frame: &mut Frame<'_>,
    told: Result<(), ToolError>,
    heard: &Heard,
    way: &Way<'_>,
) -> Result<(), ToolError> {
    told.map_err(|error| frame.refused(&*heard.prepared, error))?;
    frame.pass_on_halt(way.turn);
    // Only the tool itself is on its time.
    frame.begin_now();
    Ok(())
}

/// Takes a call that has to wait, or in which somebody has a say, until its tool is done.
async fn slowly(
    frame: &mut Frame<'_>,
    heard: Heard,
    way: &mut Way<'_>,
) -> Result<Output, ToolError> {
    // What a batch asks is asked in the order of its calls.
    if let Some(turn) = way.turn {
        frame.in_line(turn).await?;
    }

    // guard, decide, ask
    trace::stage(frame, way.is_traced, "guard");
    let found = frame.guard(&*heard.prepared);
    trace::stage(frame, way.is_traced, "decide");
    let is_current = !frame.is_hooked() || frame.is_current();
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
        if frame.guard_in_turn() {
            trace::stage(frame, way.is_traced, "decide");
            prepared = decide::approve(frame, Heard::in_turn(prepared), way.turn).await?;
        }
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
