//! The hooks' part: what they think of a call before it is judged, and of its result.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::frame::{Frame, Ran};
use super::run::{aborted, panicked};
use crate::content::Output;
use crate::error::{ErrorKind, ToolError};
use crate::event::{EventKind, millis};
use crate::hook::{
    Hook, HookRun, HookedCall, Later, OnError, Opinion, Registered, Spoken, Step, Verdict,
};
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
        Verdict::Allow => registered.hook.may_allow().then_some(Action::Allow),
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

/// What becomes of a result that a hook failed to look at: nothing that the hook left half
/// done is shown.
enum Before {
    /// The result is not shown.
    Withheld,
    /// The result stands as it was before the hook.
    Stands(Box<Result<Output, ToolError>>),
}

impl Before {
    #[inline]
    fn of(hook: &dyn Hook, result: &Result<Output, ToolError>) -> Self {
        match hook.on_error() {
            OnError::Deny => Self::Withheld,
            OnError::Ignore => Self::Stands(Box::new(copied(result))),
        }
    }

    #[cold]
    fn instead(self, hook: &dyn Hook, error: ToolError) -> Result<Output, ToolError> {
        match self {
            Self::Stands(result) => *result,
            Self::Withheld => {
                let what = broke(hook, &error);
                Err(ToolError::failed(format_args!("{what}, so the result is not shown"))
                    .hint("the tool has run; its effect is not undone")
                    .source(error))
            }
        }
    }
}

/// The result once more; of an error, what the model reads.
fn copied(result: &Result<Output, ToolError>) -> Result<Output, ToolError> {
    match result {
        Ok(output) => Ok(output.clone()),
        Err(error) => {
            let copy = ToolError::new(error.kind(), error.message());
            Err(match error.suggestion() {
                Some(hint) => copy.hint(hint),
                None => copy,
            })
        }
    }
}

/// What becomes of a hook that was asked.
enum Begun<'a, T> {
    /// Most answer at once.
    Done(Answer<T>),
    Waits(Box<Waits<'a, T>>),
}

type Answer<T> = Result<T, ToolError>;

/// What a hook can answer.
trait Told {
    /// The answer, as subscribers read it.
    fn told(&self) -> String;
}

impl Told for Opinion {
    fn told(&self) -> String {
        self.to_string()
    }
}

impl Told for () {
    fn told(&self) -> String {
        "done".to_owned()
    }
}

/// A hook that takes its time.
struct Waits<'a, T> {
    frame: &'a Frame<'a>,
    hook: &'a dyn Hook,
    run: Option<Box<Run<'a>>>,
    later: Later<'a, Answer<T>>,
}

/// Asks a hook. A panic is a failure of the hook.
#[inline]
fn begun<'a, T: Told>(
    frame: &'a Frame<'a>,
    hook: &'a dyn Hook,
    step: impl FnOnce() -> Step<'a, Answer<T>>,
) -> Begun<'a, T> {
    let run = Run::begin(frame, hook);
    let answer = match catch_unwind(AssertUnwindSafe(step)).map(Step::answer) {
        Ok(Ok(answer)) => answer,
        Ok(Err(later)) => return Begun::Waits(Box::new(Waits { frame, hook, run, later })),
        Err(panic) => Err(panicked(&*panic)),
    };
    if let Some(run) = run {
        run.finish(&answer);
    }
    Begun::Done(answer)
}

/// Waits for a hook, while anybody wants the result of the call. A panic is a failure of the
/// hook, and so is taking longer than it may.
async fn done<T: Told>(waits: Box<Waits<'_, T>>) -> Result<Answer<T>, ToolError> {
    let Waits { frame, hook, run, later } = *waits;
    let limit = hook.time_limit().unwrap_or(Duration::MAX);
    let answer = tokio::select! {
        biased;
        answer = AssertUnwindSafe(later).catch_unwind() => {
            answer.unwrap_or_else(|panic| Err(panicked(&*panic)))
        }
        () = frame.given_up() => {
            if let Some(run) = run {
                run.finish(&Answer::<T>::Err(aborted()));
            }
            return Err(aborted());
        }
        () = tokio::time::sleep(limit) => {
            Err(ToolError::timeout(format_args!("no answer within {limit:?}")))
        }
    };
    if let Some(run) = run {
        run.finish(&answer);
    }
    Ok(answer)
}

/// One hook at work, told to subscribers when it begins and when it is done.
struct Run<'a> {
    frame: &'a Frame<'a>,
    name: Cow<'a, str>,
    began: Instant,
}

impl<'a> Run<'a> {
    /// Nothing where nobody listens.
    #[inline]
    fn begin(frame: &'a Frame<'a>, hook: &'a dyn Hook) -> Option<Box<Self>> {
        frame.is_heard().then(|| Self::told(frame, hook))
    }

    #[inline(never)]
    fn told(frame: &'a Frame<'a>, hook: &'a dyn Hook) -> Box<Self> {
        let name = hook.name();
        frame.event(|| EventKind::HookStarted { hook: name.clone().into_owned() });
        Box::new(Self { frame, name, began: Instant::now() })
    }

    #[inline(never)]
    fn finish<T: Told>(self, answer: &Answer<T>) {
        let outcome = match answer {
            Ok(answer) => answer.told(),
            Err(error) => format!("failed: {error}"),
        };
        let elapsed_ms = millis(self.began.elapsed());
        let run = HookRun { hook: self.name.into_owned(), outcome, elapsed_ms };
        self.frame.event(|| EventKind::HookFinished(run));
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
    use crate::hook::Priority;
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

    /// Never makes up its mind about a call, and takes its time before it asks how long one took.
    #[derive(Default)]
    struct Slow {
        waits: bool,
        /// When it began to look, and what it was told then.
        looked: OnceLock<(Instant, Option<Duration>)>,
    }

    impl Hook for Arc<Slow> {
        fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
            match self.waits {
                true => Step::later(std::future::pending()),
                false => Step::now(Ok(Opinion::none())),
            }
        }

        fn after<'a>(
            &'a self,
            call: &'a HookedCall<'_>,
            _: &'a mut Result<Output, ToolError>,
        ) -> Step<'a, Result<(), ToolError>> {
            let began = Instant::now();
            std::thread::sleep(Duration::from_millis(5));
            let _ = self.looked.set((began, call.elapsed()));
            Step::now(Ok(()))
        }
    }

    // What a hook takes itself is not the tool's time.
    #[tokio::test]
    async fn hooks_are_told_how_long_the_tool_took_and_no_more() {
        let hook = Arc::<Slow>::default();
        let pipeline = pipeline().hook("*", Priority::DEFAULT, Arc::clone(&hook));
        let before = Instant::now();
        pipeline.call(&Session::default(), Call::new("look", "{}")).await.result.unwrap();
        let (began, elapsed) = hook.looked.get().unwrap();
        assert!(elapsed.unwrap() <= *began - before);
    }

    // Whatever began is told to have ended, also when the call is cancelled meanwhile.
    #[tokio::test]
    async fn a_hook_that_nobody_waits_for_any_more_is_told_to_be_done() {
        let hook = Arc::new(Slow { waits: true, ..Slow::default() });
        let pipeline = pipeline().hook("*", Priority::DEFAULT, hook);
        let mut events = pipeline.subscribe();
        let token = tokio_util::sync::CancellationToken::new();
        let call = Call::new("look", "{}").cancelled_by(token.clone());
        let session = Session::default();
        let (outcome, ()) = tokio::join!(pipeline.call(&session, call), async {
            while !matches!(events.recv().await.unwrap().kind, EventKind::HookStarted { .. }) {}
            token.cancel();
        });
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
        let rest: Vec<_> = std::iter::from_fn(|| events.try_recv()).map(|it| it.kind).collect();
        assert!(
            matches!(rest.as_slice(), [EventKind::HookFinished(_), EventKind::Aborted(_)]),
            "{rest:?}"
        );
    }
}
