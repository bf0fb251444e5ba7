//! Hooks of every kind: slow ones, ones that never answer, and ones that change the rules.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::audit::{AuditRecord, AuditSink};
use crate::call::Call;
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::{ErrorKind, ToolError};
use crate::event::EventKind;
use crate::hook::{Hook, HookContext, HookDecision, HookPriority, OnError};
use crate::name::ToolName;
use crate::permission::{Action, Rule, Ruleset};
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;
use crate::tool::{Definition, DynamicTool};

/// A pipeline with one harmless tool that needs no approval.
fn pipeline() -> Pipeline {
    counted_pipeline(false, &Arc::default())
}

/// The same, optionally with a tool that needs an approval; it counts how often it `ran`.
fn counted_pipeline(asks: bool, ran: &Arc<AtomicUsize>) -> Pipeline {
    let schema = Schema::from_value(json!({ "type": "object", "properties": {} })).unwrap();
    let class = if asks { RiskClass::Write } else { RiskClass::Read };
    let definition =
        Definition::new(ToolName::from_static("look"), "Looks.", schema).risk(Risk::new(class));
    let ran = Arc::clone(ran);
    let tool = DynamicTool::new(definition, move |_: Value, _: Context| {
        ran.fetch_add(1, Ordering::Relaxed);
        async { "seen" }
    });
    Pipeline::new(Registry::builder().add(tool).build().unwrap())
}

/// Makes no decision about a call, but denies the tool while it sees one.
#[derive(Default)]
struct Forbids {
    pipeline: OnceLock<Pipeline>,
    waits: bool,
}

impl Hook for Arc<Forbids> {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let forbid = || {
            let rules = Ruleset::new([Rule::new(Action::Deny, "look", "*")]);
            self.pipeline.get().unwrap().set_rules(rules);
            Ok(HookDecision::none())
        };
        if !self.waits {
            return forbid();
        }
        async move {
            tokio::task::yield_now().await;
            forbid()
        }
        .await
    }
}

// The rules that hold after the hooks decide, whether the hooks waited or not.
#[tokio::test]
async fn silent_hooks_do_not_keep_old_rules_alive() {
    for waits in [false, true] {
        let hook = Arc::new(Forbids { waits, ..Forbids::default() });
        let pipeline = pipeline().hook("*", HookPriority::DEFAULT, Arc::clone(&hook));
        assert!(hook.pipeline.set(pipeline.clone()).is_ok());
        let outcome = pipeline.call(&Session::default(), Call::new("look", "{}")).await;
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied, "{waits}");
    }
}

// The result is discarded: the hooks are not even called.
#[tokio::test]
async fn cancelled_calls_reach_no_hook() {
    let hook = Arc::new(Forbids::default());
    let pipeline = pipeline().hook("*", HookPriority::DEFAULT, hook);
    let token = tokio_util::sync::CancellationToken::new();
    token.cancel();
    let call = Call::new("look", "{}").cancelled_by(token);
    let outcome = pipeline.call(&Session::default(), call).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
}

/// Never decides about a call, and waits before it asks how long one took.
#[derive(Default)]
struct Slow {
    waits: bool,
    /// When the hook was called, and which duration it was told.
    looked: OnceLock<(Instant, Option<Duration>)>,
}

impl Hook for Arc<Slow> {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        match self.waits {
            true => std::future::pending().await,
            false => Ok(HookDecision::none()),
        }
    }

    async fn after(
        &self,
        call: &HookContext<'_>,
        _: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        let _ = self.looked.set((began, call.elapsed()));
        Ok(())
    }
}

// The time of a hook does not count as the tool's time.
#[tokio::test]
async fn hooks_are_told_how_long_the_tool_took_and_no_more() {
    let hook = Arc::new(Slow::default());
    let pipeline = pipeline().hook("*", HookPriority::DEFAULT, Arc::clone(&hook));
    let before = Instant::now();
    pipeline.call(&Session::default(), Call::new("look", "{}")).await.result.unwrap();
    let (began, elapsed) = hook.looked.get().unwrap();
    assert!(elapsed.unwrap() <= *began - before);
}

/// Adds its mark to every result, and ends the turn.
struct Marks {
    mark: &'static str,
    waits: bool,
}

impl Hook for Marks {
    async fn after(
        &self,
        call: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let mut mark = move || {
            let text = result.as_ref().map_or_else(|_| "failed", |output| output.as_text());
            *result = Ok(Output::text(format!("{text}{}", self.mark)));
            call.halt_turn(self.mark);
            Ok(())
        };
        match self.waits {
            true => {
                async move {
                    tokio::task::yield_now().await;
                    mark()
                }
                .await
            }
            false => mark(),
        }
    }
}

// Waiting or not, and for any number of hooks.
#[tokio::test]
async fn every_hook_looks_at_the_result_that_the_one_before_left() {
    for waits in [&[false][..], &[true], &[false, true, false], &[true, false], &[false, false]] {
        let marks = ["a", "b", "c"];
        let hooked = waits.iter().zip(marks).fold(pipeline(), |pipeline, (&waits, mark)| {
            pipeline.hook("*", HookPriority::DEFAULT, Marks { mark, waits })
        });
        let outcome = hooked.call(&Session::default(), Call::new("look", "{}")).await;
        assert_eq!(outcome.text(), format!("seen{}", marks[..waits.len()].concat()));
        assert_eq!(outcome.halt_reason(), Some("a"));
    }
}

/// Ends the turn, cancels the call, and never returns.
struct Stuck(tokio_util::sync::CancellationToken);

impl Hook for Stuck {
    async fn after(
        &self,
        call: &HookContext<'_>,
        _: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        async move {
            call.halt_turn("enough");
            self.0.cancel();
            std::future::pending().await
        }
        .await
    }
}

// A hook that saw a discarded result ends no turn, for any number of hooks.
#[tokio::test]
async fn a_hook_of_a_cancelled_call_ends_no_turn() {
    for others in [0, 1] {
        let token = tokio_util::sync::CancellationToken::new();
        let stuck = pipeline().hook("*", HookPriority::DEFAULT, Stuck(token.clone()));
        let hooked = (0..others).fold(stuck, |pipeline, _| {
            pipeline.hook("*", HookPriority::LOGGING, Marks { mark: "a", waits: false })
        });
        let call = Call::new("look", "{}").cancelled_by(token);
        let outcome = hooked.call(&Session::default(), call).await;
        assert_eq!(outcome.halt_reason(), None, "{others}");
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    }
}

// Every started event has a finished event, also when the call is cancelled in between.
#[tokio::test]
async fn a_cancelled_hook_has_a_finished_event() {
    let hook = Arc::new(Slow { waits: true, ..Slow::default() });
    let pipeline = pipeline().hook("*", HookPriority::DEFAULT, hook);
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

/// Does one thing, and panics when one of its properties is read.
#[derive(Clone, Copy)]
struct Defect {
    asked: &'static str,
    does: &'static str,
}

impl Defect {
    fn ask<T>(self, asked: &str, answer: T) -> T {
        assert_ne!(self.asked, asked, "a defect");
        answer
    }

    async fn answer<T: Send>(self, when: &str, answer: T) -> Result<T, ToolError> {
        match self.does.strip_prefix(when).unwrap_or_default() {
            " fails" => Err(ToolError::failed("no idea")),
            " panics" => panic!("a defect"),
            " hangs" => {
                let _bomb = Bomb;
                std::future::pending().await
            }
            " waits" => {
                tokio::task::yield_now().await;
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a defect");
    }
}

impl Hook for Defect {
    fn name(&self) -> Cow<'_, str> {
        self.ask("name", "defect".into())
    }

    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let opinion = match self.does {
            "denies" => HookDecision::deny("no"),
            "allows" => HookDecision::allow("yes"),
            "changes" => HookDecision::none().rewrite(&json!({})),
            _ => HookDecision::none(),
        };
        self.answer("before", opinion).await
    }

    async fn after(
        &self,
        _: &HookContext<'_>,
        _: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        self.answer("after", ()).await
    }

    fn on_error(&self) -> OnError {
        self.ask("on_error", OnError::Deny)
    }

    fn time_limit(&self) -> Option<Duration> {
        self.ask("time_limit", Some(Duration::from_secs(1)))
    }

    fn may_allow(&self) -> bool {
        self.ask("may_allow", true)
    }
}

// The properties of a hook are read when it is added; one that panics then is treated as strict.
#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_when_asked_about_itself_ends_no_call_and_lets_none_run() {
    for asked in ["nothing", "name", "on_error", "time_limit", "may_allow"] {
        for does in [
            "nothing",
            "changes",
            "denies",
            "allows",
            "before fails",
            "before panics",
            "before hangs",
            "before waits",
            "after fails",
            "after panics",
            "after hangs",
            "after waits",
        ] {
            for others in [0, 1] {
                check_defect(Defect { asked, does }, others).await;
            }
        }
    }
}

async fn check_defect(hook: Defect, others: usize) {
    let how = format!("{} of a hook that {}, {others}", hook.asked, hook.does);
    let ran = Arc::new(AtomicUsize::new(0));
    let asks = hook.does == "allows";
    let hooked = counted_pipeline(asks, &ran).hook("*", HookPriority::DEFAULT, hook);
    let hooked = (0..others).fold(hooked, |pipeline, _| {
        pipeline.hook("*", HookPriority::LOGGING, Defect { asked: hook.asked, does: "nothing" })
    });
    for is_heard in [false, true] {
        let mut events = is_heard.then(|| hooked.subscribe());
        let session = Session::default();
        let call = AssertUnwindSafe(hooked.call(&session, Call::new("look", "{}")));
        let result = call.catch_unwind().await.expect(&how).result;
        let runs = ran.swap(0, Ordering::Relaxed);
        let kind = result.as_ref().map(Output::as_text).map_err(ToolError::kind);
        match hook.does {
            "nothing" | "changes" | "before waits" | "after waits" => {
                assert_eq!((kind, runs), (Ok("seen"), 1), "{how}");
            }
            "allows" if hook.asked != "may_allow" => {
                assert_eq!((kind, runs), (Ok("seen"), 1), "{how}");
            }
            does if does.starts_with("after") => {
                assert_eq!((kind, runs), (Err(ErrorKind::Failed), 1), "{how}");
            }
            _ => assert_eq!((kind, runs), (Err(ErrorKind::Denied), 0), "{how}"),
        }
        let told = events.iter_mut().flat_map(|it| std::iter::from_fn(|| it.try_recv()));
        let ends = told.filter(|event| event.kind.is_terminal()).count();
        assert_eq!(ends, usize::from(is_heard), "{how}");
    }
}

#[test]
fn a_hook_without_a_name_is_called_so() {
    let hook = Defect { asked: "name", does: "denies" };
    let pipeline = pipeline().hook("*", HookPriority::DEFAULT, hook);
    let session = Session::default();
    let outcome = pipeline.call(&session, Call::new("look", "{}")).now_or_never().unwrap();
    assert_eq!(outcome.text(), "`look` may not run: the hook `nameless` says: no");
    assert!(format!("{pipeline:?}").contains("nameless(*, 100)"));
}

/// The audit records of the one call, without the fields that are not about hooks.
#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<Value>>>);

impl AuditSink for Records {
    fn record(&self, record: &AuditRecord<'_>) -> std::io::Result<()> {
        let record = serde_json::to_value(record)?;
        self.0.lock().unwrap().push(json!([record["what"], record["changed_by"]]));
        Ok(())
    }
}

/// Replaces the arguments of every call with these.
struct Writes(&'static str, Value);

impl Hook for Writes {
    fn name(&self) -> Cow<'_, str> {
        self.0.into()
    }

    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(HookDecision::none().rewrite(&self.1))
    }
}

// The record names the hooks that changed a call, in order, without those that only changed the
// spelling.
#[tokio::test]
async fn the_record_says_who_changed_a_call() {
    let (a, b) = (json!({ "at": "a", "n": 1 }), json!({ "at": "b", "n": 1 }));
    let first = ("first", b.clone());
    for (hooks, expected) in [
        (vec![], Value::Null),
        (vec![("same", a.clone())], Value::Null),
        (vec![first.clone(), ("again", b.clone())], json!(["first"])),
        (vec![first.clone(), ("back", a.clone())], json!(["first", "back"])),
        (vec![("wrong", json!("text"))], json!(["wrong"])),
    ] {
        let schema = json!({ "type": "object", "properties": { "at": {}, "n": {} } });
        let schema = Schema::from_value(schema).unwrap();
        let definition = Definition::new(ToolName::from_static("look"), "Looks.", schema)
            .risk(Risk::new(RiskClass::Read));
        let tool = DynamicTool::new(definition, |_: Value, _: Context| async { "seen" });
        let records = Records::default();
        let pipeline = Pipeline::new(Registry::builder().add(tool).build().unwrap());
        let pipeline = hooks.into_iter().fold(pipeline, |pipeline, (name, arguments)| {
            pipeline.hook("*", HookPriority::DEFAULT, Writes(name, arguments))
        });
        let call = Call::new("look", r#"{"n": 1, "at": "\u0061"}"#);
        let pipeline = pipeline.audit(records.clone());
        let outcome = pipeline.call(&Session::default(), call).await;
        let records = records.0.lock().unwrap().clone();
        let mut told = vec![json!(["decided", expected])];
        if outcome.result.is_ok() {
            told.push(json!(["ran", expected]));
        }
        assert_eq!(records, told);
    }
}
