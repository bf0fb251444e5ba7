//! The hooks' part: what they think of a call before it is judged, and of its result.

use std::borrow::Cow;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::frame::Frame;
use super::run::{aborted, panicked};
use crate::content::Output;
use crate::error::{ErrorKind, ToolError};
use crate::event::{EventKind, millis};
use crate::hook::{Hook, HookRun, HookedCall, Later, OnError, Registered, Spoken, Step, Verdict};
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
    let core = frame.core;
    for registered in core.hooks.iter().filter(|hook| hook.sees(frame.definition)) {
        let hook = &*registered.hook;
        let opinion = {
            let tell = |run| frame.event(|| EventKind::HookFinished(run));
            let call = frame.hooked(&tell);
            let run = Run::begin(frame, hook);
            let opinion = match begun(|| hook.before(&call)) {
                Ok(opinion) => opinion,
                Err(later) => Box::pin(done(frame, hook.time_limit(), later)).await?,
            };
            match &opinion {
                Ok(opinion) => run.finish(opinion),
                Err(error) => run.finish(format_args!("failed: {error}")),
            }
            opinion
        };
        let opinion = match opinion {
            Ok(opinion) => opinion,
            Err(error) if hook.on_error() == OnError::Ignore => {
                drop(error);
                continue;
            }
            Err(error) => {
                let reason = match error.kind() {
                    ErrorKind::Timeout => "did not answer in time",
                    _ => "failed",
                };
                let name = hook.name();
                let reason = format!("the hook `{name}` {reason}, so the call is refused");
                return Err(ToolError::denied(reason).source(error));
            }
        };
        let Some(spoken) = opinion.spoken() else { continue };
        if !heed(frame, registered, spoken, heard)? {
            break;
        }
    }
    Ok(())
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
        Verdict::Allow => registered.hook.may_allow().then_some(Action::Allow),
        Verdict::Ask => Some(Action::Ask),
        Verdict::Deny | Verdict::Halt => Some(Action::Deny),
    };
    if opinion.verdict == Verdict::Halt {
        frame.aside().halted = Some(opinion.reason.clone());
    }
    if let Some(action) = action {
        let name = registered.hook.name();
        let reason = match opinion.reason.as_str() {
            "" => format!("the hook `{name}` says so"),
            reason => format!("the hook `{name}` says: {reason}"),
        };
        heard.add(Floor { action, by: By::Hook, reason });
    }
    if action == Some(Action::Deny) {
        return Ok(false);
    }
    if let Some(arguments) = opinion.arguments {
        frame.rewrite(arguments);
        let rewritten = frame.prepare().map_err(|error| {
            let name = registered.hook.name();
            let message = format!("the hook `{name}` changed the arguments to invalid ones");
            ToolError::denied(message).source(error)
        })?;
        // What was allowed was another call.
        let said = heard.said.get_or_insert_default();
        said.opinions.retain(|opinion| opinion.action != Action::Allow);
        if action == Some(Action::Allow) {
            let name = registered.hook.name();
            let reason = format!("the hook `{name}` allows what it made of the call");
            said.opinions.push(Floor { action: Action::Allow, by: By::Hook, reason });
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
    let ran = Some((frame.started(), Instant::now()));
    let halted = OnceLock::new();
    for registered in core.hooks.iter().filter(|hook| hook.sees(frame.definition)) {
        let hook = &*registered.hook;
        let tell = |run| frame.event(|| EventKind::HookFinished(run));
        let call = HookedCall { ran, halted: Some(&halted), ..frame.hooked(&tell) };
        let run = Run::begin(frame, hook);
        let looked = match begun(|| hook.after(&call, result)) {
            Ok(looked) => Ok(looked),
            Err(later) => Box::pin(done(frame, hook.time_limit(), later)).await,
        };
        match looked {
            Ok(Ok(())) => run.finish("done"),
            // What a failing observer leaves behind is told in an event; the result stands.
            Ok(Err(error)) => run.finish(format_args!("failed: {error}")),
            Err(aborted) => return *result = Err(aborted),
        }
    }
    if let Some(reason) = halted.into_inner() {
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

/// One hook at work, told to subscribers when it begins and when it is done.
struct Run<'a> {
    frame: &'a Frame<'a>,
    /// Only where somebody listens.
    told: Option<(Cow<'a, str>, Instant)>,
}

impl<'a> Run<'a> {
    #[inline]
    fn begin(frame: &'a Frame<'a>, hook: &'a dyn Hook) -> Self {
        let told = frame.is_heard().then(|| (hook.name(), Instant::now()));
        if let Some((name, _)) = &told {
            frame.event(|| EventKind::HookStarted { hook: name.clone().into_owned() });
        }
        Self { frame, told }
    }

    #[inline]
    fn finish(self, outcome: impl Display) {
        if let Some((name, started)) = self.told {
            let (hook, outcome) = (name.into_owned(), outcome.to_string());
            let run = HookRun { hook, outcome, elapsed_ms: millis(started.elapsed()) };
            self.frame.event(|| EventKind::HookFinished(run));
        }
    }
}

/// Asks a hook: most answer at once. A panic is a failure of the hook.
#[inline]
fn begun<'s, T>(
    step: impl FnOnce() -> Step<'s, Result<T, ToolError>>,
) -> Result<Result<T, ToolError>, Later<'s, Result<T, ToolError>>> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(step) => step.answer(),
        Err(panic) => Ok(Err(panicked(&*panic))),
    }
}

/// Waits for a hook, while anybody wants the result of the call. A panic is a failure of the
/// hook, and so is taking longer than `limit`.
async fn done<T>(
    frame: &Frame<'_>,
    limit: Option<Duration>,
    later: Later<'_, Result<T, ToolError>>,
) -> Result<Result<T, ToolError>, ToolError> {
    let limit = limit.unwrap_or(Duration::MAX);
    tokio::select! {
        biased;
        answer = AssertUnwindSafe(later).catch_unwind() => {
            Ok(answer.unwrap_or_else(|panic| Err(panicked(&*panic))))
        }
        () = frame.given_up() => Err(aborted()),
        () = tokio::time::sleep(limit) => {
            Ok(Err(ToolError::timeout(format_args!("no answer within {limit:?}"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use serde_json::{Value, json};

    use super::*;
    use crate::call::Call;
    use crate::context::{Context, Session};
    use crate::effect::{Risk, RiskClass};
    use crate::error::ErrorKind;
    use crate::hook::{Opinion, Priority};
    use crate::name::ToolName;
    use crate::permission::{Rule, Ruleset};
    use crate::pipeline::Pipeline;
    use crate::registry::Registry;
    use crate::schema::Schema;
    use crate::tool::{Definition, DynamicTool};

    /// A pipeline around one harmless tool that everything allows.
    fn pipeline() -> Pipeline {
        let schema = Schema::from_value(json!({ "type": "object", "properties": {} })).unwrap();
        let definition = Definition::new(ToolName::from_static("look"), "Looks.", schema)
            .risk(Risk::new(RiskClass::Read));
        let tool = DynamicTool::new(definition, |_: Value, _: Context| async { "seen" });
        Pipeline::new(Registry::builder().add(tool).build().unwrap())
    }

    /// Has nothing to say about a call, but forbids the tool while it looks at one.
    #[derive(Default)]
    struct Forbids {
        pipeline: OnceLock<Pipeline>,
        waits: bool,
    }

    impl Hook for Arc<Forbids> {
        fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
            let forbid = || {
                let rules = Ruleset::new([Rule::new(Action::Deny, "look", "*")]);
                self.pipeline.get().unwrap().set_rules(rules);
                Ok(Opinion::none())
            };
            if !self.waits {
                return Step::now(forbid());
            }
            Step::later(async move {
                tokio::task::yield_now().await;
                forbid()
            })
        }
    }

    // What holds is what holds when the hooks are done, whether they waited or not.
    #[tokio::test]
    async fn silent_hooks_do_not_keep_old_rules_alive() {
        for waits in [false, true] {
            let hook = Arc::new(Forbids { waits, ..Forbids::default() });
            let pipeline = pipeline().hook("*", Priority::DEFAULT, Arc::clone(&hook));
            assert!(hook.pipeline.set(pipeline.clone()).is_ok());
            let outcome = pipeline.call(&Session::default(), Call::new("look", "{}")).await;
            assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied, "{waits}");
        }
    }

    // Nobody wants the result: the hooks are not even asked.
    #[tokio::test]
    async fn cancelled_calls_reach_no_hook() {
        let hook = Arc::new(Forbids::default());
        let pipeline = pipeline().hook("*", Priority::DEFAULT, hook);
        let token = tokio_util::sync::CancellationToken::new();
        token.cancel();
        let call = Call::new("look", "{}").cancelled_by(token);
        let outcome = pipeline.call(&Session::default(), call).await;
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    }
}
