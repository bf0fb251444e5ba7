//! Hooks of every kind: those that wait, that never answer, and that change what holds.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::Call;
use crate::content::Output;
use crate::context::{Context, Session};
use crate::effect::{Risk, RiskClass};
use crate::error::{ErrorKind, ToolError};
use crate::event::EventKind;
use crate::hook::{Hook, HookedCall, Opinion, Priority, Step};
use crate::name::ToolName;
use crate::permission::{Action, Rule, Ruleset};
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
    wants_elapsed: bool,
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

    fn wants_elapsed(&self) -> bool {
        self.wants_elapsed
    }
}

// What a hook takes itself is not the tool's time.
#[tokio::test]
async fn hooks_are_told_how_long_the_tool_took_and_no_more() {
    let hook = Arc::new(Slow { wants_elapsed: true, ..Slow::default() });
    let pipeline = pipeline().hook("*", Priority::DEFAULT, Arc::clone(&hook));
    let before = Instant::now();
    pipeline.call(&Session::default(), Call::new("look", "{}")).await.result.unwrap();
    let (began, elapsed) = hook.looked.get().unwrap();
    assert!(elapsed.unwrap() <= *began - before);
}

#[tokio::test]
async fn hooks_that_do_not_want_to_know_how_long_the_tool_took_are_not_told() {
    let hook = Arc::<Slow>::default();
    let pipeline = pipeline().hook("*", Priority::DEFAULT, Arc::clone(&hook));
    pipeline.call(&Session::default(), Call::new("look", "{}")).await.result.unwrap();
    assert_eq!(hook.looked.get().unwrap().1, None);
}

/// Adds its mark to every result, and ends the turn.
struct Marks {
    mark: &'static str,
    waits: bool,
}

impl Hook for Marks {
    fn after<'a>(
        &'a self,
        call: &'a HookedCall<'_>,
        result: &'a mut Result<Output, ToolError>,
    ) -> Step<'a, Result<(), ToolError>> {
        let mut mark = move || {
            let text = result.as_ref().map_or_else(|_| "failed", |output| output.as_text());
            *result = Ok(Output::text(format!("{text}{}", self.mark)));
            call.halt(self.mark);
            Ok(())
        };
        match self.waits {
            true => Step::later(async move {
                tokio::task::yield_now().await;
                mark()
            }),
            false => Step::now(mark()),
        }
    }
}

// Whether they wait or not, and how many there are.
#[tokio::test]
async fn every_hook_looks_at_the_result_that_the_one_before_left() {
    for waits in [&[false][..], &[true], &[false, true, false], &[true, false], &[false, false]] {
        let marks = ["a", "b", "c"];
        let hooked = waits.iter().zip(marks).fold(pipeline(), |pipeline, (&waits, mark)| {
            pipeline.hook("*", Priority::DEFAULT, Marks { mark, waits })
        });
        let outcome = hooked.call(&Session::default(), Call::new("look", "{}")).await;
        assert_eq!(outcome.text(), format!("seen{}", marks[..waits.len()].concat()));
        assert_eq!(outcome.halted(), Some("a"));
    }
}

/// Ends the turn, lets somebody cancel the call, and never gets further.
struct Stuck(tokio_util::sync::CancellationToken);

impl Hook for Stuck {
    fn after<'a>(
        &'a self,
        call: &'a HookedCall<'_>,
        _: &'a mut Result<Output, ToolError>,
    ) -> Step<'a, Result<(), ToolError>> {
        Step::later(async move {
            call.halt("enough");
            self.0.cancel();
            std::future::pending().await
        })
    }
}

// What a hook said of a result that is nobody's ends no turn, however many hooks there are.
#[tokio::test]
async fn a_hook_of_a_cancelled_call_ends_no_turn() {
    for others in [0, 1] {
        let token = tokio_util::sync::CancellationToken::new();
        let stuck = pipeline().hook("*", Priority::DEFAULT, Stuck(token.clone()));
        let hooked = (0..others).fold(stuck, |pipeline, _| {
            pipeline.hook("*", Priority::LOGGING, Marks { mark: "a", waits: false })
        });
        let call = Call::new("look", "{}").cancelled_by(token);
        let outcome = hooked.call(&Session::default(), call).await;
        assert_eq!(outcome.halted(), None, "{others}");
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    }
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
