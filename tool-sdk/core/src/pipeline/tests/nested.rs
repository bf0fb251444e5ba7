//! Calls that a running tool makes, and the ids that events and audit records have.

use std::io;
use std::sync::Arc;

use super::*;
use crate::audit::{AuditRecord, AuditSink};
use crate::hook::{Hook, HookContext, HookPriority};
use crate::loop_guard::LoopGuard;
use crate::permission::{Action, ApprovalResponse, approval_channel};

/// Keeps audit records as JSON.
#[derive(Clone, Default)]
struct AuditRecords(Arc<Mutex<Vec<Value>>>);

impl AuditSink for AuditRecords {
    fn record(&self, record: &AuditRecord<'_>) -> io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_value(record)?);
        Ok(())
    }
}

/// The tool `outer` calls `inner`, and passes on its text.
fn nested(inner: DynamicTool) -> Pipeline {
    let inner_name = tool_name(&inner);
    let outer = tool("outer", move |_, cx: Context| {
        let inner = inner_name.clone();
        async move { cx.call(Call::new(inner, "{}")).await.result.map(Output::into_text) }
    });
    Pipeline::new(Registry::builder().add(outer).add(inner).build().unwrap())
}

fn ids() -> Session {
    Session::new("s")
        .with_agent("a")
        .with_conversation("c")
        .with_project("p")
        .with_user("u")
        .with_request("r")
}

// F34, F51: events and audit records of a nested call name its parent and all ids.
#[tokio::test]
async fn a_nested_call_passes_all_stages_and_names_its_parent() {
    let audit = AuditRecords::default();
    let pipeline = nested(tool("inner", |_, cx: Context| async move {
        format!("{} in {}", cx.message().unwrap(), cx.parent().unwrap())
    }))
    .audit(audit.clone());
    let mut events = pipeline.subscribe();
    let call = Call::new("outer", "{}").id("c1").message("m1");
    let outcome = pipeline.call(&ids(), call).await;
    assert_eq!(outcome.text(), "m1 in c1");
    let events: Vec<Value> =
        drain(&mut events).iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let of = |tool: &str| events.iter().filter(|event| event["tool"] == tool).collect::<Vec<_>>();
    assert_eq!((of("outer").len(), of("inner").len()), (3, 3));
    let records = audit.0.lock().unwrap().clone();
    assert_eq!(records.len(), 4);
    for entry in events.iter().chain(&records) {
        for (key, id) in [
            ("session", "s"),
            ("agent", "a"),
            ("conversation", "c"),
            ("project", "p"),
            ("user", "u"),
            ("request", "r"),
            ("message_id", "m1"),
        ] {
            assert_eq!(entry[key], id, "{key} in {entry}");
        }
        match entry["tool"] == "inner" {
            true => assert_eq!(entry["parent"], "c1"),
            false => assert_eq!((&entry["call"], &entry["parent"]), (&json!("c1"), &Value::Null)),
        }
    }
}

// F34: nested calls count for the loop guard once, with their outer call.
#[tokio::test]
async fn identical_outer_calls_are_stopped_with_and_without_a_nested_call() {
    let plain = tool("plain", |_, _| async { "same" });
    let inner = tool("inner", |_, _| async { "same" });
    let registry = Registry::builder().add(plain).build().unwrap();
    let plain = Pipeline::new(registry).loop_guard(LoopGuard::default());
    let nested = nested(inner).loop_guard(LoopGuard::default());
    let session = Session::new("s");
    for round in 0..14 {
        let nested = nested.call(&session, Call::new("outer", "{}")).await.result;
        let plain = plain.call(&session, Call::new("plain", "{}")).await.result;
        assert_eq!(nested.is_ok(), round < 2, "{round}");
        let kinds = [nested, plain].map(|result| result.map(drop).map_err(|error| error.kind()));
        assert_eq!(kinds[0], kinds[1], "{round}");
    }
    // Other outer calls may each make the same nested call.
    let arguments = |round: u32| format!(r#"{{"text": "{round}"}}"#);
    for round in 0..14 {
        let outcome = nested.call(&session, Call::new("outer", arguments(round))).await;
        assert!(outcome.result.is_ok(), "{round}: {}", outcome.text());
    }
}

// F54: a nested call is authorized by itself; the prompt stops the clock of the outer call.
#[tokio::test(start_paused = true)]
async fn a_nested_call_is_asked_about_while_the_outer_clock_stops() {
    let (approver, mut requests) = approval_channel();
    let answering = async {
        let asked = requests.recv().await.unwrap();
        assert_eq!(asked.request().tool.as_str(), "inner");
        tokio::time::advance(Duration::from_secs(60)).await;
        asked.respond(ApprovalResponse::Once);
    };
    let writing = definition("inner").risk(Risk::new(RiskClass::Write));
    let inner = DynamicTool::new(writing, |_, _| async { "written" });
    let pipeline = nested(inner).timeout(Duration::from_secs(5));
    let denied = call(&pipeline, Call::new("outer", "{}")).await;
    assert_eq!(kind(&denied), ErrorKind::Denied);
    let pipeline = pipeline.approver(approver);
    let (outcome, ()) = tokio::join!(call(&pipeline, Call::new("outer", "{}")), answering);
    assert_eq!(outcome.text(), "written");
}

// F57: a nested call ends with the call around it, and calls are nested eight deep at most.
#[tokio::test(start_paused = true)]
async fn nested_calls_end_with_their_outer_call_and_are_not_endless() {
    let pipeline = nested(tool("inner", |_, _| pending::<String>()));
    let mut events = pipeline.subscribe();
    let outcome = call(&pipeline, Call::new("outer", "{}").timeout(Duration::from_secs(1))).await;
    assert_eq!(kind(&outcome), ErrorKind::Timeout);
    let ends = drain(&mut events).into_iter().filter(|event| event.kind.is_terminal());
    let ends: Vec<_> = ends.map(|event| event.tool.name.to_string()).collect();
    assert_eq!(ends, ["inner", "outer"]);

    let again = tool("again", |_, cx: Context| async move {
        cx.call(Call::new("again", "{}")).await.result.map(Output::into_text)
    });
    let endless = self::pipeline(again);
    let mut events = endless.subscribe();
    let outcome = call(&endless, Call::new("again", "{}")).await;
    assert!(outcome.text().contains("nested too deep"), "{}", outcome.text());
    let started = drain(&mut events).into_iter();
    let started = started.filter(|event| matches!(event.kind, EventKind::Started { .. })).count();
    assert_eq!(started, 9);
    // Without a pipeline there is nothing to call.
    let cx = Context::new(Session::new("s"), ToolName::from_static("t"), CallId::generate());
    assert_eq!(kind(&cx.call(Call::new("again", "{}")).await), ErrorKind::Unavailable);
}

/// Writes down every outcome that an observer sees.
#[derive(Clone, Default)]
struct OutcomeLog(Arc<Mutex<Vec<String>>>);

impl Hook for OutcomeLog {
    fn observe(&self, call: &HookContext<'_>, outcome: &Outcome) {
        let end = outcome.result.as_ref().map_or_else(|error| error.kind().as_str(), |_| "ok");
        let parent = call.parent().map(|parent| format!(" in {parent}")).unwrap_or_default();
        self.0.lock().unwrap().push(format!("{} {end}{parent}", call.definition().name));
    }
}

// F36: an observer sees every outcome.
#[tokio::test]
async fn observers_see_unknown_unparsable_denied_and_nested_calls() {
    let log = OutcomeLog::default();
    let pipeline = nested(tool("inner", |_, _| async { "done" })).hook(
        "*",
        HookPriority::LOGGING,
        log.clone(),
    );
    for (name, arguments) in
        [("outer", "{}"), ("nothing", "{}"), ("inner", "{"), ("inner", r#"{"no": 1}"#)]
    {
        let _ = call(&pipeline, Call::new(name, arguments).id("c")).await;
    }
    let pipeline = pipeline.rules([Rule::new(Action::Deny, "inner", "*")]);
    let _ = call(&pipeline, Call::new("inner", "{}")).await;
    assert_eq!(
        *log.0.lock().unwrap(),
        [
            "inner ok in c",
            "outer ok",
            "nothing not_found",
            "inner invalid_args",
            "inner invalid_args",
            "inner denied",
        ]
    );
}

// F170, F179: display data in events and approval requests have the category.
#[tokio::test]
async fn display_data_have_the_category_of_the_tool() {
    let mut write = definition("t").risk(Risk::new(RiskClass::Write));
    write.category = Some("filesystem".into());
    let (approver, mut requests) = approval_channel();
    let pipeline = pipeline(DynamicTool::new(write, |_, _| async { "done" })).approver(approver);
    let mut events = pipeline.subscribe();
    let answering = async {
        let asked = requests.recv().await.unwrap();
        let shown = serde_json::to_value(asked.request()).unwrap();
        assert_eq!(shown["display"]["category"], "filesystem", "{shown}");
        asked.respond(ApprovalResponse::Once);
    };
    let (outcome, ()) = tokio::join!(call(&pipeline, Call::new("t", "{}")), answering);
    assert_eq!(outcome.text(), "done");
    let events: Vec<Value> =
        drain(&mut events).iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let shown = events.iter().filter(|event| event["display"]["category"] == "filesystem");
    assert_eq!(shown.count(), 3, "{events:?}");
}
