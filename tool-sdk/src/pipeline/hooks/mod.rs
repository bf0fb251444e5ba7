//! The hooks' part: what they think of a call before it is judged, and of its result.

mod result;
mod step;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::result::Before;
use self::step::{Begun, begun, done};
use super::frame::{Frame, Ran};
use super::run::aborted;
use crate::content::Output;
use crate::error::{ErrorKind, ToolError};
use crate::hook::{Hook, HookedCall, OnError, Opinion, Registered, Spoken, Verdict};
use crate::permission::{Action, By, Floor};
use crate::tool::Prepared;

/// What the before-hooks left: the call as it is now, and what they think of it.
pub(super) struct Heard {
    pub(super) prepared: Box<dyn Prepared>,
    /// Most hooks say nothing.
    said: Option<Box<Said>>,
}

/// What hooks have said.
#[derive(Default)]
struct Said {
    /// The call as the model sent it, where a hook changed it.
    original: Option<Box<dyn Prepared>>,
    opinions: Vec<Floor>,
}

impl Heard {
    /// Nothing yet.
    #[inline]
    pub(super) fn new(prepared: Box<dyn Prepared>) -> Self {
        Self { prepared, said: None }
    }

    /// Whether no hook had a say: the call is as the model sent it.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.said.is_none()
    }

    /// The call as the model sent it, where a hook changed it.
    pub(super) fn original(&self) -> Option<&dyn Prepared> {
        self.said.as_ref()?.original.as_deref()
    }

    pub(super) fn opinions(&self) -> &[Floor] {
        self.said.as_ref().map_or(&[], |said| &said.opinions)
    }

    pub(super) fn add(&mut self, opinion: Floor) {
        self.said.get_or_insert_default().opinions.push(opinion);
    }
}

/// Lets the before-hooks look at the call, while anybody wants its result.
pub(super) async fn before(frame: &mut Frame<'_>, heard: &mut Heard) -> Result<(), ToolError> {
    if frame.is_aborted() {
        return Err(aborted());
    }
    let mut hooks = frame.core.hooks.iter();
    loop {
        let (registered, opinion) = {
            let call = HookedCall::new(frame);
            let Some(asked) = ask(frame, &call, &mut hooks) else { return Ok(()) };
            let opinion = match asked.answer {
                Begun::Done(opinion) => opinion,
                Begun::Waits(waits) => Box::pin(done(waits)).await?,
            };
            (asked.registered, opinion)
        };
        let spoken = match opinion {
            Ok(opinion) => opinion.spoken(),
            Err(error) => failed(&*registered.hook, error)?,
        };
        if let Some(spoken) = spoken
            && !heed(frame, registered, *spoken, heard)?
        {
            return Ok(());
        }
    }
}

/// A hook that has something to say of a call, or takes its time.
struct Asked<'a, 'c> {
    registered: &'c Registered,
    answer: Begun<'a, Opinion>,
}

/// Asks one hook after the other, until one has something to say or takes its time.
///
/// Not a future: most hooks are done at once, and those need no room for waiting.
fn ask<'a, 'c: 'a>(
    frame: &'a Frame<'a>,
    call: &'a HookedCall<'a>,
    hooks: &mut std::slice::Iter<'c, Registered>,
) -> Option<Asked<'a, 'c>> {
    hooks.filter(|hook| hook.sees(frame.definition)).find_map(|registered| {
        let hook = &*registered.hook;
        match begun(frame, hook, || hook.before(call)) {
            Begun::Done(Ok(opinion)) if opinion.is_none() => None,
            answer => Some(Asked { registered, answer }),
        }
    })
}

/// A hook failed that was to look at the call: unless that is to be ignored, the call does
/// not run.
#[cold]
fn failed<T>(hook: &dyn Hook, error: ToolError) -> Result<Option<T>, ToolError> {
    if hook.on_error() == OnError::Ignore {
        return Ok(None);
    }
    let reason = format!("{}, so the call is refused", broke(hook, &error));
    Err(ToolError::denied(reason).source(error))
}

/// How a hook failed.
fn broke(hook: &dyn Hook, error: &ToolError) -> String {
    let how = match error.kind() {
        ErrorKind::Timeout => "did not answer in time",
        _ => "failed",
    };
    format!("the hook `{}` {how}", hook.name())
}

/// Takes a hook's opinion in; says whether the next hook is asked too.
fn heed(
    frame: &mut Frame<'_>,
    registered: &Registered,
    opinion: Spoken,
    heard: &mut Heard,
) -> Result<bool, ToolError> {
    if !opinion.context.is_empty() {
        frame.extra().context.extend(opinion.context);
    }
    let action = match opinion.verdict {
        Verdict::None => None,
        Verdict::Allow => registered.may_allow(frame.definition).then_some(Action::Allow),
        Verdict::Ask => Some(Action::Ask),
        Verdict::Deny | Verdict::Halt => Some(Action::Deny),
    };
    if opinion.verdict == Verdict::Halt {
        frame.aside().halted = Some(opinion.reason.clone());
    }
    if let Some(action) = action {
        let name = registered.hook.name();
        let reason = match (opinion.sentence, opinion.reason.as_str()) {
            (Some(sentence), _) => sentence,
            (None, "") => format!("the hook `{name}` says so"),
            (None, reason) => format!("the hook `{name}` says: {reason}"),
        };
        heard.add(Floor { action, by: By::Hook, reason });
    }
    if action == Some(Action::Deny) {
        return Ok(false);
    }
    if let Some(arguments) = opinion.arguments {
        frame.rewrite(arguments);
        let name = opinion.changed_by.map_or_else(|| registered.hook.name(), Cow::Owned);
        let rewritten = frame.prepare().map_err(|error| {
            let why = error.message();
            let message = format!("the hook `{name}` changed the arguments to invalid ones: {why}");
            ToolError::denied(message).source(error)
        })?;
        // What was allowed was another call.
        let said = heard.said.get_or_insert_default();
        said.opinions.retain(|opinion| opinion.action != Action::Allow);
        if action == Some(Action::Allow) {
            let reason = format!("the hook `{name}` allows what it made of the call");
            said.opinions.push(Floor::allow(reason));
        }
        let before = std::mem::replace(&mut heard.prepared, rewritten);
        said.original.get_or_insert(before);
    }
    Ok(true)
}

/// Lets the after-hooks look at the result.
///
/// A result that not every hook has seen is nobody's: what cancels the call ends the hooks.
pub(super) async fn after(frame: &mut Frame<'_>, result: &mut Result<Output, ToolError>) {
    let core = frame.core;
    let ran = Ran::new(frame);
    let call = HookedCall::new(&ran);
    for registered in core.hooks.iter().filter(|hook| hook.sees(frame.definition)) {
        let hook = &*registered.hook;
        let before = Before::of(hook, result);
        let answer = match begun(frame, hook, || hook.after(&call, result)) {
            Begun::Done(answer) => Ok(answer),
            Begun::Waits(waits) => Box::pin(done(waits)).await,
        };
        match answer {
            Ok(Ok(())) => {}
            Ok(Err(error)) => *result = before.instead(hook, error),
            Err(aborted) => return *result = Err(aborted),
        }
    }
    if let Some(reason) = ran.halted() {
        frame.aside().halted.get_or_insert(reason);
    }
    if let Some(extra) = frame.take_context() {
        match result {
            Ok(output) => {
                let text = format!("{}\n\n{extra}", output.as_text());
                output.replace_text(text);
            }
            Err(error) => error.append(&extra),
        }
    }
}
