//! The hooks' part: what they think of a call before it is judged, and of its result.

mod result;
mod step;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::slice;

use serde_json::{Map, Value};

use self::result::Before;
use self::step::{Answer, Begun, begun, done};
use super::frame::{Frame, Seen};
use super::run::aborted;
use crate::content::Output;
use crate::error::{ErrorKind, ToolError};
use crate::hook::{Hooked as _, HookedCall, OnError, Opinion, Registered, Spoken, Verdict};
use crate::permission::{Action, By, Change, Floor};
use crate::tool::Prepared;

/// What the before-hooks left: the call as it is now, and what they think of it.
pub(super) struct Heard {
    pub(super) prepared: Box<dyn Prepared>,
    /// Most hooks say nothing.
    said: Option<Box<Words>>,
}

/// What hooks have said.
#[derive(Default)]
struct Words {
    /// The call as the model sent it, where a hook changed it.
    original: Option<Box<dyn Prepared>>,
    opinions: Vec<Floor>,
    /// Whether a hook changed it in place of an answer to whoever asked, or no hook may any more.
    was_changed: bool,
}

impl Heard {
    /// Nothing yet.
    #[inline]
    pub(super) fn new(prepared: Box<dyn Prepared>) -> Self {
        Self { prepared, said: None }
    }

    /// Of a call whose turn has come: hooks were heard, and none makes another call of it any more.
    pub(super) fn in_turn(prepared: Box<dyn Prepared>) -> Self {
        let said = Words { was_changed: true, ..Words::default() };
        Self { prepared, said: Some(Box::new(said)) }
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

    /// Whether a hook changed the call in place of an answer to whoever asked, or none may any more.
    pub(super) fn was_changed(&self) -> bool {
        self.said.as_ref().is_some_and(|said| said.was_changed)
    }

    pub(super) fn add(&mut self, opinion: Floor) {
        let opinions = &mut self.said.get_or_insert_default().opinions;
        // A hook may look twice and say the same.
        if !opinions.contains(&opinion) {
            opinions.push(opinion);
        }
    }
}

/// Lets the before-hooks look at the call, while anybody wants its result.
pub(super) async fn before(frame: &mut Frame<'_>, heard: &mut Heard) -> Result<(), ToolError> {
    if frame.is_aborted() {
        return Err(aborted());
    }
    rest(frame, Row::of(frame), heard).await
}

/// Lets `hooks` look at the call.
async fn rest(
    frame: &mut Frame<'_>,
    mut hooks: Row<'_>,
    heard: &mut Heard,
) -> Result<(), ToolError> {
    loop {
        let told = {
            let seen = frame.seen();
            let call = HookedCall::new(&seen);
            let Some(asked) = ask(&seen, &call, &mut hooks) else { return Ok(()) };
            asked.told().await?
        };
        if !hear(frame, told, heard)? {
            return Ok(());
        }
    }
}

/// Takes in what a hook said, and then lets `hooks` look at the call.
pub(super) async fn go_on(
    frame: &mut Frame<'_>,
    told: Result<Said<'_>, ToolError>,
    hooks: Row<'_>,
    heard: &mut Heard,
) -> Result<(), ToolError> {
    match hear(frame, told?, heard)? {
        true => rest(frame, hooks, heard).await,
        false => Ok(()),
    }
}

/// Takes in what a hook said; says whether the next hook is asked too.
fn hear(
    frame: &mut Frame<'_>,
    (registered, opinion): Said<'_>,
    heard: &mut Heard,
) -> Result<bool, ToolError> {
    let spoken = match opinion {
        Ok(opinion) => opinion.spoken(),
        Err(error) => failed(registered, error)?,
    };
    spoken.map_or(Ok(true), |spoken| heed(frame, registered, *spoken, heard))
}

/// What hooks look at on the straight way: it stays for those that take their time.
#[derive(Default)]
pub(super) struct Shown<'a> {
    seen: Option<Seen<'a>>,
    call: Option<HookedCall<'a>>,
}

impl<'a> Shown<'a> {
    /// Shows a call as it was sent.
    #[inline(always)]
    pub(super) fn show(&'a mut self, frame: &Frame<'a>) -> (&'a Seen<'a>, &'a HookedCall<'a>) {
        let seen: &Seen<'_> = self.seen.insert(frame.sent());
        (seen, self.call.insert(HookedCall::new(seen)))
    }
}

/// The hooks that are still to be asked about a call.
pub(super) struct Row<'c> {
    hooks: slice::Iter<'c, Registered>,
    /// How many were asked.
    pub(super) asked: usize,
}

impl<'c> Row<'c> {
    /// All of them.
    #[inline]
    pub(super) fn of(frame: &Frame<'c>) -> Self {
        Self { hooks: frame.core.hooks.iter(), asked: 0 }
    }
}

/// A hook that has something to say of a call, or takes its time.
pub(super) struct Asked<'a, 'c> {
    registered: &'c Registered,
    answer: Begun<'a, Opinion>,
}

/// What a hook said.
pub(super) type Said<'c> = (&'c Registered, Answer<Opinion>);

impl<'c> Asked<'_, 'c> {
    /// Waits for what the hook says.
    pub(super) async fn told(self) -> Result<Said<'c>, ToolError> {
        let opinion = match self.answer {
            Begun::Done(opinion) => opinion,
            Begun::Waits(waits) => Box::pin(done(waits)).await?,
        };
        Ok((self.registered, opinion))
    }
}

/// Asks one hook after the other, until one has something to say or takes its time.
///
/// Not a future: most hooks are done at once, and those need no room for waiting.
#[inline(always)]
pub(super) fn ask<'a, 'c: 'a>(
    seen: &'a Seen<'a>,
    call: &'a HookedCall<'a>,
    row: &mut Row<'c>,
) -> Option<Asked<'a, 'c>> {
    for registered in &mut row.hooks {
        if !registered.sees(seen.definition()) {
            continue;
        }
        row.asked += 1;
        let hook = &*registered.hook;
        match begun(seen, registered, || hook.before(call)) {
            None => {}
            Some(Begun::Done(Ok(opinion))) if opinion.is_none() => {}
            Some(answer) => return Some(Asked { registered, answer }),
        }
    }
    None
}

/// A hook failed that was to look at the call: unless that is to be ignored, the call does
/// not run.
#[cold]
fn failed<T>(hook: &Registered, error: ToolError) -> Result<Option<T>, ToolError> {
    if hook.on_error == OnError::Ignore {
        return Ok(None);
    }
    let reason = format!("{}, so the call is refused", broke(hook, &error));
    Err(ToolError::denied(reason).source(error))
}

/// How a hook failed.
fn broke(hook: &Registered, error: &ToolError) -> String {
    let how = match error.kind() {
        ErrorKind::Timeout => "did not answer in time",
        _ => "failed",
    };
    format!("the hook `{}` {how}", hook.name)
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
    let name = &registered.name;
    if let Some(action) = action {
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
        let (name, names) = match opinion.changed_by {
            None => (Cow::Borrowed(&**name), vec![name.to_string()]),
            Some(by) => (Cow::Owned(by), opinion.changers),
        };
        rewrite(frame, arguments, &name, names, heard)?;
        if action == Some(Action::Allow) {
            heard.add(Floor::allow_made_by(&name));
        }
    }
    Ok(true)
}

/// Makes another call of this one, as a hook says that was to answer an ask, and lets the
/// before-hooks look at what it is now.
pub(super) async fn change(
    frame: &mut Frame<'_>,
    change: Change,
    heard: &mut Heard,
) -> Result<(), ToolError> {
    let Change { patch, by, changers, thinks } = change;
    let mut arguments: Map<String, Value> =
        serde_json::from_str(frame.arguments()).map_err(|error| {
            let message = format!("the hook `{by}` changed arguments that are no object");
            ToolError::denied(message).source(error)
        })?;
    arguments.extend(patch);
    rewrite(frame, Value::Object(arguments).to_string(), &by, changers, heard)?;
    frame.guard_anew();
    let said = heard.said.get_or_insert_default();
    said.was_changed = true;
    said.opinions.retain(|opinion| opinion.by != By::Loop);
    if let Some(opinion) = thinks {
        heard.add(opinion);
    }
    before(frame, heard).await
}

/// Makes another call of this one, whose arguments the hook `name` changed: in the record, those
/// with these `names`.
fn rewrite(
    frame: &mut Frame<'_>,
    arguments: String,
    name: &str,
    names: Vec<String>,
    heard: &mut Heard,
) -> Result<(), ToolError> {
    frame.rewrite(arguments, names);
    let rewritten = frame.prepare().map_err(|error| {
        let why = error.message();
        let message = format!("the hook `{name}` changed the arguments to invalid ones: {why}");
        ToolError::denied(message).source(error)
    })?;
    // What was allowed was another call.
    let said = heard.said.get_or_insert_default();
    said.opinions.retain(|opinion| opinion.action != Action::Allow);
    let before = std::mem::replace(&mut heard.prepared, rewritten);
    said.original.get_or_insert(before);
    Ok(())
}

/// The hooks that look at the call.
#[inline(always)]
pub(super) fn of<'a>(frame: &Frame<'a>) -> impl Iterator<Item = &'a Registered> + use<'a> {
    let (core, definition) = (frame.core, frame.definition);
    core.hooks.iter().filter(|hook| hook.sees(definition))
}

/// Lets an after-hook look at the result; gives what becomes of it where that is not nothing, or
/// takes its time.
#[inline(always)]
pub(super) fn look<'a>(
    seen: &'a Seen<'a>,
    hook: &'a Registered,
    call: &'a HookedCall<'a>,
    result: &'a mut Result<Output, ToolError>,
) -> Option<Looked<'a>> {
    match hook.on_error {
        OnError::Deny => look_with(seen, hook, call, result, || Before::Withheld),
        OnError::Ignore => {
            let before = Before::copied(result);
            look_with(seen, hook, call, result, || before)
        }
    }
}

#[inline(always)]
fn look_with<'a>(
    seen: &'a Seen<'a>,
    hook: &'a Registered,
    call: &'a HookedCall<'a>,
    result: &'a mut Result<Output, ToolError>,
    before: impl FnOnce() -> Before,
) -> Option<Looked<'a>> {
    let looks = &*hook.hook;
    let answer = begun(seen, hook, || looks.after(call, result))?;
    Some(Looked { hook, before: before(), answer })
}

/// An after-hook that failed, takes its time, or is told of.
pub(super) struct Looked<'a> {
    hook: &'a Registered,
    before: Before,
    answer: Begun<'a, ()>,
}

impl Looked<'_> {
    /// Waits for the hook; gives the result that stands in the place of the one before, if any
    /// does.
    ///
    /// A result that not every hook has seen is nobody's: what cancels the call ends the hooks, and
    /// is an error here.
    pub(super) async fn instead(self) -> Result<Option<Result<Output, ToolError>>, ToolError> {
        let Self { hook, before, answer } = self;
        let answer = match answer {
            Begun::Done(answer) => answer,
            Begun::Waits(waits) => done(waits).await?,
        };
        Ok(answer.err().map(|error| before.instead(hook, error)))
    }
}

/// Adds to the result what hooks want a model to read with it.
#[inline]
pub(super) fn conclude(frame: &mut Frame<'_>, result: &mut Result<Output, ToolError>) {
    if let Some(extra) = frame.take_context() {
        add(&extra, result);
    }
}

#[cold]
fn add(extra: &str, result: &mut Result<Output, ToolError>) {
    match result {
        Ok(output) => {
            let text = format!("{}\n\n{extra}", output.as_text());
            output.replace_text(text);
        }
        Err(error) => error.append(extra),
    }
}
