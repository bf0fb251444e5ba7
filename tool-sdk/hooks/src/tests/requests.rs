//! Tests of `PermissionRequest` hooks that answer before the user is prompted.

use std::future::{Future, ready};
use std::pin::Pin;

use tool_sdk_core::{
    Action, ApprovalRequest, ApprovalResponse, Batch, Call, Context, DynamicTool, HookPriority,
    Pipeline, Registry, Resource, Risk, RiskClass, Rule, ScriptedApprover,
    internal::ApprovalInternals,
};

use super::*;

/// An approver whose answer shows that it was asked.
struct AskedApprover;

impl Approver for AskedApprover {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        Box::pin(ready(Some(ApprovalResponse::Reject)))
    }
}

fn ask() -> Arc<ApprovalRequest> {
    let tool = ToolName::from_static("write_note");
    let mut request = ApprovalRequest::new("a1", CallId::from_external("c1"), tool);
    request.session = "s1".into();
    request.arguments = json!({ "title": "a" });
    let outside = Resource::new("/out").with_permission("external_directory");
    request.subjects = vec!["notes/a".into(), outside];
    request.internals = ApprovalInternals::default().with_hook_approval(true);
    Arc::new(request)
}

async fn reply(hooks: &[Value]) -> Option<ApprovalResponse> {
    let request = |hook: &Value| (HookEvent::PermissionRequest, hook.clone());
    let hooks = config(&hooks.iter().map(request).collect::<Vec<_>>());
    Arc::new(hooks).wrap_approver(Arc::new(AskedApprover)).request_approval(ask()).await
}

fn answers(behavior: &str) -> Value {
    says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest",
        "decision": { "behavior": behavior, "message": "by rule" },
    } }))
}

fn no(feedback: &str) -> Option<ApprovalResponse> {
    Some(ApprovalResponse::RejectWith { feedback: feedback.to_owned() })
}

// F67: recorded combinations.
#[tokio::test]
async fn decisions_combine_as_recorded() {
    for case in cases("permission_request_combination") {
        let decisions = case["decisions"].as_array().unwrap();
        let hooks: Vec<_> =
            decisions.iter().map(|decision| trusted(answers(decision.as_str().unwrap()))).collect();
        let expected = match case["result"].as_str() {
            Some("deny") => no("by rule"),
            Some(_) => Some(ApprovalResponse::Once),
            None => Some(ApprovalResponse::Reject),
        };
        assert_eq!(reply(&hooks).await, expected, "{case}");
    }
}

// F71
#[tokio::test]
async fn without_may_allow_or_an_answer_the_user_is_prompted() {
    assert_eq!(reply(&[answers("allow")]).await, Some(ApprovalResponse::Reject));
    assert_eq!(reply(&[json!({ "command": "true" })]).await, Some(ApprovalResponse::Reject));
    assert_eq!(reply(&[json!({ "command": "echo no >&2; exit 2" })]).await, no("no"));
    let broken = reply(&[trusted(answers("allow")), json!({ "command": "exit 1" })]).await;
    assert!(
        matches!(broken, Some(ApprovalResponse::RejectWith { feedback }) if feedback.contains("exit code 1"))
    );
}

// F67: the input has the permission and the resources of the request.
#[tokio::test]
async fn a_hook_reads_what_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.json");
    reply(&[json!({ "command": format!("cat > '{}'", input.display()) })]).await;
    let input: Value = serde_json::from_slice(&std::fs::read(input).unwrap()).unwrap();
    let subjects = json!([
        { "permission": "write_note", "text": "notes/a" },
        { "permission": "external_directory", "text": "/out" },
    ]);
    assert_eq!((&input["permission"], &input["subjects"]), (&json!("write_note"), &subjects));
}

/// Records the notifications about hooks.
#[derive(Default)]
struct RecordingWitness(Mutex<Vec<String>>, Session);

impl tool_sdk_core::internal::HookObserver for RecordingWitness {
    fn hook_started(&self, hook: &str) {
        self.0.lock().unwrap().push(format!("began {hook}"));
    }

    fn hook_finished(&self, hook: String, outcome: String, _: u64) {
        self.0.lock().unwrap().push(format!("ended {hook}: {outcome}"));
    }

    fn session(&self) -> &Session {
        &self.1
    }

    fn mode(&self) -> Mode {
        Mode::default()
    }

    fn forbidden_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn external_arg_names(&self, _: &Value) -> ExternalArgNames {
        ExternalArgNames::default()
    }
}

// F71: the run is reported, and the record names the hook.
#[tokio::test]
async fn a_hook_that_answers_is_told_and_named() {
    let hooks = config(&[(HookEvent::PermissionRequest, trusted(answers("allow")))]);
    let notes = Arc::new(RecordingWitness::default());
    let mut ask = Arc::unwrap_or_clone(ask());
    ask.internals = ApprovalInternals::new(&[], Arc::clone(&notes) as _).with_hook_approval(true);
    let ask = Arc::new(ask);
    let reply = Arc::new(hooks)
        .wrap_approver(Arc::new(AskedApprover))
        .request_approval(Arc::clone(&ask))
        .await;
    assert_eq!(reply, Some(ApprovalResponse::Once));
    let name = "cat (PermissionRequest[0].hooks[0])";
    assert_eq!(ask.responder(), Some(format!("hook {name}").as_str()));
    let expected = [format!("began {name}"), format!("ended {name}: allow: by rule")];
    assert_eq!(*notes.0.lock().unwrap(), expected);
}

/// A pipeline with one tool of this risk class, and these hooks.
fn guarded(class: RiskClass, hooks: &[(HookEvent, Value)]) -> Pipeline {
    let mut definition = TestCall::new().definition;
    definition.risk = Risk::new(class);
    let tool = DynamicTool::new(definition, |_: Value, _: Context| async { "written" });
    Pipeline::new(Registry::builder().add(tool).build().unwrap()).hook(
        "*",
        HookPriority::DEFAULT,
        config(hooks),
    )
}

/// A pipeline with one `PermissionRequest` hook and an approver that approves.
fn asking(hook: Value) -> Pipeline {
    guarded(RiskClass::Read, &[(HookEvent::PermissionRequest, hook)])
        .rules([Rule::new(Action::Ask, "write_note", "*")])
        .approver(ScriptedApprover::always_respond(ApprovalResponse::Once))
}

// F67, K20: the hooks also run before an approver of the session.
#[tokio::test]
async fn hooks_are_asked_before_the_approver_of_a_session() {
    for own in [false, true] {
        for (line, expected) in
            [("exit 2", (false, 0)), ("exit 1", (false, 0)), ("true", (true, 1))]
        {
            let hook = (HookEvent::PermissionRequest, json!({ "command": line }));
            let mut pipeline = guarded(RiskClass::Write, &[hook]);
            if own {
                pipeline = pipeline.approver(ScriptedApprover::default());
            }
            let client = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
            let session = Session::new("s").with_shared_approver(Arc::clone(&client) as _);
            let outcome = pipeline.call(&session, Call::new("write_note", "{}")).await;
            assert_eq!((outcome.result.is_ok(), client.requests().len()), expected, "{line} {own}");
        }
    }
}

/// A hook that asks for approval.
struct AskingHook;

impl Hook for AskingHook {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(HookDecision::ask("it is Friday"))
    }
}

// F67: an allow overrides no more than it would before the call.
#[tokio::test]
async fn an_allow_lifts_no_more_than_before_the_call() {
    let yes = (HookEvent::PermissionRequest, trusted(answers("allow")));
    let own = Rule::new(Action::Ask, "write_note", "*");
    let of = |class| guarded(class, std::slice::from_ref(&yes));
    for (what, pipeline, is_asked) in [
        ("the mode", of(RiskClass::Write), false),
        ("a rule", of(RiskClass::Read).rules([own]), false),
        ("another hook", of(RiskClass::Read).hook("*", HookPriority::LOGGING, AskingHook), true),
        ("folders", of(RiskClass::Execute).writable_roots(["/nowhere"]), true),
        (
            "a denial that nobody can judge",
            of(RiskClass::Write).rules([Rule::new(Action::Deny, "write_note", "secret")]),
            true,
        ),
    ] {
        let approver = Arc::new(ScriptedApprover::default());
        let pipeline = pipeline.shared_approver(Arc::clone(&approver) as _);
        let outcome = pipeline.call(&Session::new("s"), Call::new("write_note", "{}")).await;
        let found = (approver.requests().len() == 1, outcome.result.is_err());
        assert_eq!(found, (is_asked, is_asked), "{what}");
    }
}

// F67: a halt ends the turn, also for a permission request.
#[tokio::test]
async fn a_command_that_answers_may_end_the_turn() {
    let stop = says(&json!({ "continue": false, "stopReason": "enough" }));
    let request = |interrupt: bool| {
        let decision = json!({ "behavior": "deny", "message": "enough", "interrupt": interrupt });
        let event = "PermissionRequest";
        says(&json!({ "hookSpecificOutput": { "hookEventName": event, "decision": decision } }))
    };
    for (hook, halted) in
        [(stop, Some("enough")), (request(true), Some("enough")), (request(false), None)]
    {
        let pipeline = asking(hook);
        let calls = ["1", "2"].map(|_| Call::new("write_note", "{}"));
        let outcomes = Batch::new(&pipeline).run(&Session::new("s"), calls).await;
        assert!(outcomes.iter().all(|it| it.result.is_err()), "{outcomes:?}");
        assert_eq!(outcomes[0].halt_reason(), halted);
    }
}

// A hook for a tool also denies tools that use its permission.
#[tokio::test]
async fn a_hook_for_a_tool_forbids_what_has_its_permission() {
    let other = |name: &'static str, aliases: &[&'static str]| {
        let schema = TestCall::new().definition.parameters;
        let mut definition = Definition::new(ToolName::from_static(name), "Runs.", schema);
        definition.permission = Some("run_line".into());
        definition.aliases = aliases.iter().map(|&name| ToolName::from_static(name)).collect();
        DynamicTool::new(definition, |_: Value, _: Context| async { "done" })
    };
    let yes = json!({ "decision": "approve" }).to_string();
    for (event, matcher, line, answer) in [
        ("PreToolUse", "Jot", "exit 2", Err("`run_script` may not run: the hook `exit` denies it")),
        ("PreToolUse", "run_line", "exit 2", Err("`run_script` may not run")),
        ("PermissionRequest", "Jot", "exit 2", Err("`run_script` may not run: the hook `exit`")),
        ("PreToolUse", "Write", "exit 2", Ok(1)),
        // It cannot allow.
        ("PreToolUse", "Jot", &*format!("echo '{yes}'"), Ok(1)),
        ("PermissionRequest", "Jot", &*format!("echo '{yes}'"), Ok(1)),
    ] {
        let hook = json!({ "type": "command", "command": line, "may_allow": true });
        let config = json!({ event: [{ "matcher": matcher, "hooks": [hook] }] });
        let (hooks, mistakes) = ExternalHooks::from_value(&config);
        assert_eq!(mistakes, []);
        let approver = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
        let tools =
            Registry::builder().add(other("run_line", &["jot"])).add(other("run_script", &[]));
        let pipeline = Pipeline::new(tools.build().unwrap())
            .hook("*", HookPriority::DEFAULT, hooks)
            .shared_approver(Arc::clone(&approver) as _);
        let outcome = pipeline.call(&Session::new("s"), Call::new("run_script", "{}")).await;
        match answer {
            Ok(asked) => {
                assert_eq!((outcome.text(), approver.requests().len()), ("done".into(), asked))
            }
            Err(why) => assert!(outcome.text().starts_with(why), "{matcher}: {}", outcome.text()),
        }
    }
}
