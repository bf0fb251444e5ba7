//! Tests of `PermissionRequest` hooks that change the arguments of a call.

use std::future::Future;
use std::pin::Pin;

use tool_sdk_core::{
    Action, ApprovalRequest, ApprovalResponse, AuditRecord, AuditSink, Batch, Call, Context,
    DecisionSource, DynamicTool, HookPriority, LoopGuard, Outcome, Pipeline, Registry, Risk,
    RiskClass, Rule, ScriptedApprover, ToolDisplay,
};

use super::*;

/// A command that changes the call and allows it.
fn makes(input: &Value) -> Value {
    let decision = json!({ "behavior": "allow", "updatedInput": input });
    says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": decision,
    } }))
}

/// A pipeline with these hooks and a tool that writes a note and needs approval.
fn pipeline(hooks: &[(HookEvent, Value)]) -> Pipeline {
    let mut definition = TestCall::new().definition;
    definition.risk = Risk::new(RiskClass::Write);
    let mut display = ToolDisplay::default();
    display.sensitive = vec!["key".into()];
    definition.display = Arc::new(display);
    definition.parameters = Schema::from_value(json!({
        "type": "object",
        "properties": { "title": { "type": "string" }, "key": { "type": "string" } },
        "required": ["title"],
        "additionalProperties": false,
    }))
    .unwrap();
    let tool =
        DynamicTool::new(definition, |args: Value, _: Context| async move { args.to_string() });
    Pipeline::new(Registry::builder().add(tool).build().unwrap()).hook(
        "*",
        HookPriority::DEFAULT,
        config(hooks),
    )
}

/// The call of all tests.
fn call() -> Call<'static> {
    Call::new("write_note", r#"{"title":"a","key":"secret"}"#)
}

fn requests(hooks: &[Value]) -> Vec<(HookEvent, Value)> {
    hooks.iter().map(|hook| (HookEvent::PermissionRequest, hook.clone())).collect()
}

/// Writes a note with the title `a`; returns the outcome and the arguments that the approver saw,
/// who approves.
async fn write(pipeline: Pipeline) -> (Outcome, Vec<Value>) {
    let approver = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
    let pipeline = pipeline.shared_approver(Arc::clone(&approver) as _);
    let outcome = pipeline.call(&Session::new("s"), call()).await;
    (outcome, approver.requests().iter().map(|ask| ask.arguments.clone()).collect())
}

/// Returns the arguments with which the note was written.
fn ran_with(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.text()).unwrap()
}

// F64, F67: a changed call is authorized in place of the original, which is not prompted for.
#[tokio::test]
async fn a_call_that_is_changed_and_allowed_runs_changed() {
    let ran = json!({ "title": "b", "key": "secret" });
    let top = says(&json!({ "hookSpecificOutput": { "updatedInput": { "title": "b" } } }));
    let yes = says(&json!({ "decision": "approve" }));
    for (hooks, asked) in [
        (vec![trusted(makes(&json!({ "title": "b" })))], vec![]),
        // It returns its whole input with one change; masked values keep their original.
        (vec![trusted(makes(&json!({ "title": "b", "key": "***" })))], vec![]),
        // Without `may_allow` or without an allow, the approver sees the changed call.
        (vec![makes(&json!({ "title": "b" }))], vec!["b"]),
        (vec![trusted(top.clone())], vec!["b"]),
        // The second hook is asked about the changed call, and allows it.
        (vec![top, trusted(yes)], vec![]),
    ] {
        let (outcome, shown) = write(pipeline(&requests(&hooks))).await;
        let titles: Vec<_> = shown.iter().map(|it| it["title"].as_str().unwrap()).collect();
        assert_eq!((ran_with(&outcome), titles), (ran.clone(), asked), "{hooks:?}");
    }
}

// F64: rules apply to the changed call, and invalid arguments are rejected.
#[tokio::test]
async fn a_change_is_judged_like_any_call() {
    for (input, rules, why) in [
        (
            json!({ "title": "b" }),
            &["deny write_note(title: b)"] as &[_],
            "the rule `deny write_note(title: b)`",
        ),
        (json!({ "title": 5 }), &[], "changed the arguments to invalid ones"),
        (json!({ "name": "b" }), &[], "changed the arguments to invalid ones"),
    ] {
        let rules = rules.iter().map(|rule: &&str| rule.parse::<Rule>().unwrap());
        let pipeline = pipeline(&requests(&[trusted(makes(&input))])).rules(rules);
        let (outcome, shown) = write(pipeline).await;
        let text = outcome.text();
        assert!(outcome.result.is_err() && text.contains(why), "{input}: {text}");
        assert!(shown.is_empty(), "{input}");
    }
    // Its allow does not override another hook's ask.
    let wary = says(&json!({ "hookSpecificOutput": { "permissionDecision": "ask" } }));
    let makes = (HookEvent::PermissionRequest, trusted(makes(&json!({ "title": "b" }))));
    let rule = Rule::new(Action::Ask, "write_note", "*");
    for (pipeline, asked) in [
        (pipeline(std::slice::from_ref(&makes)).rules([rule]), 0),
        (pipeline(&[makes, (HookEvent::PreToolUse, wary)]), 1),
    ] {
        let (outcome, shown) = write(pipeline).await;
        assert_eq!((outcome.result.is_ok(), shown.len()), (true, asked));
        assert!(shown.iter().all(|it| it["title"] == "b"));
    }
}

// F64: `PreToolUse` hooks run for the changed call, and an ask still holds.
#[tokio::test]
async fn a_change_is_looked_at_by_hooks_before_calls() {
    let made = || trusted(makes(&json!({ "title": "b" })));
    let guard = json!({ "command": r#"if grep -q '"title":"b"'; then echo no b >&2; exit 2; fi"# });
    let hooks = [(HookEvent::PermissionRequest, made()), (HookEvent::PreToolUse, guard)];
    let (outcome, shown) = write(pipeline(&hooks)).await;
    let text = outcome.text();
    assert!(text.contains("no b") && shown.is_empty(), "{text}");
    let wary = says(&json!({ "hookSpecificOutput": { "permissionDecision": "ask",
        "permissionDecisionReason": "look at it" } }));
    let (outcome, shown) = write(pipeline(&requests(&[made(), wary]))).await;
    assert_eq!(ran_with(&outcome)["title"], "b");
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["title"], "b");
}

// A hook that changes every request changes a call once; then the approver is asked.
#[tokio::test]
async fn a_call_is_changed_once() {
    let grows = json!({ "command": r#"
        title=$(sed 's/.*"title":"\([^"]*\)".*/\1/')
        echo '{"hookSpecificOutput":{"updatedInput":{"title":"'"$title"'x"}}}'
    "# });
    let (outcome, shown) = write(pipeline(&requests(&[grows]))).await;
    assert_eq!(ran_with(&outcome), json!({ "title": "ax", "key": "secret" }));
    assert_eq!(shown.len(), 1);
}

// A permission request of a running tool has no arguments to change.
#[tokio::test]
async fn what_a_tool_asks_for_is_not_changed() {
    let mut definition = TestCall::new().definition;
    definition.risk = Risk::new(RiskClass::Read);
    let tool = DynamicTool::new(definition, |_: Value, cx: Context| async move {
        if cx.request_permission("other", "x").await { "yes" } else { "no" }
    });
    let approver = Arc::new(ScriptedApprover::default());
    let hook = trusted(makes(&json!({ "title": "b" })));
    let pipeline = Pipeline::new(Registry::builder().add(tool).build().unwrap())
        .hook("*", HookPriority::DEFAULT, config(&[(HookEvent::PermissionRequest, hook)]))
        .shared_approver(Arc::clone(&approver) as _);
    let outcome = pipeline.call(&Session::new("s"), Call::new("write_note", "{}")).await;
    assert_eq!((outcome.text().as_ref(), approver.requests().len()), ("no", 1));
}

// F34: the loop guard compares the changed arguments.
#[tokio::test]
async fn what_repeats_is_what_runs() {
    let approver = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Reject));
    let pipeline = pipeline(&requests(&[trusted(makes(&json!({ "title": "b" })))]))
        .loop_guard(LoopGuard::default())
        .shared_approver(Arc::clone(&approver) as _);
    let session = Session::new("s");
    for (at, (asked, runs)) in [(0, true), (0, true), (1, false)].into_iter().enumerate() {
        let text = json!({ "title": format!("a{at}") }).to_string();
        let outcome = pipeline.call(&session, Call::new("write_note", text)).await;
        assert_eq!((approver.requests().len(), outcome.result.is_ok()), (asked, runs), "{at}");
    }
    assert_eq!(approver.requests()[0].by, DecisionSource::Loop);
}

/// A hook whose approver passes on a copy of each request.
struct CopyingHook;

impl Hook for CopyingHook {
    fn wrap_approver(self: Arc<Self>, inner: Arc<dyn Approver>) -> Arc<dyn Approver> {
        Arc::new(CopyingApprover(inner))
    }
}

struct CopyingApprover(Arc<dyn Approver>);

impl Approver for CopyingApprover {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        self.0.request_approval(Arc::new((*ask).clone()))
    }
}

// A change does not approve the original call, with any approver in between.
#[tokio::test]
async fn a_change_is_never_taken_for_a_yes() {
    let hooks = requests(&[makes(&json!({ "title": "b" }))]);
    let (outcome, shown) =
        write(pipeline(&hooks).hook("*", HookPriority::SECURITY, CopyingHook)).await;
    assert_eq!((ran_with(&outcome)["title"].as_str(), shown.len()), (Some("b"), 1));
    assert_eq!(shown[0]["title"], "b");
}

#[tokio::test]
async fn identical_calls_that_wait_for_one_answer_are_all_changed() {
    let pipeline = pipeline(&requests(&[trusted(makes(&json!({ "title": "b" })))]))
        .approver(ScriptedApprover::always_respond(ApprovalResponse::Reject));
    let session = Session::new("s");
    let outcomes = Batch::new(&pipeline).run(&session, [call(), call()]).await;
    assert!(outcomes.iter().all(|it| ran_with(it)["title"] == "b"), "{outcomes:?}");
}

// The approver answered first, so a slower hook changes nothing.
#[tokio::test]
async fn an_answer_goes_before_a_change() {
    let slow = trusted(json!({ "command": format!(
        "sleep 60; {}", makes(&json!({ "title": "b" }))["command"].as_str().unwrap()
    ) }));
    let pipeline = pipeline(&requests(&[slow]))
        .approver(ScriptedApprover::always_respond(ApprovalResponse::Reject));
    let session = Session::new("s");
    let reply = async {
        loop {
            if let [ask] = pipeline.pending_approvals().as_slice() {
                break pipeline.respond(&ask.id, &ask.fingerprint, ApprovalResponse::Once).await;
            }
            tokio::task::yield_now().await;
        }
    };
    let (outcome, replied) = tokio::join!(pipeline.call(&session, call()), reply);
    assert_eq!((ran_with(&outcome)["title"].as_str(), replied), (Some("a"), Ok(())));
}

/// An audit log that collects who changed each call.
#[derive(Clone, Default)]
struct RecordedChangers(Arc<Mutex<Vec<Value>>>);

impl AuditSink for RecordedChangers {
    fn record(&self, record: &AuditRecord<'_>) -> std::io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_value(record)?["changed_by"].clone());
        Ok(())
    }
}

// The audit record has the configuration path of each command that changed the call.
#[tokio::test]
async fn the_record_names_the_commands_that_changed_a_call() {
    let input = |title: &str| {
        says(&json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "updatedInput": { "title": title },
        } }))
    };
    let before = |hook: Value| (HookEvent::PreToolUse, hook);
    let asked = |title: &str| (HookEvent::PermissionRequest, makes(&json!({ "title": title })));
    let (first, second) = ("cat (PreToolUse[0].hooks[0])", "cat (PreToolUse[1].hooks[0])");
    let request = "cat (PermissionRequest[0].hooks[0])";
    for (hooks, expected) in [
        (vec![before(says(&json!({})))], Value::Null),
        (vec![before(input("a"))], Value::Null),
        (vec![before(input("b"))], json!([first])),
        (vec![before(input("b")), before(input("c"))], json!([first, second])),
        (vec![asked("b")], json!([request])),
        // Each hook runs again after the other one changed the call.
        (vec![before(input("b")), asked("c")], json!([first, request, first])),
    ] {
        let changers = RecordedChangers::default();
        let (outcome, _) = write(pipeline(&hooks).audit(changers.clone())).await;
        outcome.result.unwrap();
        let changers = changers.0.lock().unwrap().clone();
        assert_eq!(changers, [expected.clone(), expected], "{hooks:?}");
    }
}
