//! Approval of tools whose current definition is not pinned.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use tool_sdk_core::{
    AgentProfile, ApprovalRequest, Approver, ErrorKind, Hook, HookContext, HookDecision,
    HookPriority, ToolError, Toolset,
};

use super::scripted_server::ServerAct;
use super::*;
use crate::client::naming::is_approval_void;

/// A server whose tool has another definition in every version.
fn changing(version: Arc<AtomicUsize>) -> Arc<ScriptedServer> {
    ScriptedServer::new(move |message| match message["method"].as_str() {
        Some("tools/list") => {
            let version = version.load(Ordering::Relaxed);
            let said = tool("echo", &format!("Says it, version {version}."));
            vec![ServerAct::Answer(json!({ "tools": [said] }))]
        }
        _ => echo(message),
    })
}

/// A pipeline with rules and an approver.
fn asking(
    approver: &Arc<ScriptedApprover>,
    allowed: &[&str],
    script: Arc<ScriptedServer>,
) -> TestHost {
    let rules = allowed.iter().map(|text| Rule::parse(Action::Allow, text).unwrap());
    let pipeline = Pipeline::new(Registry::default()).rules(rules);
    TestHost::with_server(pipeline.shared_approver(Arc::clone(approver) as _), script)
}

fn preview(ask: &ApprovalRequest) -> String {
    ask.preview.as_ref().map(Value::to_string).unwrap_or_default()
}

// MC2: a rule about a tool does not cover a changed definition.
#[tokio::test]
async fn first_use_and_every_change_are_shown() {
    let version = Arc::new(AtomicUsize::new(1));
    let approver = approve_all();
    let setting = asking(&approver, &["mcp__s__*"], changing(Arc::clone(&version)));
    setting.connect().await;

    setting.call("echo", "{}").await.result.unwrap();
    let asked = approver.requests();
    assert_eq!(asked.len(), 1);
    assert!(preview(&asked[0]).contains("Says it, version 1."), "{}", preview(&asked[0]));
    assert!(asked[0].suggestions.is_empty() || asked[0].subjects.len() == 1);

    setting.call("echo", "{}").await.result.unwrap();
    assert_eq!(approver.requests().len(), 1, "it was seen");

    version.store(2, Ordering::Relaxed);
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    setting.call("echo", "{}").await.result.unwrap();
    let asked = approver.requests();
    assert_eq!(asked.len(), 2);
    let shown = preview(&asked[1]);
    assert!(shown.contains("-  \\\"description\\\": \\\"Says it, version 1.\\\""), "{shown}");
    assert!(shown.contains("+  \\\"description\\\": \\\"Says it, version 2.\\\""), "{shown}");
}

// MC2: the reason says that the definition changed, and how the user sees the change.
#[tokio::test]
async fn reason_names_the_change_and_the_command() {
    let version = Arc::new(AtomicUsize::new(1));
    let approver = approve_all();
    let setting = asking(&approver, &["mcp"], changing(Arc::clone(&version)));
    setting.connect().await;
    setting.call("echo", "{}").await.result.unwrap();
    version.store(2, Ordering::Relaxed);
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    setting.call("echo", "{}").await.result.unwrap();
    let [first, second] = &approver.requests()[..] else { panic!("two requests") };
    let expected = "this definition of `echo` was not approved yet; ";
    assert!(first.reason.contains(expected), "{}", first.reason);
    let expected = "the server changed the definition of `echo` since it was approved, and `mcp \
                    inspect s` shows the difference; ";
    assert!(second.reason.contains(expected), "{}", second.reason);
}

/// An approver that approves without showing the request to a person.
struct UnreadApprover(Arc<ScriptedApprover>);

impl Approver for UnreadApprover {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        request.mark_unread();
        self.0.request_approval(request)
    }
}

// MC2: what a program approved counts as not seen, like what a rule allowed.
#[tokio::test]
async fn approval_that_no_person_read_pins_nothing() {
    let approver = approve_all();
    let rules = [Rule::parse(Action::Allow, "mcp").unwrap()];
    let pipeline = Pipeline::new(Registry::default()).rules(rules);
    let unread = Arc::new(UnreadApprover(Arc::clone(&approver)));
    let setting =
        TestHost::with_server(pipeline.shared_approver(unread), ScriptedServer::new(echo));
    setting.connect().await;
    for asked in 1..=2 {
        setting.call("echo", "{}").await.result.unwrap();
        assert_eq!(approver.requests().len(), asked);
    }
    assert_eq!(setting.servers.pin_differences("s").len(), 1);
}

// MC2: grants are void when the definition changes.
#[tokio::test]
async fn grant_is_void_after_a_change() {
    let version = Arc::new(AtomicUsize::new(1));
    let session = ApprovalResponse::Session { patterns: vec!["s/echo".to_owned()] };
    let approver = Arc::new(ScriptedApprover::new([ApprovalResponse::Once, session]));
    let setting = asking(&approver, &[], changing(Arc::clone(&version)));
    setting.connect().await;
    for _ in 0..3 {
        let outcome = setting.call("echo", "{}").await;
        assert!(outcome.result.is_ok(), "{:?}", approver.requests());
    }
    assert_eq!(approver.requests().len(), 2, "once to see it, once to approve of it");

    version.store(2, Ordering::Relaxed);
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!((error.kind(), approver.requests().len()), (ErrorKind::Denied, 3));

    // Nor does the grant come back with the old definition.
    setting.servers.trust_tools("s").unwrap();
    version.store(1, Ordering::Relaxed);
    changes.mark_unchanged();
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    setting.servers.trust_tools("s").unwrap();
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!((error.kind(), approver.requests().len()), (ErrorKind::Denied, 4));
}

// MC2: who lists grants says of each whether it is void, by the pinned definitions alone.
#[tokio::test]
async fn listed_grant_is_void_only_after_a_change() {
    let version = Arc::new(AtomicUsize::new(1));
    let session = ApprovalResponse::Session { patterns: vec!["s/echo".to_owned()] };
    let approver = Arc::new(ScriptedApprover::new([ApprovalResponse::Once, session]));
    let mut setting = asking(&approver, &[], changing(Arc::clone(&version)));
    let pins = ToolPins::in_memory();
    setting.servers = setting.servers.with_pins(pins.clone());
    setting.servers.add(setting.server_config("s")).unwrap();
    setting.connect().await;
    for _ in 0..2 {
        setting.call("echo", "{}").await.result.unwrap();
    }
    let is_void = |setting: &TestHost| {
        let [grant] = &*setting.pipeline.session_grants(&setting.session) else { panic!("one") };
        let definition = grant.to.definition.as_deref().unwrap();
        is_approval_void(&pins, "mcp__s__echo", definition)
    };
    assert!(!is_void(&setting));

    version.store(2, Ordering::Relaxed);
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    setting.call("echo", "{}").await.result.unwrap_err();
    assert!(is_void(&setting));
}

// MC2: a change of any part of the definition is noticed, also of parts that models do not see;
// a grant for the old definition does not cover the new one, even once that has run.
#[tokio::test]
async fn change_of_any_part_voids_grants() {
    let hint = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&hint);
    let script = ScriptedServer::new(move |message| match message["method"].as_str() {
        Some("tools/list") => {
            let mut said = tool("echo", "Says it.");
            said["annotations"] = json!({ "title": now.load(Ordering::Relaxed).to_string() });
            vec![ServerAct::Answer(json!({ "tools": [said] }))]
        }
        _ => echo(message),
    });
    let session = ApprovalResponse::Session { patterns: vec!["s/echo".to_owned()] };
    let approver = Arc::new(ScriptedApprover::new([
        ApprovalResponse::Once,
        session,
        ApprovalResponse::Once,
        ApprovalResponse::Once,
    ]));
    let setting = asking(&approver, &[], script);
    setting.connect().await;
    for _ in 0..3 {
        setting.call("echo", "{}").await.result.unwrap();
    }
    assert_eq!(approver.requests().len(), 2, "once to see it, once to approve of it");

    hint.store(1, Ordering::Relaxed);
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    for _ in 0..2 {
        setting.call("echo", "{}").await.result.unwrap();
    }
    assert_eq!(approver.requests().len(), 4, "once to see what changed, and once more");
    assert!(preview(&approver.requests()[2]).contains("+    \\\"title\\\": \\\"1\\\""));
}

// MC2: also when the tool changes between two connections.
#[tokio::test]
async fn tool_that_changed_between_connections_is_not_called() {
    let version = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&version);
    let script = ScriptedServer::new(move |message| match message["method"].as_str() {
        Some("tools/call") if now.fetch_add(1, Ordering::Relaxed) == 1 => vec![ServerAct::Leave],
        Some("tools/list") => {
            let said = format!("Says it, version {}.", now.load(Ordering::Relaxed));
            vec![ServerAct::Answer(json!({ "tools": [tool("echo", &said)] }))]
        }
        _ => echo(message),
    });
    let setting = asking(&approve_all(), &["mcp", "mcp_definition"], script);
    setting.connect().await;
    assert!(setting.call("echo", "{}").await.result.is_err(), "it went away");
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    setting.call("echo", "{}").await.result.unwrap();
}

// F130, MC2: each user sees a definition before it runs for them.
#[tokio::test]
async fn each_user_is_asked() {
    let approver = approve_all();
    let setting = asking(&approver, &["mcp__s__*"], ScriptedServer::new(echo));
    setting.connect().await;
    for (user, asked) in [("", 1), ("", 1), ("ada", 2), ("ada", 2), ("bob", 3), ("bob", 3)] {
        let anybody = Session::new("t").with_shared_server();
        let session = if user.is_empty() { anybody } else { anybody.with_user(user) };
        let call = Call::new("mcp__s__echo", "{}");
        setting.pipeline.call(&session, call).await.result.unwrap();
        assert_eq!(approver.requests().len(), asked, "{user}");
    }
    setting.servers.trust_tools("s").unwrap();
    let session = Session::new("t").with_user("eve");
    let call = Call::new("mcp__s__echo", "{}");
    setting.pipeline.call(&session, call).await.result.unwrap();
    assert_eq!(approver.requests().len(), 3, "the host has seen it for everybody");
}

// F130, MC2: a grant from before a change is void after it, even if another user still has the
// other definition pinned, and even if the change was denied.
#[tokio::test]
async fn each_change_back_and_forth_asks_again() {
    let version = Arc::new(AtomicUsize::new(1));
    let session = || ApprovalResponse::Session { patterns: vec!["s/echo".to_owned()] };
    let replies = [session(), ApprovalResponse::Once, session(), ApprovalResponse::Once, session()];
    let approver = Arc::new(ScriptedApprover::new(replies));
    let setting = asking(&approver, &[], changing(Arc::clone(&version)));
    setting.connect().await;
    setting.servers.trust_tools("s").unwrap();
    let ada = Session::new("t").with_user("ada");
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    // The version, and how many times ada was asked after two or three calls.
    for (now, asked) in [(1, 1), (2, 3), (1, 5), (2, 6), (1, 7)] {
        if version.swap(now, Ordering::Relaxed) != now {
            changes.mark_unchanged();
            let changed = "notifications/tools/list_changed";
            setting.server.say(json!({ "jsonrpc": "2.0", "method": changed }));
            changes.changed().await.unwrap();
        }
        for _ in 0..3 {
            let call = Call::new("mcp__s__echo", "{}");
            if setting.pipeline.call(&ada, call).await.result.is_err() {
                break;
            }
        }
        assert_eq!(approver.requests().len(), asked, "version {now}");
    }
}

// MC2, AP6: a change that one process shows voids the grants of another process.
#[tokio::test]
async fn change_shown_by_another_process_voids_grants() {
    let folder = tempfile::tempdir().unwrap();
    let pins = folder.path().join("mcp");
    let host = |approver: &Arc<ScriptedApprover>, version| {
        let version = Arc::new(AtomicUsize::new(version));
        let mut setting = asking(approver, &[], changing(version));
        setting.servers =
            ServerManager::for_pipeline(&setting.pipeline).with_pins(ToolPins::in_folder(&pins));
        setting.servers.add(setting.server_config("s")).unwrap();
        setting
    };
    let session = || ApprovalResponse::Session { patterns: vec!["s/echo".to_owned()] };
    let here = Arc::new(ScriptedApprover::new([
        ApprovalResponse::Once,
        session(),
        ApprovalResponse::Once,
        session(),
    ]));
    let one = host(&here, 1);
    one.connect().await;
    for _ in 0..3 {
        one.call("echo", "{}").await.result.unwrap();
    }
    assert_eq!(here.requests().len(), 2);

    let there = Arc::new(ScriptedApprover::new([ApprovalResponse::Reject, ApprovalResponse::Once]));
    let two = host(&there, 2);
    two.connect().await;
    let error = two.call("echo", "{}").await.result.unwrap_err();
    assert_eq!((error.kind(), there.requests().len()), (ErrorKind::Denied, 1));
    for asked in [3, 4, 4] {
        one.call("echo", "{}").await.result.unwrap();
        assert_eq!(here.requests().len(), asked);
    }

    // A run that another user approved there does not pin the definition here.
    two.call("echo", "{}").await.result.unwrap();
    let error = one.call("echo", "{}").await.result.unwrap_err();
    assert_eq!((error.kind(), here.requests().len()), (ErrorKind::Denied, 5));
    assert!(
        preview(&here.requests()[4]).contains("-  \\\"description\\\": \\\"Says it, version 2")
    );
}

/// A hook that denies or allows every call.
struct Says(HookDecision);

impl Hook for Says {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(self.0.clone())
    }

    fn may_allow(&self) -> bool {
        true
    }
}

// MC1: adding `Delete` beside `delete` renames both; neither escapes a denial, nor gains a
// permission of the other.
#[tokio::test]
async fn denial_survives_a_changed_model_name() {
    let names = Arc::new(std::sync::Mutex::new(vec!["delete"]));
    let listed = Arc::clone(&names);
    let script = ScriptedServer::new(move |message| match message["method"].as_str() {
        Some("tools/list") => {
            let tools = listed.lock().unwrap().iter().map(|it| tool(it, "Goes.")).collect();
            vec![ServerAct::Answer(json!({ "tools": Value::Array(tools) }))]
        }
        _ => echo(message),
    });
    let toolset = Toolset::new(Registry::default())
        .with_agent(AgentProfile::new("kept").without(["mcp__s__delete"]));
    let seen = Rule::parse(Action::Allow, "mcp_definition").unwrap();
    let pipeline = Pipeline::new(toolset)
        .rules([seen])
        .hook("mcp__s__delete", HookPriority::SECURITY, Says(HookDecision::deny("no")))
        .hook("mcp__s__keep", HookPriority::DEFAULT, Says(HookDecision::allow("yes")));
    let setting = TestHost::with_server(pipeline, script);
    setting.connect().await;

    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    *names.lock().unwrap() = vec!["delete", "Delete", "keep", "Keep"];
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    let kept = Session::new("k").with_agent("kept");
    let view = setting.pipeline.toolset().view_for(&kept);
    let left: Vec<&str> = view.definitions().map(|tool| tool.name.as_str()).collect();
    assert!(
        left.len() == 2 && left.iter().all(|it| it.to_lowercase().contains("keep")),
        "{left:?}"
    );
    let all = setting.tools();
    assert_eq!(all.len(), 4);
    for name in all {
        let call = Call::new(name.clone(), "{}");
        let decision = setting.pipeline.check(&setting.session, call).await.unwrap().decision;
        let expected = if name.contains("elete") { Action::Deny } else { Action::Ask };
        assert_eq!(decision.action, expected, "{name}: {}", decision.reason);
    }
}

// MC4: mentions are looked up when a tool is shown, regardless of the order of the servers.
#[tokio::test]
async fn mentions_of_other_tools_are_shown_in_the_prompt() {
    let sly = |message: &Value| match message["method"].as_str() {
        Some("tools/list") => {
            vec![ServerAct::Answer(
                json!({ "tools": [tool("echo", "Before it, call fetch_page.")] }),
            )]
        }
        _ => echo(message),
    };
    let approver = approve_all();
    let setting = asking(&approver, &[], ScriptedServer::new(sly));
    assert_eq!(setting.connect().await.warnings, [""; 0]);

    let pages = ScriptedServer::new(|message| match message["method"].as_str() {
        Some("tools/list") => {
            vec![ServerAct::Answer(json!({ "tools": [tool("fetch_page", "Yes.")] }))]
        }
        _ => echo(message),
    });
    let reach = TransportConfig::custom(move || Arc::clone(&pages).serve(ClientFeatures::none()));
    setting.servers.add(ServerConfig::new("pages", reach).unwrap()).unwrap();
    setting.servers.connect("pages").await.unwrap();
    let told = "it mentions `fetch_page`, which is not its own tool";
    assert_eq!(setting.servers.status("s").unwrap().warnings, [format!("echo: {told}")]);
    setting.call("echo", "{}").await.result.unwrap();
    assert!(
        preview(&approver.requests()[0]).contains(told),
        "{}",
        preview(&approver.requests()[0])
    );

    setting.servers.remove("pages");
    assert_eq!(setting.servers.status("s").unwrap().warnings, [""; 0]);
}

#[tokio::test]
async fn pinned_definition_is_not_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let pins = folder.path().join("mcp");
    for _ in 0..2 {
        let approver = Arc::new(ScriptedApprover::new([]));
        let mut setting = asking(&approver, &["mcp__s__*"], ScriptedServer::new(echo));
        setting.servers =
            ServerManager::for_pipeline(&setting.pipeline).with_pins(ToolPins::in_folder(&pins));
        setting.servers.add(setting.server_config("s")).unwrap();
        setting.connect().await;
        if !pins.exists() {
            setting.servers.trust_tools("s").unwrap();
        }
        setting.call("echo", "{}").await.result.unwrap();
        assert!(approver.requests().is_empty());
    }
}

// MC3: hints of the server grant nothing.
#[tokio::test]
async fn read_only_hint_does_not_skip_approval() {
    let script = ScriptedServer::new(|message| match message["method"].as_str() {
        Some("tools/list") => {
            let mut said = tool("echo", "Says it.");
            said["annotations"] = json!({ "readOnlyHint": true });
            vec![ServerAct::Answer(json!({ "tools": [said] }))]
        }
        _ => echo(message),
    });
    let setting = TestHost::with_server(Pipeline::new(Registry::default()), script);
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
}

// F89, MC3: hints show in the prompt, and lower no decision in any mode.
#[tokio::test]
async fn hints_do_not_lower_decisions() {
    let hints = [
        json!({}),
        json!({ "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false }),
        json!({ "readOnlyHint": true, "idempotentHint": true }),
        json!({ "destructiveHint": true, "openWorldHint": true }),
    ];
    for mode in Mode::ALL {
        let mut decided = Vec::new();
        for annotations in hints.clone() {
            let raised = annotations["destructiveHint"] == true;
            let script = ScriptedServer::new(move |message| match message["method"].as_str() {
                Some("tools/list") => {
                    let mut said = tool("echo", "Says it.");
                    said["annotations"] = annotations.clone();
                    vec![ServerAct::Answer(json!({ "tools": [said] }))]
                }
                _ => echo(message),
            });
            let setting =
                TestHost::with_server(Pipeline::new(Registry::default()).mode(mode), script);
            setting.connect().await;
            let call = Call::new("mcp__s__echo", "{}");
            decided.push(
                setting.pipeline.check(&setting.session, call).await.unwrap().decision.action,
            );

            let view = setting.pipeline.toolset().view();
            let risk = view.definition("mcp__s__echo").unwrap().risk;
            assert_eq!((risk.destructive, risk.open_world), (raised, raised), "{mode}");
        }
        let unhinted = decided[0];
        assert!(decided.iter().all(|&action| action == unhinted), "{mode}: {decided:?}");
        assert_eq!(unhinted == Action::Allow, mode == Mode::Bypass, "{mode}");
    }
}

// MC2: any change voids grants, also one that was denied without a prompt.
#[tokio::test]
async fn denied_change_voids_grants() {
    let version = Arc::new(AtomicUsize::new(1));
    let approver = Arc::new(ScriptedApprover::new([ApprovalResponse::Session {
        patterns: vec!["s/echo".to_owned()],
    }]));
    let rules = [Rule::parse(Action::Deny, "mcp_definition").unwrap()];
    let pipeline = Pipeline::new(Registry::default()).rules(rules);
    let pipeline = pipeline.shared_approver(Arc::clone(&approver) as _);
    let setting = TestHost::with_server(pipeline, changing(Arc::clone(&version)));
    setting.connect().await;
    setting.servers.trust_tools("s").unwrap();
    for _ in 0..2 {
        setting.call("echo", "{}").await.result.unwrap();
    }
    assert_eq!(approver.requests().len(), 1);
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    for (now, asked) in [(2, 1), (1, 2)] {
        version.store(now, Ordering::Relaxed);
        changes.mark_unchanged();
        setting
            .server
            .say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        changes.changed().await.unwrap();
        let error = setting.call("echo", "{}").await.result.unwrap_err();
        assert_eq!((error.kind(), approver.requests().len()), (ErrorKind::Denied, asked), "{now}");
    }
}

// MC2: a mode does not pin a definition.
#[tokio::test]
async fn run_by_mode_does_not_pin_the_definition() {
    let pins = ToolPins::in_memory();
    let with = |pipeline: Pipeline| {
        let setting = TestHost::with_server(pipeline, ScriptedServer::new(echo));
        let upstreams = ServerManager::for_pipeline(&setting.pipeline).with_pins(pins.clone());
        setting.servers.remove("s");
        upstreams.add(setting.server_config("s")).unwrap();
        TestHost { servers: upstreams, ..setting }
    };
    let bypass = with(Pipeline::new(Registry::default()).mode(Mode::Bypass));
    bypass.connect().await;
    bypass.call("echo", "{}").await.result.unwrap();
    let approver = approve_all();
    let pipeline = Pipeline::new(Registry::default());
    let asked = with(pipeline.shared_approver(Arc::clone(&approver) as _));
    asked.connect().await;
    asked.call("echo", "{}").await.result.unwrap();
    assert!(preview(&approver.requests()[0]).contains("this tool was never run before"));
}

/// A server whose tool claims to read only.
fn reader() -> Arc<ScriptedServer> {
    ScriptedServer::new(|message| match message["method"].as_str() {
        Some("tools/list") => {
            let mut said = tool("echo", "Says it.");
            said["annotations"] = json!({ "readOnlyHint": true });
            vec![ServerAct::Answer(json!({ "tools": [said] }))]
        }
        _ => echo(message),
    })
}

// F89: trusted hints spare the approval of a call, and never that of a definition.
#[tokio::test]
async fn hints_spare_approvals_only_where_the_host_trusts_them() {
    for (is_trusted, asked) in [(false, 3), (true, 1)] {
        let approver = approve_all();
        let setting = asking(&approver, &[], reader());
        setting.servers.remove("s");
        let config = setting.server_config("s").trust_annotations(is_trusted);
        setting.servers.add(config).unwrap();
        setting.connect().await;
        for _ in 0..3 {
            setting.call("echo", "{}").await.result.unwrap();
        }
        assert_eq!(approver.requests().len(), asked, "trusted: {is_trusted}");
    }
}
