//! Tests the pipeline through the public interface, with tools made of closures.

mod backpressure;
mod call_events;
mod completion;
mod edits;
mod ending;
mod limits;
mod nested;
mod secrets;

use std::future::{Future, pending};
use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::call::CallId;
use crate::content::{Attachment, Output};
use crate::context::{Context, ConversationMessage, State};
use crate::error::ErrorKind;
use crate::event::{EventKind, ToolEvent};
use crate::name::ToolName;
use crate::registry::Registry;
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;
use crate::tool::{Definition, DynamicTool, IntoOutput, Tool, Truncate};

fn definition(name: &str) -> Definition {
    let schema = Schema::from_value(json!({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "additionalProperties": false,
    }));
    Definition::new(ToolName::new(name.to_owned()).unwrap(), "Does it.", schema.unwrap())
        .risk(Risk::new(RiskClass::Read))
}

fn tool<F>(name: &str, handler: impl Fn(Value, Context) -> F + Send + Sync + 'static) -> DynamicTool
where
    F: Future + Send + 'static,
    F::Output: IntoOutput + 'static,
{
    DynamicTool::new(definition(name), handler)
}

fn pipeline(tool: DynamicTool) -> Pipeline {
    Pipeline::new(Registry::builder().add(tool).build().unwrap())
}

async fn call(pipeline: &Pipeline, call: Call<'_>) -> Outcome {
    pipeline.call(&Session::new("s"), call).await
}

fn drain(events: &mut Subscription) -> Vec<ToolEvent> {
    std::iter::from_fn(|| events.try_recv()).collect()
}

/// Returns the kinds of the events, as in their JSON.
fn kinds(events: &[ToolEvent]) -> Vec<String> {
    let kind = |event: &ToolEvent| {
        serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
    };
    events.iter().map(kind).collect()
}

/// Runs one call of `tool`; returns the outcome and the kinds of all its events.
async fn watched(tool: DynamicTool, arguments: &str) -> (Outcome, Vec<String>) {
    let name = tool_name(&tool);
    let pipeline = pipeline(tool).timeout(Duration::from_secs(1));
    let mut events = pipeline.subscribe();
    let outcome = call(&pipeline, Call::new(name, arguments)).await;
    (outcome, kinds(&drain(&mut events)))
}

fn tool_name(tool: &DynamicTool) -> String {
    tool.definition().name.to_string()
}

#[track_caller]
fn kind(outcome: &Outcome) -> ErrorKind {
    outcome.result.as_ref().expect_err("the call fails").kind()
}

// F1, F7, F33, F37, F49: one call has exactly one terminal event.
#[tokio::test]
async fn a_call_that_works_is_pending_started_completed() {
    let echo =
        tool("echo", |args, _| async move { args["text"].as_str().unwrap_or("-").to_owned() });
    let (outcome, events) = watched(echo, r#"{"text": "hi"}"#).await;
    assert_eq!(outcome.text(), "hi");
    assert_eq!(events, ["pending", "started", "completed"]);
}

// F33, F38, F40, F41, F46, F57: each failure has its kind and exactly one terminal event.
#[tokio::test(start_paused = true)]
async fn every_failure_has_its_kind_and_one_end() {
    let fails = tool("t", |_, _| async { Err::<String, _>(ToolError::not_found("no such thing")) });
    let panics = tool("t", |_, _| async { panic!("with {}", "words") as String });
    let waits = tool("t", |_, _| pending::<String>());
    for (tool, arguments, error, end) in [
        (fails.clone(), "{}", ErrorKind::NotFound, vec!["pending", "started", "failed"]),
        (panics, "{}", ErrorKind::Internal, vec!["pending", "started", "failed"]),
        (waits, "{}", ErrorKind::Timeout, vec!["pending", "started", "timed_out"]),
        (fails, r#"{"txt": 1}"#, ErrorKind::InvalidArgs, vec!["failed"]),
    ] {
        let (outcome, events) = watched(tool, arguments).await;
        assert_eq!(kind(&outcome), error);
        assert_eq!(events, end);
    }
}

// F46: panics before the first await, in a future, and in its destructor are contained.
#[tokio::test(start_paused = true)]
async fn no_panic_leaves_its_call() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    fn early() -> std::future::Ready<String> {
        panic!("before the future")
    }
    let (outcome, _) = watched(tool("t", |_, _| early()), "{}").await;
    assert_eq!(kind(&outcome), ErrorKind::Internal);
    assert!(!outcome.text().contains("before the future"), "the model does not read it");

    let loud = tool("t", |_, _| async {
        let _loud = Loud;
        pending::<String>().await
    });
    let (outcome, events) = watched(loud, "{}").await;
    assert_eq!(kind(&outcome), ErrorKind::Timeout);
    assert_eq!(events.last().unwrap(), "timed_out");
}

// F39: an unknown name gets suggestions of similar names.
#[tokio::test]
async fn an_unknown_tool_is_answered_with_close_names() {
    let pipeline = pipeline(tool("look_up", |_, _| async { "x" }));
    let mut events = pipeline.subscribe();
    let outcome = call(&pipeline, Call::new("lookup", "{}")).await;
    assert_eq!(kind(&outcome), ErrorKind::NotFound);
    assert_eq!(outcome.text(), "there is no tool `lookup`\nhint: did you mean `look_up`?");
    assert_eq!(kinds(&drain(&mut events)), ["failed"]);
}

// F43, F53, F55: output of a tool arrives at once, in order, also when the tool fails later.
#[tokio::test(start_paused = true)]
async fn signals_arrive_while_the_tool_runs() {
    let chatty = tool("t", |_, cx: Context| async move {
        cx.set_metadata("title", "half way");
        cx.emit("found", json!({"n": 1}));
        cx.emit_output("part one");
        cx.progress(1, Some(2), "working");
        tokio::time::sleep(Duration::from_millis(1)).await;
        Err::<String, _>(ToolError::failed("no luck"))
    });
    let pipeline = pipeline(chatty);
    let mut events = pipeline.subscribe();
    let calling = call(&pipeline, Call::new("t", "{}"));
    tokio::pin!(calling);
    assert!(calling.as_mut().now_or_never().is_none());
    let early = drain(&mut events);
    assert_eq!(kinds(&early), ["pending", "started", "metadata", "emitted", "output", "progress"]);
    calling.await;
    let late = drain(&mut events);
    assert_eq!(kinds(&late), ["failed"]);
    let numbers: Vec<u64> = early.iter().chain(&late).map(|event| event.seq).collect();
    assert!(numbers.is_sorted());
}

// F62: a slow subscriber loses progress, is told, and sees every terminal event.
#[tokio::test]
async fn a_slow_subscriber_loses_progress_and_no_end() {
    let noisy = tool("t", |_, cx: Context| async move {
        for step in 0..5000 {
            cx.progress(step, None, "");
        }
        "done"
    });
    let pipeline = pipeline(noisy);
    let mut slow = pipeline.subscribe();
    call(&pipeline, Call::new("t", "{}")).await;
    call(&pipeline, Call::new("t", "{}")).await;
    let events = drain(&mut slow);
    let lost = events.iter().map(|event| match event.kind {
        EventKind::Lost { count } => count,
        _ => 0,
    });
    assert_eq!(lost.sum::<u64>(), 10_000 - 1024);
    assert!(events.iter().map(|event| event.seq).is_sorted_by(|a, b| a < b));
    let events = kinds(&events);
    assert_eq!(events.iter().filter(|kind| *kind == "completed").count(), 2);
    assert_eq!(events.iter().filter(|kind| *kind == "progress").count(), 1024);
}

// F14, F60, F93: what a tool requires of its caller, and what a caller may do.
#[tokio::test]
async fn callers_need_what_the_tool_asks_for() {
    let mut private = definition("t");
    private.flags.requires_auth = true;
    let pipeline = pipeline(DynamicTool::new(private, |_, cx: Context| async move {
        cx.require_permission("notes:write").map(|()| "written")
    }));
    let nobody = Session::new("s");
    let ada = Session::new("s").with_user("ada");
    let writer = ada.clone().with_permission("notes:write");
    for (session, expected) in [
        (nobody, Err(ErrorKind::Unauthorized)),
        (ada, Err(ErrorKind::Unauthorized)),
        (writer, Ok("written".to_owned())),
    ] {
        let outcome = pipeline.call(&session, Call::new("t", "{}")).await;
        assert_eq!(outcome.result.map(Output::into_text).map_err(|error| error.kind()), expected);
    }
}

// F26, F51, F52, F56, F60, F61: a tool reads the caller, the call, and the services of the session.
#[tokio::test]
async fn a_context_holds_what_the_host_lends() {
    let seen = tool("t", |_, cx: Context| async move {
        let notes: State<Mutex<Vec<String>>> = cx.state()?;
        let session = cx.session();
        let ids = [
            session.agent(),
            session.conversation(),
            session.project(),
            session.user(),
            session.request(),
            cx.message(),
        ];
        assert!(cx.deadline().unwrap() > cx.started() && !cx.is_cancelled());
        assert_eq!(session.metadata()["shelf"], 3);
        notes.lock().unwrap().push(format!(
            "{} {} {} {:?} {}",
            session.id(),
            cx.call_id(),
            ids.map(Option::unwrap_or_default).join(" "),
            session.messages(),
            session.client()
        ));
        Ok::<_, ToolError>("noted")
    });
    let pipeline = pipeline(seen);
    let notes = Arc::new(Mutex::new(Vec::<String>::new()));
    let session = Session::new("s")
        .with_agent("a")
        .with_conversation("c")
        .with_project("p")
        .with_user("u")
        .with_request("r")
        .with_metadata("shelf", 3)
        .with_messages([ConversationMessage::text("user", "hi")])
        .with_shared_service(Arc::clone(&notes));
    let outcome = pipeline.call(&session, Call::new("t", "{}").id("call_7").message("m")).await;
    assert_eq!(outcome.text(), "noted");
    assert_eq!(
        *notes.lock().unwrap(),
        [
            "s call_7 a c p u r m [ConversationMessage { role: \"user\", content: String(\"hi\") }] embedded"
        ]
    );

    // F26: a missing service is a config error, not a panic.
    let poor = pipeline.call(&Session::new("s"), Call::new("t", "{}")).await;
    assert_eq!(kind(&poor), ErrorKind::Config);
}

// F56: two pipelines in one process do not share the state of a session.
#[tokio::test]
async fn two_pipelines_share_nothing_of_a_session() {
    let writes = || {
        let definition = definition("t").risk(Risk::new(RiskClass::Write));
        let tool = DynamicTool::new(definition, |_: Value, _| async { "written" });
        pipeline(tool).loop_guard(crate::loop_guard::LoopGuard::default().threshold(2))
    };
    let session = Session::new("s");
    let write = async |pipeline: &Pipeline| {
        pipeline.call(&session, Call::new("t", "{}")).await.result.is_ok()
    };
    let granted = ApprovalResponse::Session { patterns: vec!["*".into()] };
    let one = writes().approver(crate::permission::ScriptedApprover::new([granted]));
    let other = writes();
    assert!(write(&one).await && !write(&other).await);
    assert_eq!((one.session_grants(&session).len(), other.session_grants(&session).len()), (1, 0));

    // No pipeline sees events of the other, or counts its calls as repeats.
    let (one, other) = (writes().mode(Mode::Bypass), writes().mode(Mode::Bypass));
    let mut events = other.subscribe();
    assert!(write(&one).await && write(&other).await);
    assert_eq!(kinds(&drain(&mut events)), ["pending", "started", "completed"]);
    assert!(!write(&other).await);
    assert_eq!(kinds(&drain(&mut events)), ["pending", "looped", "denied", "failed"]);

    other.close().await;
    assert!(write(&writes().mode(Mode::Bypass)).await && !write(&other).await);
}

// F58: `race` returns the value, or what ended it.
#[tokio::test(start_paused = true)]
async fn race_drops_what_takes_too_long() {
    let cx = Context::new(Session::new("s"), ToolName::from_static("t"), CallId::generate());
    let second = Duration::from_secs(1);
    assert_eq!(cx.race(async { 1 }, second).await, Ok(1));
    let late = cx.race(pending::<()>(), second).await.unwrap_err();
    assert_eq!(ToolError::from(late).kind(), ErrorKind::Timeout);
    cx.session().cancel_token().cancel();
    let stopped = cx.race(pending::<()>(), second).await.unwrap_err();
    assert_eq!(ToolError::from(stopped).kind(), ErrorKind::Aborted);
}

// F94, F95, F99, F100: text is truncated once, in one place, and stored whole in a file.
#[tokio::test]
async fn long_text_is_cut_and_kept() {
    let whole = "line\n".repeat(3000);
    let folder = tempfile::tempdir().unwrap();
    let text = whole.clone();
    let pipeline =
        pipeline(tool("t", move |_, _| std::future::ready(text.clone()))).output_dir(folder.path());
    let mut events = pipeline.subscribe();
    let outcome = call(&pipeline, Call::new("t", "{}").id("c1")).await;
    let truncated = outcome.truncation().cloned().expect("3000 lines are too many");
    assert_eq!((truncated.original_lines, truncated.omitted_lines), (3000, 1000));
    assert_eq!((truncated.original_bytes, truncated.omitted_bytes), (15_000, 5000));
    let path = truncated.full_output_path.expect("it is kept");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
    let notice = format!(
        "[1000 of 3000 lines and 5000 of 15000 bytes left out; the whole output is in {}]",
        path.display()
    );
    assert_eq!(outcome.text().lines().last().unwrap(), notice);
    assert_eq!(kinds(&drain(&mut events)), ["pending", "started", "truncated", "completed"]);

    // F45: a limit for one call.
    let short = call(&pipeline, Call::new("t", "{}").max_output(10)).await;
    assert!(short.text().starts_with("line\nline\n[2998 of 3000 lines"), "{}", short.text());
}

#[tokio::test]
async fn a_tool_that_bounds_itself_is_not_cut() {
    let mut own = definition("t");
    own.truncate = Some(Truncate::None);
    let pipeline = pipeline(DynamicTool::new(own, |_, _| async { "x\n".repeat(5000) }));
    assert!(call(&pipeline, Call::new("t", "{}")).await.truncation().is_none());
}

// F8, F35, F170: attachments arrive unchanged, and the terminal event names them.
#[tokio::test]
async fn attachments_and_display_travel_with_the_end() {
    let mut shown = definition("t").risk(Risk::new(RiskClass::Read));
    Arc::make_mut(&mut shown.display).name = Some("Look".to_owned());
    let pipeline = pipeline(DynamicTool::new(shown, |_, _| async {
        Output::text("seen")
            .title("A picture")
            .attach(Attachment::bytes("image/png", vec![1, 2]).with_name("a.png"))
    }));
    let mut events = pipeline.subscribe();
    let outcome = call(&pipeline, Call::new("t", r#"{"text": "x"}"#)).await;
    let output = outcome.result.unwrap();
    assert_eq!(
        output.attachments(),
        [Attachment::bytes("image/png", vec![1, 2]).with_name("a.png")]
    );

    let events = drain(&mut events);
    let json: Vec<Value> =
        events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    assert_eq!(json[0]["display"]["name"], "Look");
    assert_eq!(json[0]["arguments"], json!({"text": "x"}));
    assert_eq!(json[2]["source"], json!({"type": "native"}));
    assert_eq!(json[2]["artifacts"], json!([{"mime": "image/png", "name": "a.png"}]));
    assert_eq!(json[2]["tool"], "t");
}

// F106: a tool that is added to one toolset is not in another, and can be removed.
#[tokio::test]
async fn additions_belong_to_one_toolset() {
    let registry = Registry::builder().add(tool("t", |_, _| async { "t" })).build().unwrap();
    let (first, second) = (Pipeline::new(registry.clone()), Pipeline::new(registry));
    first.toolset().add(tool("extra", |_, _| async { "e" })).unwrap();
    assert!(first.toolset().add(tool("t", |_, _| async { "again" })).is_err());
    assert_eq!(call(&first, Call::new("extra", "{}")).await.text(), "e");
    assert_eq!(kind(&call(&second, Call::new("extra", "{}")).await), ErrorKind::NotFound);
    assert!(first.toolset().remove("extra") && first.toolset().remove("t"));
    assert!(!first.toolset().remove("extra"));
    assert_eq!(kind(&call(&first, Call::new("t", "{}")).await), ErrorKind::NotFound);
    assert_eq!(call(&second, Call::new("t", "{}")).await.text(), "t");
}

#[tokio::test]
async fn a_failure_does_not_flood_the_model() {
    let pipeline = pipeline(tool("t", |_, _| async {
        Err::<String, _>(ToolError::failed("ä".repeat(100_000)).hint("x".repeat(100_000)))
    }));
    let text = call(&pipeline, Call::new("t", "{}")).await.text().into_owned();
    assert!(text.len() <= 4096, "{}", text.len());
    assert!(text.starts_with('ä') && text.contains("ä\nhint: xxx"), "{text}");
    assert!(text.ends_with(" more bytes left out]"), "{text}");
}

// F41: the severity is enough to find failures.
#[tokio::test(start_paused = true)]
async fn events_say_how_much_they_matter() {
    let fails = tool("t", |_, _| async { Err::<String, _>(ToolError::failed("no luck")) });
    let waits = tool("t", |_, _| pending::<String>());
    let breaks = tool("t", |_, _| async { panic!("a defect") as String });
    for (tool, end, severity) in [
        (tool("t", |_, _| async { "t" }), "completed", "info"),
        (fails, "failed", "warning"),
        (waits, "timed_out", "warning"),
        (breaks, "failed", "error"),
    ] {
        let pipeline = pipeline(tool);
        let mut events = pipeline.subscribe();
        call(&pipeline, Call::new("t", "{}")).await;
        let events: Vec<Value> =
            drain(&mut events).iter().map(|event| serde_json::to_value(event).unwrap()).collect();
        assert_eq!(events[0]["severity"], "info");
        let last = events.last().unwrap();
        assert_eq!((&last["type"], &last["severity"]), (&json!(end), &json!(severity)));
        assert_eq!(last["tool"], "t");
    }
}

// F44: a call with effects is never retried automatically.
#[tokio::test]
async fn a_call_that_fails_ran_once() {
    for class in [RiskClass::Read, RiskClass::Write, RiskClass::Execute] {
        let runs = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&runs);
        let definition = definition("t").risk(Risk::new(class));
        let fails = DynamicTool::new(definition, move |_: Value, _: Context| {
            *counted.lock().unwrap() += 1;
            async { Err::<String, _>(ToolError::unavailable("try again later")) }
        });
        let pipeline = pipeline(fails).mode(Mode::Bypass);
        for _ in 0..2 {
            assert_eq!(kind(&call(&pipeline, Call::new("t", "{}")).await), ErrorKind::Unavailable);
        }
        assert_eq!(*runs.lock().unwrap(), 2);
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_said() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let pipeline = pipeline(tool("t", |_, _| async { "line\n".repeat(3000) }))
        .output_dir(file.path().join("not a folder"));
    let outcome = call(&pipeline, Call::new("t", "{}")).await;
    assert!(outcome.text().ends_with("left out; they could not be kept]"));
    assert!(outcome.truncation().unwrap().full_output_path.is_none());
}

// A schema without a Rust type behind it is enforced completely.
#[tokio::test]
async fn what_only_a_schema_says_holds() {
    for keyword in [
        json!({"not": {"required": ["text"]}}),
        #[cfg(feature = "external-schemas")]
        json!({"properties": {"text": {"if": {}, "then": {"maxLength": 1}}}}),
        json!({"patternProperties": {"^t": {"type": "integer"}}}),
    ] {
        let pipeline = pipeline(raw(&keyword));
        let outcome = call(&pipeline, Call::new("t", r#"{"text": "rm"}"#)).await;
        assert_eq!(kind(&outcome), ErrorKind::InvalidArgs, "{keyword}");
    }
}

#[cfg(not(feature = "external-schemas"))]
#[test]
fn a_schema_with_an_external_keyword_names_the_feature() {
    let tool = raw(&json!({"properties": {"text": {"if": {}, "then": {"maxLength": 1}}}}));
    let error = Registry::builder().add(tool).build().unwrap_err().to_string();
    let words = "`t` (added by the host) could never be called: its schema's \
                 /properties/text/if needs the feature `external-schemas` of tool-sdk";
    assert_eq!(error, words);
}

// Adding a tool that no call could ever reach is an error.
#[test]
fn what_cannot_be_checked_is_not_registered() {
    let tool = raw(&json!({"properties": {"text": {"pattern": "^(?!rm).*$"}}}));
    let error = Registry::builder().add(tool).build().unwrap_err().to_string();
    let words = "`t` (added by the host) could never be called: its schema's \
                 /properties/text/pattern cannot be checked";
    assert!(error.starts_with(words), "{error}");
}

/// A tool whose argument schema contains `keyword`.
fn raw(keyword: &Value) -> DynamicTool {
    let mut schema = json!({"type": "object"});
    schema.as_object_mut().unwrap().extend(keyword.as_object().unwrap().clone());
    let schema = Schema::from_value(schema).unwrap();
    let definition = Definition::new(ToolName::from_static("t"), "Does it.", schema);
    DynamicTool::new(definition, |_, _| async { "ran" })
}

// F69: a hook's changes to definitions apply no matter where the hook was added.
#[tokio::test]
async fn a_hook_of_the_pipeline_changes_what_is_said_of_tools() {
    struct Says;
    impl crate::hook::Hook for Says {
        fn edit_definition(&self, definition: &mut Definition, _: &Session) -> bool {
            definition.description = format!("{} And more.", definition.description).into();
            definition.name.as_str() != "gone"
        }
    }
    let tools = [tool("kept", |_, _| async { "kept" }), tool("gone", |_, _| async { "gone" })];
    let registry = tools.into_iter().fold(Registry::builder(), |all, one| all.add(one));
    let hook = Arc::new(Says);
    // A hook that is added twice counts once.
    let toolset =
        Toolset::new(registry.build().unwrap()).with_definition_hook("*", Arc::clone(&hook));
    let pipeline =
        Pipeline::new(toolset).shared_hook("*", crate::hook::HookPriority::DEFAULT, hook);
    let view = pipeline.toolset().view();
    let told: Vec<_> = view.definitions().map(|one| &*one.description).collect();
    assert_eq!(told, ["Does it. And more."]);
    assert_eq!(kind(&call(&pipeline, Call::new("gone", "{}")).await), ErrorKind::NotFound);

    let own = tool("kept", |_, _| async { "kept" });
    let pipeline = self::pipeline(own).hook("k*", crate::hook::HookPriority::DEFAULT, Says);
    let told = pipeline.toolset().view();
    assert_eq!(told.definitions().next().unwrap().description, "Does it. And more.");
}

// F11, F62: a tool never waits for a subscriber that does not read.
#[test]
fn a_subscriber_that_never_reads_costs_a_tool_no_wait() {
    let chatty = tool("chatty", |_, cx| async move {
        for step in 0..2_000 {
            cx.emit_output(format!("{step} of many\n"));
        }
        "done"
    });
    let pipeline = pipeline(chatty);
    let mut silent: Vec<Subscription> = (0..100).map(|_| pipeline.subscribe()).collect();
    let session = Session::new("s");
    // One poll is enough: no stage has waited.
    let outcome = pipeline.call(&session, Call::new("chatty", "{}")).now_or_never();
    assert_eq!(outcome.expect("nothing waits").text(), "done");
    for events in &mut silent {
        assert_eq!(kinds(&drain(events)).last().unwrap(), "completed");
    }
}
