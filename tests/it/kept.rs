//! What a pipeline keeps of its calls: approvals for later, repeats, and records.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tool_sdk::{
    ApprovalResponse, AuditLog, AuditRecord, AuditSink, Call, Context, ErrorKind, GrantStore,
    LoopGuard, Mode, Outcome, Pipeline, Redactor, Registry, Resource, Rule, ScriptedApprover,
    Session, Subscription, Workspace, tool, tools,
};

/// Remove something.
#[tool(write, register = false, approval(resources = removed))]
fn remove(
    /// What to remove.
    path: String,
) -> String {
    format!("removed {path}")
}

fn removed(args: &RemoveArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(args.path.clone())]
}

/// Look at something.
#[tool(read, register = false)]
fn look(
    /// What to look at.
    path: String,
) -> String {
    format!("saw {path}")
}

fn pipeline() -> Pipeline {
    Pipeline::new(Registry::builder().add(tools![remove, look]).build().unwrap())
}

async fn call(pipeline: &Pipeline, session: &Session, tool: &str, path: &str) -> Outcome {
    pipeline.call(session, Call::new(tool.to_owned(), json!({ "path": path }))).await
}

fn kinds(events: &mut Subscription) -> Vec<String> {
    std::iter::from_fn(|| events.try_recv())
        .map(|event| serde_json::to_value(&event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect()
}

// F76, F77: always survives the pipeline, in its workspace only.
#[tokio::test]
async fn what_is_approved_for_always_holds_in_a_new_pipeline() {
    let state = tempfile::tempdir().unwrap();
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let with = |workspace: &std::path::Path, replies: Vec<ApprovalResponse>| {
        let store = GrantStore::open(state.path().join("approvals"), workspace);
        let approver = Arc::new(ScriptedApprover::new(replies));
        let asked = Arc::clone(&approver);
        (pipeline().grant_store(store).shared_approver(approver), asked)
    };
    let always = ApprovalResponse::Always { patterns: vec!["a".to_owned()] };
    let (first, _) = with(here.path(), vec![always]);
    assert!(call(&first, &Session::new("1"), "remove", "a").await.result.is_ok());

    let (again, asked) = with(here.path(), Vec::new());
    assert!(call(&again, &Session::new("2"), "remove", "a").await.result.is_ok());
    assert!(asked.requests().is_empty());
    assert!(call(&again, &Session::new("2"), "remove", "b").await.result.is_err());
    let (elsewhere, _) = with(there.path(), Vec::new());
    assert!(call(&elsewhere, &Session::new("3"), "remove", "a").await.result.is_err());

    // F78: a rule written later wins, and a revocation is seen at once.
    let denied = with(here.path(), Vec::new()).0.rules(["deny remove(a)".parse::<Rule>().unwrap()]);
    assert!(call(&denied, &Session::new("4"), "remove", "a").await.result.is_err());
    let store = GrantStore::open(state.path().join("approvals"), here.path());
    let id = store.list().unwrap().remove(0).id;
    assert!(store.revoke(&id).unwrap());
    assert!(call(&again, &Session::new("2"), "remove", "a").await.result.is_err());
}

#[tokio::test]
async fn what_cannot_be_stored_holds_for_the_session_and_says_so() {
    let (state, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let blocked = state.path().join("approvals");
    std::fs::write(&blocked, "a file where the folder should be").unwrap();
    let always = ApprovalResponse::Always { patterns: vec!["a".to_owned()] };
    let pipeline = pipeline()
        .grant_store(GrantStore::open(&blocked, workspace.path()))
        .approver(ScriptedApprover::new([always]));
    let mut events = pipeline.subscribe();
    let session = Session::new("s");
    for _ in 0..2 {
        assert!(call(&pipeline, &session, "remove", "a").await.result.is_ok());
    }
    assert!(kinds(&mut events).iter().any(|kind| kind == "warned"));
    assert!(call(&pipeline, &Session::new("other"), "remove", "a").await.result.is_err());
}

// AP1: what the tools of a session may write is not a store of approvals.
#[tokio::test]
async fn a_store_in_a_folder_that_was_lent_is_not_believed() {
    let (state, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = state.path().join("approvals");
    let always = ApprovalResponse::Always { patterns: vec!["a".to_owned()] };
    let with = |replies: Vec<ApprovalResponse>| {
        let store = GrantStore::open(&folder, workspace.path());
        pipeline().grant_store(store).approver(ScriptedApprover::new(replies))
    };
    assert!(
        call(&with(vec![always.clone()]), &Session::new("1"), "remove", "a").await.result.is_ok()
    );
    assert!(call(&with(Vec::new()), &Session::new("2"), "remove", "a").await.result.is_ok());

    let lent = Workspace::open([workspace.path(), state.path()]).unwrap();
    let session = Session::new("3").with_service(lent);
    let pipeline = with(vec![always]);
    let mut events = pipeline.subscribe();
    for _ in 0..2 {
        // Asked once, and then it holds for the session.
        assert!(call(&pipeline, &session, "remove", "a").await.result.is_ok());
    }
    assert!(kinds(&mut events).iter().any(|kind| kind == "warned"));
    assert!(call(&with(Vec::new()), &session.with_id("4"), "remove", "a").await.result.is_err());
}

// F34: repeats end in a result of their own, and nothing lifts the hard stop.
#[tokio::test]
async fn a_model_that_repeats_itself_is_told_so() {
    let pipeline = pipeline().loop_guard(LoopGuard::default());
    let mut events = pipeline.subscribe();
    let session = Session::new("s");
    let mut kept = Vec::new();
    for _ in 0..4 {
        kept.push(call(&pipeline, &session, "look", "a").await.result.is_ok());
    }
    assert_eq!(kept, [true, true, false, false]);
    let again = call(&pipeline, &session, "look", "a").await;
    assert!(again.text().contains("`look` was called"), "{}", again.text());
    assert!(kinds(&mut events).contains(&"looped".to_owned()));
    assert!(call(&pipeline, &session, "look", "b").await.result.is_ok());
    assert!(call(&pipeline, &Session::new("other"), "look", "a").await.result.is_ok());
}

// F34: who sends again and again what cannot run is in a loop as well.
#[tokio::test]
async fn calls_that_cannot_run_repeat_too() {
    let pipeline = pipeline().loop_guard(LoopGuard::default());
    let mut events = pipeline.subscribe();
    let session = Session::new("s");
    let mut told = Vec::new();
    for _ in 0..4 {
        let call = Call::new("look", r#"{"paht": "a"}"#);
        let error = pipeline.call(&session, call).await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        told.push(error.suggestion().is_some_and(|hint| hint.contains("times in a row")));
    }
    assert_eq!(told, [false, false, true, true]);
    assert_eq!(kinds(&mut events).iter().filter(|kind| *kind == "looped").count(), 2);
    assert!(call(&pipeline, &session, "look", "a").await.result.is_ok());
}

// Who says again what a session is has the same session, and nobody else has.
#[tokio::test]
async fn a_session_that_is_told_again_who_it_is_for_keeps_what_was_approved() {
    let yes = || ApprovalResponse::Session { patterns: vec!["a".to_owned()] };
    let pipeline =
        pipeline().loop_guard(LoopGuard::default()).approver(ScriptedApprover::new([yes()]));
    let base = Session::new("s").with_user("ada").with_agent("a").with_project("p");
    assert!(call(&pipeline, &base, "remove", "a").await.result.is_ok());
    let again = || base.clone().with_id("s").with_user("ada").with_agent("a").with_project("p");
    for _ in 0..2 {
        assert!(call(&pipeline, &again(), "remove", "a").await.result.is_ok());
    }
    // Somebody said yes to the first, so that the fourth is the third of those that count.
    let mut events = pipeline.subscribe();
    assert!(call(&pipeline, &again(), "remove", "a").await.result.is_err());
    assert!(kinds(&mut events).contains(&"looped".to_owned()));
    for other in [again().with_user("eve"), again().with_agent("b"), again().with_project("q")] {
        assert!(call(&pipeline, &other, "remove", "a").await.result.is_err());
        assert!(!kinds(&mut events).contains(&"looped".to_owned()));
    }
}

#[tokio::test]
async fn no_approval_lifts_the_hard_stop() {
    let yes = ScriptedApprover::always_respond(ApprovalResponse::Once);
    let pipeline = pipeline().loop_guard(LoopGuard::default()).mode(Mode::Bypass).approver(yes);
    let session = Session::new("s");
    let mut ok = 0;
    for _ in 0..20 {
        ok += usize::from(call(&pipeline, &session, "look", "a").await.result.is_ok());
    }
    assert_eq!(ok, 9);
}

// F91, P6: one record per decision and per run, by one fingerprint, without secrets.
#[tokio::test]
async fn every_decision_and_run_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = AuditLog::open(&path, Redactor::new(["hunter2hunter2"])).unwrap();
    let pipeline = pipeline()
        .audit(log)
        .approver(ScriptedApprover::new([ApprovalResponse::Once, ApprovalResponse::Reject]));
    let session = Session::new("s").with_user("ada");
    for (tool, path) in [("look", "a"), ("remove", "hunter2hunter2"), ("remove", "b")] {
        call(&pipeline, &session, tool, path).await;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let what: Vec<_> = records
        .iter()
        .map(|it| (it["tool"].as_str().unwrap(), it["what"].as_str().unwrap(), &it["decision"]))
        .collect();
    let (allow, deny, none) = (json!("allow"), json!("deny"), Value::Null);
    assert_eq!(
        what,
        [
            ("look", "decided", &allow),
            ("look", "ran", &none),
            ("remove", "decided", &allow),
            ("remove", "ran", &none),
            ("remove", "decided", &deny),
        ]
    );
    assert_eq!(records[2]["answer"]["reply"], "once");
    // Who answered is not known here; on whose behalf the call was made is.
    assert_eq!((&records[2]["answer"]["who"], &records[2]["user"]), (&Value::Null, &json!("ada")));
    assert_eq!(records[2]["fingerprint"], records[3]["fingerprint"]);
    assert_ne!(records[2]["fingerprint"], records[4]["fingerprint"]);
}

#[tokio::test]
async fn what_cannot_be_written_down_does_not_run() {
    #[derive(Default)]
    struct Full(Arc<Mutex<usize>>);
    impl AuditSink for Full {
        fn record(&self, _: &AuditRecord<'_>) -> io::Result<()> {
            *self.0.lock().unwrap() += 1;
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let pipeline = pipeline().audit(Full::default());
    let outcome = call(&pipeline, &Session::new("s"), "look", "a").await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Unavailable);
}

// LG1: events hold no secret; whoever is asked sees what runs.
#[tokio::test]
async fn events_are_redacted_and_asks_are_not() {
    let approver = Arc::new(ScriptedApprover::new([ApprovalResponse::Once]));
    let pipeline = pipeline()
        .redact_events(Redactor::new(["hunter2hunter2"]))
        .shared_approver(Arc::clone(&approver) as _);
    let mut events = pipeline.subscribe();
    let outcome = call(&pipeline, &Session::new("s"), "remove", "hunter2hunter2").await;
    assert_eq!(outcome.text(), "removed hunter2hunter2");
    let asked = approver.requests();
    assert_eq!(asked[0].arguments, json!({ "path": "hunter2hunter2" }));
    assert_eq!(asked[0].subjects[0].text(), "hunter2hunter2");

    let told: Vec<Value> = std::iter::from_fn(|| events.try_recv())
        .map(|event| serde_json::to_value(&event).unwrap())
        .collect();
    let of = |kind: &str| told.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(of("pending")["arguments"]["path"], "[redacted]");
    assert_eq!(of("permission_asked")["subjects"], json!(["[redacted]"]));
    assert_eq!(of("permission_asked")["fingerprint"], asked[0].fingerprint);
    assert!(!json!(told).to_string().contains("hunter2"));
}
