//! Calls: results, failures, progress, timeouts and cancellation.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{ErrorKind, EventKind};

use super::*;

// F117, F127
#[tokio::test]
async fn calls_a_foreign_tool() {
    let setting = TestHost::trusting(echo);
    let status = setting.connect().await;
    assert_eq!((status.connected, status.tools), (true, vec!["mcp__s__echo".to_owned()]));
    let outcome = setting.call("echo", r#"{"text": "hi"}"#).await;
    assert_eq!(outcome.text(), "hi");
    let called = &setting.server.heard("tools/call")[0];
    assert_eq!(called["params"]["name"], "echo");
    assert_eq!(called["params"]["arguments"], json!({ "text": "hi" }));
}

// F119
#[tokio::test]
async fn invalid_arguments_are_not_sent() {
    let setting = TestHost::trusting(echo);
    setting.connect().await;
    let outcome = setting.call("echo", r#"{"text": 3}"#).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::InvalidArgs);
    assert!(setting.server.heard("tools/call").is_empty());
}

#[tokio::test]
async fn failure_has_the_text_of_the_server() {
    let setting = TestHost::trusting(calls(|_| {
        let content = json!([{ "type": "text", "text": "no such page" }]);
        vec![ServerAct::Answer(json!({ "content": content, "isError": true }))]
    }));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Failed, "no such page"));
}

// F8: a failed result keeps its content.
#[tokio::test]
async fn failure_keeps_its_content() {
    let setting = TestHost::trusting(calls(|_| {
        let content = json!([
            { "type": "text", "text": "no such page" },
            { "type": "image", "data": "AQ==", "mimeType": "image/png" },
        ]);
        let result =
            json!({ "content": content, "structuredContent": { "n": 1 }, "isError": true });
        vec![ServerAct::Answer(result)]
    }));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    let given = error.output().unwrap();
    assert_eq!((error.message(), given.attachments().len()), ("no such page", 1));
    assert_eq!(given.to_structured(), Some(json!({ "n": 1 })));
}

/// A server whose tool has this output schema and returns `result`.
fn promising(schema: &Value, result: Value) -> TestHost {
    let mut said = tool("echo", "Says it.");
    said["outputSchema"] = schema.clone();
    TestHost::trusting(move |message| match message["method"].as_str() {
        Some("tools/list") => vec![ServerAct::Answer(json!({ "tools": [said] }))],
        Some("tools/call") => vec![ServerAct::Answer(result.clone())],
        _ => Vec::new(),
    })
}

// F123: a result that violates the output schema is a failure.
#[tokio::test]
async fn result_must_match_the_output_schema() {
    let schema = json!({
        "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"],
    });
    let text = json!([{ "type": "text", "text": "a is 1" }]);
    for (structured, is_error, expected) in [
        (Some(json!({ "a": 1 })), false, Ok("a is 1")),
        (Some(json!({ "a": "no" })), false, Err("`/a` of its structured result violates `type`")),
        (None, false, Err("it returned no structured result, although it has an output schema")),
        (None, true, Err("a is 1")),
        (Some(json!({ "a": 2 })), true, Err("a is 1")),
    ] {
        let mut result = json!({ "content": text, "isError": is_error });
        if let Some(structured) = &structured {
            result["structuredContent"] = structured.clone();
        }
        let setting = promising(&schema, result);
        setting.connect().await;
        let outcome = setting.call("echo", "{}").await;
        match (&outcome.result, expected) {
            (Ok(output), Ok(words)) => {
                assert_eq!((output.as_text(), output.to_structured()), (words, structured));
            }
            (Err(error), Err(words)) => {
                assert!(error.message().contains(words), "{error}");
                assert!(error.message().ends_with("a is 1"), "what it said is kept: {error}");
                assert_eq!(error.message().starts_with("[PROTOCOL]"), !is_error, "{error}");
                let kept = structured.filter(|value| value["a"].is_i64());
                assert_eq!(error.output().unwrap().to_structured(), kept, "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn output_schema_may_be_of_any_type() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let setting = promising(&list, json!({ "content": [], "structuredContent": [1, 2] }));
    assert_eq!(setting.connect().await.warnings, [""; 0]);
    let view = setting.pipeline.toolset().view();
    let output = view.definition("mcp__s__echo").unwrap().output.clone();
    assert_eq!(output.unwrap().to_value(), list);
    assert_eq!(setting.call("echo", "{}").await.text(), "[1,2]");

    // A failed call need not match the schema; then only the host gets the value.
    let value = json!({ "why": 2 });
    let failed = json!({ "content": [], "structuredContent": value, "isError": true });
    let setting = promising(&list, failed);
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.output().unwrap().to_structured(), None);
    assert_eq!(error.message(), r#"{"why":2}"#);

    // Nor is the value passed on as structured.
    let broken = json!({ "content": [], "structuredContent": value });
    let setting = promising(&list, broken);
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.output().unwrap().to_structured(), None);
    assert!(error.message().ends_with(r#"{"why":2}"#), "{error}");

    let elsewhere = json!({ "$ref": "https://example.com/x" });
    let setting = promising(&elsewhere, json!({ "content": [] }));
    let warnings = setting.connect().await.warnings;
    assert!(warnings[0].starts_with("echo: its output schema is left out: "), "{warnings:?}");
    assert!(setting.call("echo", "{}").await.result.is_ok());
}

// F121
#[tokio::test]
async fn rules_apply_to_foreign_tools() {
    let deny = |text| Rule::parse(Action::Deny, text).unwrap();
    for text in ["mcp__s__*", "mcp(s/*)", "mcp", "mcp__s__echo"] {
        let setting = TestHost::trusting(echo);
        setting.connect().await;
        let rules = setting.pipeline.toolset().view().rules().clone();
        setting.pipeline.set_rules(rules.merged_with(&tool_sdk_core::Ruleset::new([deny(text)])));
        let error = setting.call("echo", "{}").await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{text}");
        assert!(setting.server.heard("tools/call").is_empty());
    }
}

// F121
#[tokio::test]
async fn long_result_is_truncated_and_stored() {
    let folder = tempfile::tempdir().unwrap();
    let text = "line of text\n".repeat(1 << 16);
    let long = json!({ "content": [{ "type": "text", "text": text }] });
    let rules = ["mcp", "mcp_definition"].map(|it| Rule::parse(Action::Allow, it).unwrap());
    let pipeline = Pipeline::new(Registry::default()).rules(rules).output_dir(folder.path());
    let script = ScriptedServer::new(calls(move |_| vec![ServerAct::Answer(long.clone())]));
    let setting = TestHost::with_server(pipeline, script);
    setting.connect().await;
    let outcome = setting.call("echo", "{}").await;
    let cut = outcome.truncation().unwrap();
    let path = cut.full_output_path.as_ref().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().len(), 13 << 16);
    assert!(outcome.text().len() < 64 << 10);
}

// F122: at once; the paused clock advances only while every task waits.
#[tokio::test(start_paused = true)]
async fn aborted_call_is_cancelled_on_the_server() {
    let setting = TestHost::trusting(calls(|_| {
        vec![ServerAct::Say(json!({
            "method": "notifications/message", "params": { "level": "info", "data": "busy" },
        }))]
    }));
    setting.connect().await;
    let stop = CancellationToken::new();
    let call = Call::new("mcp__s__echo", "{}").cancelled_by(stop.clone());
    let session = Session::default();
    let (outcome, aborted) = tokio::join!(setting.pipeline.call(&session, call), async {
        setting.server.until_heard("tools/call").await;
        stop.cancel();
        tokio::time::Instant::now()
    });
    assert!(aborted.elapsed() < Duration::from_millis(200), "{:?}", aborted.elapsed());
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    setting.server.until_heard("notifications/cancelled").await;
    let called = &setting.server.heard("tools/call")[0];
    let cancelled = &setting.server.heard("notifications/cancelled")[0];
    assert_eq!(cancelled["params"]["requestId"], called["id"]);
}

// F43
#[tokio::test]
async fn progress_is_reported_and_restarts_the_timeout() {
    let step = |n| {
        json!({
            "method": "notifications/progress",
            "params": { "progressToken": "TOKEN", "progress": n, "total": 2, "message": "busy" },
        })
    };
    let setting = TestHost::trusting(calls(move |_| {
        vec![
            ServerAct::Say(step(1)),
            ServerAct::Say(step(2)),
            ServerAct::Answer(json!({ "content": [] })),
        ]
    }));
    setting.connect().await;
    let mut events = setting.pipeline.subscribe();
    setting.call("echo", "{}").await.result.unwrap();
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        match event.kind {
            EventKind::Progress { done, total, message } => told.push((done, total, message)),
            EventKind::Completed { .. } => break,
            _ => {}
        }
    }
    assert_eq!(told, [1, 2].map(|done| (done, Some(2), "busy".to_owned())));
}

// F43: steps are whole numbers here; fractions are scaled.
#[tokio::test]
async fn fractional_progress_is_scaled() {
    let step = |done: f64, total: f64| {
        let params = json!({ "progressToken": "TOKEN", "progress": done, "total": total });
        ServerAct::Say(json!({ "method": "notifications/progress", "params": params }))
    };
    let setting = TestHost::trusting(calls(move |_| {
        let steps = [step(0.0, 1.0), step(0.25, 1.0), step(1.0, 1.0)];
        [&steps[..], &[ServerAct::Answer(json!({ "content": [] }))]].concat()
    }));
    setting.connect().await;
    let mut events = setting.pipeline.subscribe();
    setting.call("echo", "{}").await.result.unwrap();
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        match event.kind {
            EventKind::Progress { done, total, .. } => told.push((done, total)),
            EventKind::Completed { .. } => break,
            _ => {}
        }
    }
    assert_eq!(told, [(0, Some(1)), (250, Some(1000)), (1000, Some(1000))]);
}

/// A call that the server received and did not answer, and the received message.
async fn unanswered() -> (Arc<TestHost>, JoinHandle<Outcome>, Value) {
    let setting = Arc::new(TestHost::trusting(calls(|_| vec![ServerAct::Write(Vec::new())])));
    setting.connect().await;
    let call = tokio::spawn({
        let setting = Arc::clone(&setting);
        async move { setting.call("echo", "{}").await }
    });
    setting.server.until_heard("tools/call").await;
    let call_of = setting.server.heard("tools/call").remove(0);
    (setting, call, call_of)
}

/// Sends a progress notification.
fn tell(setting: &TestHost, call_of: &Value, done: u32) {
    setting.server.say(json!({
        "jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": call_of["params"]["_meta"]["progressToken"], "progress": done,
        },
    }));
}

// F43: progress restarts the timeout.
#[tokio::test(start_paused = true)]
async fn progress_restarts_the_timeout() {
    let (setting, call, call_of) = unanswered().await;
    for done in 1..=3 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        tell(&setting, &call_of, done);
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!call.is_finished(), "sixteen seconds, of which never five in silence");
    setting.server.say(json!({
        "jsonrpc": "2.0", "id": call_of["id"], "result": { "content": [] },
    }));
    assert!(call.await.unwrap().result.is_ok());
}

// F43, F123: a call ends after an hour even if it reports progress, with the same message.
#[tokio::test(start_paused = true)]
async fn call_ends_after_an_hour_of_progress() {
    let (setting, call, call_of) = unanswered().await;
    for done in 1..=1000 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(done > 800 || !call.is_finished(), "{done}");
        tell(&setting, &call_of, done);
    }
    let error = call.await.unwrap().result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().starts_with("[TIMEOUT] server `s`, tool `echo`"), "{error}");
    setting.server.until_heard("notifications/cancelled").await;
}

// F43: a silent call times out.
#[tokio::test(start_paused = true)]
async fn silent_call_times_out() {
    let setting = TestHost::trusting(calls(|_| vec![ServerAct::Write(Vec::new())]));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().starts_with("[TIMEOUT] server `s`, tool `echo`"), "{error}");
    setting.server.until_heard("notifications/cancelled").await;
}

#[tokio::test]
async fn list_is_paginated_and_stops_at_a_repeated_cursor() {
    let setting = TestHost::trusting(|message| match message["method"].as_str() {
        Some("tools/list") => match message["params"]["cursor"].as_str() {
            None => {
                vec![ServerAct::Answer(json!({ "tools": [tool("a", "A.")], "nextCursor": "2" }))]
            }
            Some(_) => {
                vec![ServerAct::Answer(json!({ "tools": [tool("b", "B.")], "nextCursor": "2" }))]
            }
        },
        _ => Vec::new(),
    });
    assert_eq!(setting.connect().await.tools, ["mcp__s__a", "mcp__s__b"]);
    assert_eq!(setting.server.heard("tools/list").len(), 2);
}

// An invalid entry costs only itself.
#[tokio::test]
async fn invalid_entry_does_not_affect_the_others() {
    let list = json!({ "tools": [
        tool("good", "G."),
        { "name": "bare" },
        { "name": 5, "inputSchema": {} },
        7,
        tool("fine", "F."),
    ] });
    let act = move |message: &Value| match message["method"].as_str() {
        Some("tools/list") => vec![ServerAct::Answer(list.clone())],
        _ => Vec::new(),
    };
    let status = TestHost::trusting(act).connect().await;
    assert_eq!(status.tools, ["mcp__s__good", "mcp__s__fine"]);
    assert_eq!(status.warnings.len(), 3, "{:?}", status.warnings);
    assert!(status.warnings[0].starts_with("bare: left out, "), "{:?}", status.warnings);
}

#[tokio::test]
async fn list_stops_after_1000_pages() {
    let page = AtomicUsize::new(0);
    let setting = TestHost::trusting(move |message| match message["method"].as_str() {
        Some("tools/list") => {
            let next = page.fetch_add(1, Ordering::Relaxed).to_string();
            vec![ServerAct::Answer(json!({ "tools": [], "nextCursor": next }))]
        }
        _ => Vec::new(),
    });
    assert_eq!(
        setting.connect().await.warnings,
        ["only the first 1000 pages of its list are used"]
    );
    assert_eq!(setting.server.heard("tools/list").len(), 1000);
}

#[tokio::test]
async fn list_changed_notification_refreshes_the_tools() {
    let changed = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&changed);
    let setting = TestHost::trusting(move |message| match message["method"].as_str() {
        Some("tools/list") if now.load(Ordering::Relaxed) => {
            vec![ServerAct::Answer(json!({ "tools": [tool("b", "B.")] }))]
        }
        _ => echo(message),
    });
    setting.connect().await;
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    changed.store(true, Ordering::Relaxed);
    setting.server.say(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    changes.changed().await.unwrap();
    assert_eq!(setting.tools(), ["mcp__s__b"]);
    assert!(setting.servers.remove("s") && setting.tools().is_empty());
}

// F120
#[tokio::test]
async fn host_can_provide_a_connection() {
    use crate::client::{RemoteCall, RemoteConnection, RemoteFuture, RemoteResult, RemoteTool};

    #[derive(Default)]
    struct Own(Mutex<Option<CancellationToken>>);
    impl RemoteConnection for Own {
        fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
            Box::pin(async { Ok(vec![RemoteTool::new("raw.name", json!({ "type": "object" }))]) })
        }
        fn call_tool<'a>(&'a self, call: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
            let seen = format!("{} {} {:?}", call.server, call.tool, call.arguments);
            let waits = call.arguments.contains_key("wait");
            *self.0.lock().unwrap() = Some(call.cancel.clone());
            Box::pin(async move {
                assert!(!call.cancel.is_cancelled());
                if waits {
                    std::future::pending::<()>().await;
                }
                Ok(RemoteResult::text(seen))
            })
        }
    }
    let rules = ["mcp", "mcp_definition"].map(|it| Rule::parse(Action::Allow, it).unwrap());
    let pipeline = Pipeline::new(Registry::default()).rules(rules);
    let upstreams = ServerManager::for_pipeline(&pipeline);
    let own = Arc::new(Own::default());
    let shared = Arc::clone(&own);
    let reach = TransportConfig::custom(move || {
        let own = Arc::clone(&shared);
        async { Ok(own as Arc<dyn RemoteConnection>) }
    });
    upstreams.add(ServerConfig::new("own", reach).unwrap()).unwrap();
    upstreams.connect("own").await.unwrap();
    let call = Call::new("mcp__own__raw_name", r#"{"n": 1}"#);
    let outcome = pipeline.call(&Session::default(), call).await;
    assert_eq!(outcome.text(), "own raw.name {\"n\": Number(1)}");

    // The connection sees the cancellation, although the caller stopped waiting.
    let stop = CancellationToken::new();
    let call = Call::new("mcp__own__raw_name", r#"{"wait": 1}"#).cancelled_by(stop.clone());
    *own.0.lock().unwrap() = None;
    let session = Session::default();
    let cancel = || own.0.lock().unwrap().clone();
    let (outcome, ()) = tokio::join!(pipeline.call(&session, call), async {
        while cancel().is_none() {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    });
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    assert!(cancel().unwrap().is_cancelled());
}

// F105: a tool for user interfaces is not shown to models.
#[tokio::test]
async fn app_only_tools_are_hidden_from_models() {
    let ui = |name: &str, meta: Value| {
        let mut tool = tool(name, "Shows it.");
        tool["_meta"] = json!({ "ui": meta });
        tool
    };
    let tools = [
        ui("both", json!({ "visibility": ["model", "app"], "resourceUri": "ui://x" })),
        ui("plain", json!({ "resourceUri": "ui://x" })),
        ui("app", json!({ "visibility": ["app"] })),
        ui("nobody", json!({ "visibility": [] })),
        ui("odd", json!({ "visibility": 3 })),
    ];
    let listed = json!({ "tools": tools });
    let setting = TestHost::trusting(move |message| match message["method"].as_str() {
        Some("tools/list") => vec![ServerAct::Answer(listed.clone())],
        _ => echo(message),
    });
    let status = setting.connect().await;
    assert_eq!(status.tools, ["mcp__s__both", "mcp__s__plain"]);
    assert_eq!(setting.tools(), status.tools);
    for hidden in ["app", "nobody", "odd"] {
        let error = setting.call(hidden, "{}").await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{hidden}");
    }
    assert!(setting.server.heard("tools/call").is_empty());
}

// MC1
#[tokio::test]
async fn tools_with_invalid_names_are_left_out() {
    let setting = TestHost::trusting(|message| match message["method"].as_str() {
        Some("tools/list") => vec![ServerAct::Answer(json!({ "tools": [
            tool("good", "Good."), tool("good", "Again."), tool("bad name", "Bad."),
            { "name": "ui", "inputSchema": { "type": "object" },
              "_meta": { "ui": { "visibility": ["app"] } } },
            { "name": "odd", "inputSchema": { "type": "object", "$ref": "https://a/b" } },
        ] }))],
        _ => Vec::new(),
    });
    let status = setting.connect().await;
    assert_eq!(status.tools, ["mcp__s__good"]);
    assert_eq!(status.warnings.len(), 3, "{:?}", status.warnings);
    let again = setting.servers.add(setting.server_config("s")).unwrap_err();
    assert!(again.to_string().contains("same name"), "{again}");
}
