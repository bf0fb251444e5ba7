//! Every outcome of a call, for native, dynamic and foreign tools.

use tool_sdk::mcp::{
    RemoteCall, RemoteConnection, RemoteFuture, RemoteResult, RemoteTool, ServerConfig,
    ServerManager, TransportConfig,
};
use tool_sdk::{Leniency, LoopGuard, Mode, RawArgs};

use super::*;

#[tokio::test(start_paused = true)]
async fn records_each_outcome() {
    let recorder = Recorder::default();
    let plain = |name: &str| Scenario::new(&recorder, name, |pipeline| pipeline);

    plain("a read tool completes").call("read_note", r#"{"name": "a"}"#).await;
    plain("an alias-free default applies").call("read_note", r#"{"name": "a", "times": 2}"#).await;
    plain("an unknown tool").call("read_note", "{}").await;
    plain("a name that no tool can have").call("no such/tool", "{}").await;
    plain("invalid arguments").call("read_note", r#"{"name": 5, "tims": 2, "times": 9}"#).await;
    plain("arguments that are no JSON").call("read_note", "{name").await;
    plain("a duplicate key").call("read_note", r#"{"name": "a", "name": "b"}"#).await;
    plain("a tool that fails").call("fail", "{}").await;
    plain("a tool that panics").call("explode", "{}").await;
    plain("a tool that times out").call("wait_for", r#"{"seconds": 60}"#).await;
    plain("a tool that waits and reports").call("wait_for", r#"{"seconds": 1}"#).await;
    plain("a tool for known users").call("private_note", "{}").await;
    plain("a long text is truncated").call("long_text", "{}").await;
    plain("a write without an approver").call("write_note", r#"{"name": "a", "token": "t"}"#).await;
    plain("a dynamic tool without an approver").call("dynamic_write", r#"{"path": "p"}"#).await;
    plain("a tool asks while it runs, without an approver")
        .call("nested", r#"{"name": "a"}"#)
        .await;

    let mut known = plain("a known user");
    known.session = Session::new("s").with_user("ann").with_agent("coder");
    known.call("private_note", "{}").await;

    let allowed = Scenario::new(&recorder, "a rule allows a write", |pipeline| {
        pipeline.rules(rules(&["allow write_note(a)"]))
    });
    allowed.call("write_note", r#"{"name": "a", "token": "t"}"#).await;
    let denied = Scenario::new(&recorder, "a rule denies a read", |pipeline| {
        pipeline.rules(rules(&["deny read_note(name:secret*)", "allow read_note"]))
    });
    denied.call("read_note", r#"{"name": "secret-a"}"#).await;
    denied.call("read_note", r#"{"name": "a"}"#).await;
    let strict = Scenario::new(&recorder, "mode strict asks about a read", |pipeline| {
        pipeline.mode(Mode::Strict)
    });
    strict.call("read_note", r#"{"name": "a"}"#).await;
    let plan =
        Scenario::new(&recorder, "mode plan refuses a write", |pipeline| pipeline.mode(Mode::Plan));
    plan.call("write_note", r#"{"name": "a"}"#).await;
    let bypass = Scenario::new(&recorder, "mode bypass runs a write", |pipeline| {
        pipeline.mode(Mode::Bypass)
    });
    bypass.call("dynamic_write", r#"{"path": "p"}"#).await;
    let broken = Scenario::new(&recorder, "an audit log that fails stops the call", |pipeline| {
        pipeline.audit(BrokenAudit)
    });
    broken.call("read_note", r#"{"name": "a"}"#).await;
    let limited = plain("a time limit of the call");
    let call = Call::new("wait_for", r#"{"seconds": 1}"#).id("c1");
    let call = call.timeout(Duration::from_millis(100)).max_output(16);
    limited.recorder.outcome(&limited.pipeline.call(&limited.session, call).await);
    let lenient = plain("null is taken as absent");
    let args = RawArgs::new(r#"{"name": "a", "times": null}"#);
    let call = Call::new("read_note", args.lenient(Leniency::default().null_is_absent())).id("c1");
    lenient.recorder.outcome(&lenient.pipeline.call(&lenient.session, call).await);
    let closed = plain("a closed pipeline");
    closed.pipeline.close().await;
    closed.call("read_note", r#"{"name": "a"}"#).await;

    let checked = plain("a check runs nothing");
    let call = Call::new("write_note", r#"{"name": "a"}"#).id("c1");
    let check = checked.pipeline.check(&checked.session, call).await.unwrap();
    let mut check = serde_json::to_value(&check).unwrap();
    recorder.0.lock().unwrap().normalize(&mut check);
    recorder.note(format!("checked  {check}"));

    assert_recorded("outcomes", &recorder);
}

#[tokio::test(start_paused = true)]
async fn records_calls_without_audit_and_hooks() {
    let recorder = Recorder::default();
    let plain = |name: &str| Scenario::plain(&recorder, name, all_tools());
    plain("a read tool completes").call("read_note", r#"{"name": "a"}"#).await;
    plain("invalid arguments").call("read_note", "{}").await;
    plain("a tool that fails").call("fail", "{}").await;
    plain("a tool that panics").call("explode", "{}").await;
    plain("a tool that waits").call("wait_for", r#"{"seconds": 1}"#).await;
    plain("a tool that times out").call("wait_for", r#"{"seconds": 60}"#).await;
    plain("a sensitive argument").call("write_note", r#"{"name": "a", "token": "t"}"#).await;
    plain("a long text is truncated").call("long_text", "{}").await;
    let pipeline = all_tools().rules(rules(&["allow write_note"]));
    let allowed = Scenario::plain(&recorder, "a rule allows a write", pipeline);
    allowed.call("write_note", r#"{"name": "a", "token": "t"}"#).await;
    assert_recorded("plain", &recorder);
}

#[tokio::test(start_paused = true)]
async fn records_loops() {
    let recorder = Recorder::default();
    let guarded = |name: &str| {
        Scenario::new(&recorder, name, |pipeline| pipeline.loop_guard(LoopGuard::default()))
    };
    let same = guarded("the same call again and again");
    for number in 1..=11 {
        same.call_as(&format!("c{number}"), "read_note", r#"{"name": "a"}"#).await;
    }
    let invalid = guarded("the same invalid call");
    for number in 1..=4 {
        invalid.call_as(&format!("c{number}"), "read_note", "{}").await;
    }
    let cycle = guarded("a cycle of two calls");
    for number in 1..=3 {
        cycle.call_as(&format!("a{number}"), "read_note", r#"{"name": "a"}"#).await;
        cycle.call_as(&format!("b{number}"), "read_note", r#"{"name": "b"}"#).await;
    }
    let changing = guarded("changing arguments are no loop");
    for number in 1..=4 {
        let arguments = format!(r#"{{"name": "n{number}"}}"#);
        changing.call_as(&format!("c{number}"), "read_note", &arguments).await;
    }
    let mut plain = all_tools().loop_guard(LoopGuard::default());
    plain = plain.approver(ScriptedApprover::new(&recorder, [Some(ApprovalResponse::Once)]));
    let approved = Scenario::plain(&recorder, "a person lets a loop go on", plain);
    for number in 1..=5 {
        approved.call_as(&format!("c{number}"), "fail", "{}").await;
    }
    assert_recorded("loops", &recorder);
}

/// A foreign server with one tool.
struct Server;

impl RemoteConnection for Server {
    fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
        let schema = json!({
            "type": "object",
            "properties": { "text": { "type": "string", "maxLength": 8 } },
            "required": ["text"],
        });
        Box::pin(async {
            Ok(vec![RemoteTool::new("echo", schema).with_description("Echoes a text.")])
        })
    }

    fn call_tool<'a>(&'a self, call: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
        let text = call.arguments["text"].as_str().unwrap_or_default().to_owned();
        Box::pin(async move { Ok(RemoteResult::text(format!("echo {text}"))) })
    }
}

#[tokio::test(start_paused = true)]
async fn records_foreign_tools() {
    let recorder = Recorder::default();
    for (name, rule) in [("allowed", Some("allow mcp__s__echo")), ("without a rule", None)] {
        let name = format!("a foreign tool, {name}");
        let scenario =
            Scenario::new(&recorder, &name, |pipeline| pipeline.rules(rules(rule.as_slice())));
        let upstreams = ServerManager::for_pipeline(&scenario.pipeline);
        let reach =
            TransportConfig::custom(|| async { Ok(Arc::new(Server) as Arc<dyn RemoteConnection>) });
        upstreams.add(ServerConfig::new("s", reach).unwrap()).unwrap();
        upstreams.connect("s").await.unwrap();
        scenario.call_as("c1", "mcp__s__echo", r#"{"text": "a"}"#).await;
        scenario.call_as("c2", "mcp__s__echo", r#"{"text": 5}"#).await;
        scenario.call_as("c3", "mcp__s__echo", r#"{"text": "longer than eight"}"#).await;
        drop(upstreams);
    }
    assert_recorded("foreign", &recorder);
}
