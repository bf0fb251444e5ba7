//! Fault 10: misbehaving servers.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tool_sdk_core::{ErrorKind, EventKind};

use super::*;
use crate::client::{RemoteCall, RemoteConnection, RemoteFuture, RemoteResult, RemoteTool};

/// Returns the error of a call that the server handles with `act`.
async fn called(
    act: impl Fn(&Value) -> Vec<ServerAct> + Send + Sync + 'static,
) -> (ErrorKind, String) {
    let setting = TestHost::trusting(calls(act));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(setting.server.heard("tools/call").len(), 1, "nothing is sent twice");
    (error.kind(), error.to_string())
}

// fault 10: during a call, and within a message.
#[tokio::test]
async fn disconnect_fails_running_calls() {
    let half = br#"{"jsonrpc":"2.0","id":1,"res"#.to_vec();
    for act in [vec![ServerAct::Leave], vec![ServerAct::Write(half), ServerAct::Leave]] {
        let (kind, words) = called(move |_| act.clone()).await;
        assert_eq!(kind, ErrorKind::Unavailable, "{words}");
        assert!(words.starts_with("[CONNECTION] server `s`, tool `echo`"), "{words}");
    }
}

#[tokio::test]
async fn oversized_message_ends_the_connection() {
    let (kind, words) = called(|_| vec![ServerAct::Write(vec![b'x'; 5 << 20])]).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(words.contains("more than 4194304 bytes"), "{words}");
}

// Servers of 2025-03-26 may send several messages in one line.
#[tokio::test]
async fn batch_is_split_into_messages() {
    let setting = TestHost::trusting(calls(|message| {
        let list = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} });
        let answer = json!({
            "jsonrpc": "2.0", "id": message["id"],
            "result": { "content": [{ "type": "text", "text": "heard" }] },
        });
        vec![ServerAct::Write(format!("{}\n", json!([5, [], list, answer])).into_bytes())]
    }));
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "heard");
    let (kind, words) =
        called(|_| vec![ServerAct::Write([&b"["[..], &b"0,".repeat(100), b"0]\n"].concat())]).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(words.contains("more than 100 messages at once"), "{words}");
}

// A response that cannot be parsed fails the call at once, not after the timeout.
#[tokio::test]
async fn unreadable_response_is_a_protocol_error() {
    // A number of that size is not a valid result.
    let text = r#""result":{"content":[{"type":"text","text":1e999}]}"#;
    for answer in [r#""error":"boom""#, text, ""] {
        let (kind, words) = called(move |message| {
            let id = &message["id"];
            let members = [r#""jsonrpc":"2.0""#, &format!(r#""id":{id}"#), answer];
            let members = members.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>();
            vec![ServerAct::Write(format!("{{{}}}\n", members.join(",")).into_bytes())]
        })
        .await;
        assert_eq!(kind, ErrorKind::Failed, "{words}");
        assert!(words.contains("[PROTOCOL]") && words.contains("cannot be parsed"), "{words}");
        assert!(!words.contains("returned an error"), "{words}");
    }
}

// Unknown members of a newer server are passed on.
#[tokio::test]
async fn result_with_unknown_members_is_accepted() {
    let setting = TestHost::trusting(calls(|_| {
        vec![ServerAct::Answer(json!({ "content": [
            { "type": "hologram", "x": 1 }, { "type": "text", "text": "and words" },
        ] }))]
    }));
    setting.connect().await;
    let text = setting.call("echo", "{}").await.text().into_owned();
    assert_eq!(text, "{\"type\":\"hologram\",\"x\":1}\nand words");
}

// fault 10: notifications without a listener cost nothing but their bytes.
#[tokio::test]
async fn flood_of_notifications_is_cheap() {
    let setting = TestHost::trusting(calls(|message| {
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": message["params"]["_meta"]["progressToken"], "progress": 1,
        } });
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {
            "level": "info", "data": "x",
        } });
        let flood = format!("{told}\n{log}\n").repeat(2_000).into_bytes();
        [vec![ServerAct::Write(flood)], echo(message)].concat()
    }));
    setting.connect().await;
    let most = Arc::new(AtomicUsize::new(0));
    let (seen, over) = (Arc::clone(&most), Arc::new(AtomicBool::new(false)));
    let done = Arc::clone(&over);
    let counting = tokio::spawn(async move {
        while !done.load(Ordering::Relaxed) {
            let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            seen.fetch_max(tasks, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(setting.call("echo", r#"{"text": "still"}"#).await.text(), "still");
    over.store(true, Ordering::Relaxed);
    counting.await.unwrap();
    let most = most.load(Ordering::Relaxed);
    assert!(most < 100, "{most} tasks at once");
}

// fault 10
#[tokio::test(start_paused = true)]
async fn list_is_limited_in_bytes() {
    let setting = TestHost::trusting(move |message| {
        if message["method"] != "tools/list" {
            return echo(message);
        }
        let page: u64 = message["params"]["cursor"].as_str().unwrap_or("0").parse().unwrap();
        let mut tools = vec![json!(0); 10_000];
        tools[0] = tool(&format!("t{page}"), "A tool.");
        vec![ServerAct::Answer(json!({ "tools": tools, "nextCursor": (page + 1).to_string() }))]
    });
    let status = setting.connect().await;
    // Invalid entries count as well.
    assert_eq!((status.tools.len(), setting.server.heard("tools/list").len()), (4, 4));
    let told =
        |warning: &String| warning.contains("only the first 16777216 bytes of its list are used");
    assert!(status.warnings.iter().any(told), "{:?}", status.warnings);
}

// fault 10: a list that is short as text but expensive in memory is cut as well.
#[tokio::test]
async fn list_is_limited_in_schema_parts() {
    let setting = TestHost::trusting(move |message| {
        if message["method"] != "tools/list" {
            return echo(message);
        }
        let page: u64 = message["params"]["cursor"].as_str().unwrap_or("0").parse().unwrap();
        let mut much = tool(&format!("t{page}"), "A tool.");
        much["outputSchema"] = json!({ "anyOf": vec![json!({}); 30_000] });
        vec![ServerAct::Answer(json!({ "tools": [much], "nextCursor": (page + 1).to_string() }))]
    });
    let status = setting.connect().await;
    assert_eq!((status.tools.len(), setting.server.heard("tools/list").len()), (3, 4));
    let told =
        |warning: &String| warning.contains("only the first 100000 parts of its list are used");
    assert!(status.warnings.iter().any(told), "{:?}", status.warnings);
}

// The startup error has the server's standard error and the right class.
#[tokio::test]
async fn startup_error_has_the_cause() {
    for (act, class, words) in [
        (
            ServerAct::Refuse(-32000, "out of paper"),
            crate::client::ErrorClass::Protocol,
            "out of paper",
        ),
        (ServerAct::Leave, crate::client::ErrorClass::Connection, "exited during startup"),
    ] {
        let setting = TestHost::trusting(move |message| match message["method"].as_str() {
            Some("initialize") => vec![act.clone()],
            _ => echo(message),
        });
        let error = setting.servers.connect("s").await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn error_response_is_a_failure() {
    let (kind, words) = called(|_| vec![ServerAct::Refuse(-32603, "out of paper")]).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(words.contains("[PROTOCOL]") && words.contains("out of paper"), "{words}");
    let asks = json!({ "resultType": "input_required", "inputRequests": { "a": {
        "method": "elicitation/create",
        "params": { "message": "Your password?", "requestedSchema": { "type": "object" } },
    } } });
    let (kind, words) = called(move |_| vec![ServerAct::Answer(asks.clone())]).await;
    assert_eq!(kind, ErrorKind::Failed, "{words}");
    let (kind, _) = called(|_| vec![ServerAct::Answer(json!({ "tools": [] }))]).await;
    assert_eq!(kind, ErrorKind::Failed);
}

// fault 10, MC9: wrong ids, and duplicate responses.
#[tokio::test]
async fn unrequested_and_duplicate_responses_are_dropped() {
    let forged = |id: Value, text| {
        let content = json!({ "content": [{ "type": "text", "text": text }] });
        ServerAct::Say(json!({ "id": id, "result": content }))
    };
    let setting = TestHost::trusting(calls(move |_| {
        let mut acts: Vec<ServerAct> = (0..8).map(|id| forged(id.into(), "forged")).collect();
        acts.push(forged("ID".into(), "true"));
        acts.push(forged("ID".into(), "again"));
        acts
    }));
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "true");
    assert_eq!(setting.call("echo", "{}").await.text(), "true");
    let ids = setting.server.heard("tools/call");
    assert!(ids.iter().all(|message| message["id"].as_i64().unwrap() > 1000), "{ids:?}");
}

// fault 10: floods, invalid UTF-8.
#[tokio::test]
async fn survives_noise_and_floods() {
    let noise = b"not json\n\xff\xfe\n{\"jsonrpc\":\"2.0\"}\n[]\n".to_vec();
    let flood = ServerAct::Say(json!({ "method": "notifications/tools/list_changed" }));
    let setting = TestHost::trusting(calls(move |message| {
        let mut acts = vec![ServerAct::Write(noise.clone())];
        acts.extend(std::iter::repeat_n(flood.clone(), 2000));
        acts.extend(echo(message));
        acts
    }));
    setting.connect().await;
    assert_eq!(setting.call("echo", r#"{"text": "still"}"#).await.text(), "still");
    let lists = setting.server.heard("tools/list").len();
    assert!(lists < 10, "{lists} lists were asked for");
}

// fault 10: open requests are bounded.
#[tokio::test]
async fn flood_of_requests_ends_the_connection_and_a_burst_does_not() {
    let ping = |id: usize| ServerAct::Say(json!({ "id": id, "method": "ping" }));
    let burst = move |message: &Value| {
        let mut bytes = Vec::new();
        for id in 0..500 {
            let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            bytes.extend(format!("{ping}\n").into_bytes());
        }
        [vec![ServerAct::Write(bytes)], echo(message)].concat()
    };
    let setting = TestHost::trusting(calls(burst));
    setting.connect().await;
    assert_eq!(setting.call("echo", r#"{"text": "still"}"#).await.text(), "still");

    // The server does not read the responses.
    let (kind, words) = called(move |_| (0..20_000).map(ping).collect()).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(words.contains("more than 64 requests at once"), "{words}");
}

// fault 10
#[test]
fn runtime_may_end_during_a_call() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let setting = TestHost::trusting(calls(|_| vec![ServerAct::Write(Vec::new())]));
    let setting = Arc::new(setting);
    let calling = Arc::clone(&setting);
    runtime.block_on(async {
        setting.connect().await;
        tokio::spawn(async move { calling.call("echo", "{}").await });
        setting.server.until_heard("tools/call").await;
    });
    drop(runtime);
}

// fault 10, MC5: attempts to connect are limited.
#[tokio::test(start_paused = true)]
async fn connection_attempts_are_limited() {
    let setting = TestHost::trusting(|_| vec![ServerAct::Leave]);
    for _ in 0..5 {
        assert!(setting.servers.connect("s").await.is_err());
    }
    let begun = setting.server.begun();
    let cause = setting.servers.status("s").unwrap().last_error;
    for _ in 0..3 {
        let error = setting.servers.connect("s").await.unwrap_err();
        assert_eq!(error.message.matches("the next attempt is possible").count(), 1, "{error}");
    }
    // The error still has the original cause.
    assert_eq!(setting.servers.status("s").unwrap().last_error, cause);
    assert_eq!(setting.server.begun(), begun);
    tokio::time::advance(Duration::from_secs(301)).await;
    let error = setting.servers.connect("s").await.unwrap_err();
    assert!(!error.message.contains("the next attempt is possible"), "{error}");
    assert!(setting.servers.status("s").unwrap().last_error.is_some());
}

// An attempt that the host cancels is not counted.
#[tokio::test(start_paused = true)]
async fn cancelled_attempt_is_not_counted() {
    let is_well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_well);
    let setting = TestHost::trusting(move |message| match answers.load(Ordering::Relaxed) {
        true => echo(message),
        false => vec![ServerAct::Write(Vec::new())],
    });
    for _ in 0..10 {
        let connecting = setting.servers.connect("s");
        assert!(tokio::time::timeout(Duration::from_secs(1), connecting).await.is_err());
    }
    assert_eq!(setting.server.begun(), 10);
    // A startup timeout is counted.
    let error = setting.servers.connect("s").await.unwrap_err();
    assert_eq!(error.class, crate::client::ErrorClass::Timeout);
    is_well.store(true, Ordering::Relaxed);
    setting.connect().await;
}

// fault 10: a crash during a call, and the next call.
#[tokio::test]
async fn lost_connection_is_reopened() {
    let setting = TestHost::trusting(calls(|message| match message["params"]["arguments"]["text"]
        .as_str()
    {
        Some("die") => vec![ServerAct::Leave],
        _ => echo(message),
    }));
    setting.connect().await;
    assert!(setting.call("echo", r#"{"text": "die"}"#).await.result.is_err());
    assert_eq!(setting.call("echo", r#"{"text": "back"}"#).await.text(), "back");
    assert_eq!(setting.server.begun(), 2);
}

// MC5: the error has the reason of the disconnect, not that of an earlier failed call.
#[tokio::test(start_paused = true)]
async fn failed_call_is_not_the_disconnect_reason() {
    let setting = TestHost::trusting(calls(|message| match message["params"]["arguments"]["text"]
        .as_str()
    {
        Some("fail") => vec![ServerAct::Refuse(-32000, "out of paper")],
        _ => [echo(message), vec![ServerAct::Leave]].concat(),
    }));
    setting.connect().await;
    let error = setting.call("echo", r#"{"text": "fail"}"#).await.result.unwrap_err();
    assert!(error.message().contains("out of paper"), "{error}");
    for _ in 0..100 {
        if let Err(error) = setting.call("echo", "{}").await.result
            && error.message().contains("the next attempt is possible")
        {
            assert!(!error.message().contains("out of paper"), "{error}");
            return;
        }
    }
    panic!("attempts were never limited");
}

// fault 10: hangs.
#[tokio::test]
async fn hanging_startup_times_out() {
    let setting = TestHost::trusting(|_| vec![ServerAct::Write(Vec::new())]);
    setting.servers.remove("s");
    let slow = setting.server_config("slow").startup_timeout(Duration::from_millis(20));
    setting.servers.add(slow).unwrap();
    let failed = setting.servers.connect_all().await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].1.class, crate::client::ErrorClass::Timeout);
}

// fault 10: older servers that ignore unknown methods.
#[tokio::test(start_paused = true)]
async fn ignored_discover_request_costs_two_seconds() {
    let setting = TestHost::trusting(|message| match message["method"].as_str() {
        Some("server/discover") => vec![ServerAct::Write(Vec::new())],
        // The late response is dropped.
        Some("initialize") => vec![ServerAct::Say(json!({ "id": 7, "result": {} }))],
        _ => echo(message),
    });
    let begun = tokio::time::Instant::now();
    let (connected, ()) = tokio::join!(setting.servers.connect("s"), async {
        setting.server.until_heard("initialize").await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        let id = &setting.server.heard("initialize")[0]["id"];
        setting.server.say(json!({ "jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "script", "version": "1" },
        } }));
    });
    assert_eq!(connected.unwrap().tools, ["mcp__s__echo"]);
}

// fault 10: a listing that hangs times out, and the next one is used.
#[tokio::test(start_paused = true)]
async fn hanging_listing_times_out() {
    let lists = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lists);
    let setting = TestHost::trusting(move |message| {
        if message["method"] != "tools/list" {
            return echo(message);
        }
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => echo(message),
            1 | 3 => vec![ServerAct::Write(Vec::new())],
            _ => vec![ServerAct::Answer(json!({ "tools": [tool("other", "Other.")] }))],
        }
    });
    setting.connect().await;
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    setting.server.say(changed.clone());
    while setting.servers.status("s").unwrap().last_error.is_none() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    setting.server.say(changed);
    changes.changed().await.unwrap();
    assert_eq!(setting.tools(), ["mcp__s__other"]);
    let error = setting.servers.list_tools("s").await.unwrap_err();
    assert_eq!(error.class, crate::client::ErrorClass::Timeout);
    assert!(setting.servers.list_tools("s").await.is_ok());
}

/// A connection whose second listing returns only after it was replaced.
struct Late {
    upstreams: ServerManager,
    lists: AtomicUsize,
    told: Arc<Notify>,
}

impl RemoteConnection for Late {
    fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
        Box::pin(async {
            if self.lists.fetch_add(1, Ordering::Relaxed) == 1 {
                self.upstreams.connect("s").await?;
                self.told.notify_one();
            }
            Ok(vec![RemoteTool::new("old", json!({ "type": "object" }))])
        })
    }

    fn call_tool<'a>(&'a self, _: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
        unreachable!("nothing is called")
    }

    fn tools_changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        match self.lists.load(Ordering::Relaxed) {
            1 => Box::pin(std::future::ready(())),
            _ => Box::pin(std::future::pending()),
        }
    }

    fn is_closed(&self) -> bool {
        self.lists.load(Ordering::Relaxed) > 1
    }
}

// fault 10: a late listing of an earlier connection is ignored.
#[tokio::test(start_paused = true)]
async fn late_listing_does_not_replace_a_newer_one() {
    let setting = TestHost::trusting(echo);
    setting.servers.remove("s");
    let told = Arc::new(Notify::new());
    let upstreams = setting.servers.clone();
    let late: Arc<dyn RemoteConnection> =
        Arc::new(Late { upstreams, lists: AtomicUsize::new(0), told: Arc::clone(&told) });
    let (script, count) = (Arc::clone(&setting.server), AtomicUsize::new(0));
    let reach = TransportConfig::custom(move || {
        let first = (count.fetch_add(1, Ordering::Relaxed) == 0).then(|| Arc::clone(&late));
        let script = Arc::clone(&script);
        async move {
            match first {
                Some(late) => Ok(late),
                None => script.serve(ClientFeatures::none()).await,
            }
        }
    });
    setting.servers.add(ServerConfig::new("s", reach).unwrap()).unwrap();
    assert_eq!(setting.connect().await.tools, ["mcp__s__old"]);
    let told = tokio::time::timeout(Duration::from_secs(60), told.notified());
    told.await.expect("the late list is told");
    // The paused clock advances only when every task waits.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(setting.tools(), ["mcp__s__echo"]);
    assert_eq!(setting.servers.status("s").unwrap().tools, ["mcp__s__echo"]);
}

// fault 10: the tools change while one of them runs.
#[tokio::test]
async fn tool_change_does_not_affect_a_running_call() {
    let changed = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&changed);
    let script = ScriptedServer::new(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            now.store(true, Ordering::Relaxed);
            // The response waits until the change was processed.
            vec![ServerAct::Say(json!({ "method": "notifications/tools/list_changed" }))]
        }
        Some("tools/list") if now.load(Ordering::Relaxed) => {
            vec![ServerAct::Answer(json!({ "tools": [tool("other", "Other.")] }))]
        }
        _ => echo(message),
    });
    let rules = ["mcp", "mcp_definition"].map(|it| Rule::parse(Action::Allow, it).unwrap());
    let setting = TestHost::with_server(Pipeline::new(Registry::default()).rules(rules), script);
    setting.connect().await;
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    changes.mark_unchanged();
    let (outcome, ()) = tokio::join!(setting.call("echo", "{}"), async {
        changes.changed().await.unwrap();
        assert_eq!(setting.tools(), ["mcp__s__other"]);
        let id = &setting.server.heard("tools/call")[0]["id"];
        let content = json!([{ "type": "text", "text": "done" }]);
        setting.server.say(json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } }));
    });
    assert_eq!(outcome.text(), "done");
    let gone = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

// fault 10: a misbehaving server does not affect the others.
#[tokio::test]
async fn misbehaving_server_does_not_affect_others() {
    let setting = TestHost::trusting(calls(|_| {
        let mut acts = vec![ServerAct::Write(vec![b'x'; 1 << 20])];
        acts.extend(std::iter::repeat_n(
            ServerAct::Say(json!({ "method": "notifications/tools/list_changed" })),
            1000,
        ));
        acts.push(ServerAct::Leave);
        acts
    }));
    let healthy = ScriptedServer::new(echo);
    let reach = TransportConfig::custom(move || Arc::clone(&healthy).serve(ClientFeatures::none()));
    setting.servers.add(ServerConfig::new("healthy", reach).unwrap()).unwrap();
    assert!(setting.servers.connect_all().await.is_empty());
    let call = Call::new("mcp__healthy__echo", r#"{"text": "well"}"#);
    let (bad, good) =
        tokio::join!(setting.call("echo", "{}"), setting.pipeline.call(&setting.session, call));
    assert!(bad.result.is_err());
    assert_eq!(good.text(), "well");
    assert!(setting.servers.status("healthy").unwrap().connected);
}

// F123: the message starts with the class, and the metadata has the parts.
#[tokio::test]
async fn failure_has_its_class_and_metadata() {
    for (act, class, label) in [
        (ServerAct::Leave, "connection_error", "[CONNECTION] "),
        (ServerAct::Refuse(-32000, "out of paper"), "unknown", "[PROTOCOL] "),
    ] {
        let setting = TestHost::trusting(calls(move |_| vec![act.clone()]));
        setting.connect().await;
        let mut events = setting.pipeline.subscribe();
        let error = setting.call("echo", "{}").await.result.unwrap_err();
        assert!(error.message().starts_with(label), "{error}");
        let told = loop {
            match events.recv().await.unwrap().kind {
                EventKind::Metadata { key, value } if key == "mcp_error" => break value,
                EventKind::Failed { .. } => panic!("nothing was told"),
                _ => {}
            }
        };
        assert_eq!(told["error_type"], class);
        assert_eq!((&told["server"], &told["tool"]), (&json!("s"), &json!("echo")));
        assert_eq!(told["is_error"], true);
        // F190: the outcome has the same facts.
        let output = error.output().unwrap();
        assert_eq!(output.title_text(), Some("s.echo"));
        assert_eq!(Some(&*told), output.metadata_map().cloned().map(Value::Object).as_ref());
        let original = told["original_error"].as_str().unwrap();
        assert!(error.message().ends_with(original), "{original}");
    }
}

#[tokio::test]
async fn server_removed_during_startup_has_no_tools() {
    let setting = TestHost::trusting(echo);
    setting.servers.remove("s");
    let (script, gate) = (Arc::clone(&setting.server), Arc::new(tokio::sync::Semaphore::new(0)));
    let shut = Arc::clone(&gate);
    let reach = TransportConfig::custom(move || {
        let (script, gate) = (Arc::clone(&script), Arc::clone(&shut));
        async move {
            gate.acquire().await.unwrap().forget();
            script.serve(ClientFeatures::none()).await
        }
    });
    setting.servers.add(ServerConfig::new("s", reach).unwrap()).unwrap();
    let upstreams = setting.servers.clone();
    let connecting = tokio::spawn(async move { upstreams.connect("s").await });
    tokio::task::yield_now().await;
    setting.servers.remove("s");
    gate.add_permits(1);
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("was removed"), "{error}");
    assert_eq!(setting.tools(), Vec::<String>::new());
}
