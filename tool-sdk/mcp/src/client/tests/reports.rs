//! Redaction, warnings and refusals: what reaches the user and the model beside results.

use http_stub::{HttpStub, StubReply as Answer};
use tool_sdk_core::{ApprovalRequest, Approver, EventKind};

use super::*;
use crate::HttpEndpoint;

/// Has the shape of a secret.
const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

// LG1: errors are shown without secrets, in any form.
#[tokio::test]
async fn failed_results_are_redacted() {
    let words = format!("401: bad key {SECRET}");
    let text = json!([{ "type": "text", "text": words }]);
    for (result, expected) in [
        (json!({ "content": text, "isError": true }), "401: bad key [redacted]"),
        (
            json!({ "content": text, "structuredContent": { "key": SECRET }, "isError": true }),
            "401: bad key [redacted]",
        ),
        (json!({ "content": [], "structuredContent": [SECRET], "isError": true }), "[redacted]"),
    ] {
        let setting = TestHost::trusting(calls(move |_| vec![ServerAct::Answer(result.clone())]));
        setting.connect().await;
        let error = setting.call("echo", "{}").await.result.unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        let output = error.output().unwrap();
        let given = format!("{error} {} {:?}", output.as_text(), output.to_structured());
        assert!(!given.contains(SECRET), "{given}");
    }
    // The result of a successful call is not redacted.
    let setting = TestHost::trusting(echo);
    setting.connect().await;
    let called = setting.call("echo", &json!({ "text": SECRET }).to_string()).await;
    assert_eq!(called.text(), SECRET);
}

// MC4, LG1
#[tokio::test]
async fn progress_messages_are_escaped() {
    let message = format!("\u{202e}busy {SECRET}");
    let setting = TestHost::trusting(calls(move |message_of| {
        let progress = ServerAct::Say(json!({
            "method": "notifications/progress",
            "params": { "progressToken": "TOKEN", "progress": 1, "message": message },
        }));
        [vec![progress], echo(message_of)].concat()
    }));
    setting.connect().await;
    let mut events = setting.pipeline.subscribe();
    setting.call("echo", "{}").await.result.unwrap();
    let told = loop {
        match events.recv().await.unwrap().kind {
            EventKind::Progress { message, .. } => break message.to_string(),
            EventKind::Completed { .. } => panic!("nothing was told"),
            _ => {}
        }
    };
    assert!(told.contains("busy [redacted]") && !told.contains('\u{202e}'), "{told}");
}

// An error without an id belongs to the only open request.
#[tokio::test]
async fn error_without_an_id_fails_the_only_call() {
    let parse = json!({ "id": null, "error": { "code": -32700, "message": "parse" } });
    let setting = TestHost::trusting(calls(move |_| vec![ServerAct::Say(parse.clone())]));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert!(error.message().contains("the server returned an error (-32700): parse"), "{error}");
}

/// An approver who takes so long that the tool changes meanwhile.
struct Slow {
    script: Arc<ScriptedServer>,
    toolset: std::sync::OnceLock<Pipeline>,
}

impl Approver for Slow {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        let mut changes = self.toolset.get().unwrap().toolset().subscribe_changes();
        changes.mark_unchanged();
        self.script.say(change);
        Box::pin(async move {
            changes.changed().await.unwrap();
            Some(ApprovalResponse::Once)
        })
    }
}

// MC2: the approval was for the old definition, and the error tells the model what to do.
#[tokio::test]
async fn tool_that_changes_during_approval_does_not_run() {
    for (later, words) in [("echo", "definition changed"), ("other", "was removed")] {
        let lists = std::sync::atomic::AtomicUsize::new(0);
        let script = ScriptedServer::new(move |message| match message["method"].as_str() {
            Some("tools/list") => {
                let nth = lists.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let name = if nth == 0 { "echo" } else { later };
                let tool = tool(name, &format!("Says it, version {nth}."));
                vec![ServerAct::Answer(json!({ "tools": [tool] }))]
            }
            _ => echo(message),
        });
        let slow = Slow { script: Arc::clone(&script), toolset: std::sync::OnceLock::new() };
        let slow = Arc::new(slow);
        let pipeline = Pipeline::new(Registry::default()).shared_approver(Arc::clone(&slow) as _);
        let setting = TestHost::with_server(pipeline, script);
        assert!(slow.toolset.set(setting.pipeline.clone()).is_ok());
        setting.connect().await;
        let error = setting.call("echo", "{}").await.result.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(setting.server.heard("tools/call").is_empty());
    }
}

// A filter for an unknown tool is probably a mistake.
#[tokio::test]
async fn filter_for_an_unknown_tool_is_reported() {
    let setting = TestHost::trusting(echo);
    let chosen =
        setting.server_config("chosen").only_tools(["echo", "ecko"]).without_tools(["delte"]);
    setting.servers.add(chosen).unwrap();
    let told = setting.servers.connect("chosen").await.unwrap().warnings;
    let unknown =
        |name| format!("it has no tool `{name}`, which the configuration enables or disables");
    assert_eq!(told, ["ecko", "delte"].map(unknown));
}

// A deadline after the longest timeout can be computed.
#[tokio::test]
async fn longest_timeout_does_not_overflow() {
    let setting = TestHost::trusting(echo);
    let patient = setting.server_config("patient").startup_timeout(Duration::MAX);
    setting.servers.add(patient.call_timeout(Duration::MAX)).unwrap();
    setting.servers.connect("patient").await.unwrap();
    let call = Call::new("mcp__patient__echo", r#"{"text": "hi"}"#);
    assert_eq!(setting.pipeline.call(&setting.session, call).await.text(), "hi");
}

// MC1: a tool that cannot be parsed does not affect the others.
#[tokio::test]
async fn deeply_nested_tool_does_not_affect_the_others() {
    let setting = TestHost::trusting(|message: &Value| match message["method"].as_str() {
        Some("tools/list") => {
            let schema = format!("{}true{}", r#"{"not":"#.repeat(300), "}".repeat(300));
            let deep = format!(r#"{{"name":"deep","inputSchema":{schema}}}"#);
            let tools = format!("[{deep},{}]", tool("echo", "Says it."));
            let id = &message["id"];
            let list = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":{tools}}}}}"#);
            vec![ServerAct::Write(format!("{list}\n").into_bytes())]
        }
        _ => echo(message),
    });
    let status = setting.connect().await;
    assert_eq!(status.tools, ["mcp__s__echo"]);
    assert_eq!(status.warnings, ["deep: left out, it is nested too deeply"]);
}

// MC1: rmcp drops a tool that it cannot call, without an error.
#[tokio::test]
async fn tool_with_an_unsupported_header_is_reported() {
    let web = HttpStub::start(|asked| match asked.message["method"].as_str() {
        Some("server/discover") => Answer::Result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
        })),
        Some("tools/list") => {
            let mut bad = tool("bad", "Has no name for its header.");
            bad["inputSchema"]["properties"]["text"]["x-mcp-header"] = json!("");
            let tools = [tool("echo", "Says it."), bad];
            Answer::Result(json!({
                "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private",
            }))
        }
        _ => Answer::Usual,
    });
    let setting = TestHost::trusting(|_| Vec::new());
    setting.servers.remove("s");
    let address = HttpEndpoint::new(&web.url()).unwrap();
    setting.servers.add(ServerConfig::new("s", address).unwrap()).unwrap();
    let status = setting.connect().await;
    assert_eq!(status.tools, ["mcp__s__echo"]);
    assert_eq!(status.warnings, ["bad: left out, its `x-mcp-header` is not supported"]);
}
