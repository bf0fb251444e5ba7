//! Tool lists and calls, in both eras.

use std::time::Duration;

use tool_sdk_core::{Coercion, EventKind, Icon, ToolDisplay};
use tool_sdk_mcp::{ResourceDefinition, ResourceProvider};

use super::http::{ADA, Served};
use super::*;

fn names(page: &Value) -> Vec<&str> {
    let tools = page["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

// F20, F129: the list is what the provider format says, in order.
#[tokio::test]
async fn lists_every_tool_in_order() {
    let server = server();
    let mut peer = Peer::legacy(&server, json!({})).await;
    let page = peer.request("tools/list", json!({})).await;
    let all = ["add", "fail", "list", "panic", "picture", "steps", "wait", "write"];
    assert_eq!(names(&page), all);
    let tools = &page["result"]["tools"];
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[7]["annotations"]["readOnlyHint"], false);
    let wrapped = json!({
        "type": "object",
        "properties": { "result": { "type": "array", "items": { "type": "integer" } } },
        "required": ["result"],
        "additionalProperties": false,
    });
    assert_eq!(tools[2]["outputSchema"], wrapped);

    let mut modern = Peer::modern(&server, json!({}));
    let page = modern.request("tools/list", json!({})).await;
    assert_eq!(names(&page), all);
    assert_eq!(page["result"]["tools"][2]["outputSchema"]["type"], "array");
    assert_eq!(page["result"]["cacheScope"], "private");
}

// What people read of a tool is what stands for it everywhere.
#[tokio::test]
async fn titles_and_icons_are_those_of_the_display() {
    let icon = Icon::new("https://example.com/look.svg").mime("image/svg+xml").size("any");
    let mut display = ToolDisplay::default();
    (display.name, display.icons) = (Some("Look".to_owned()), vec![icon]);
    let look = definition("look", RiskClass::Read).display(display.clone());
    let mut named = definition("named", RiskClass::Read).display(display);
    named.title = Some("Another".into());
    let said = |_: Value, _: Context| async { "done" };
    let tools = [look, named]
        .into_iter()
        .fold(Registry::builder(), |all, it| all.add(DynamicTool::new(it, said)));
    let server = Server::new(Pipeline::new(tools.build().unwrap()), Session::default());
    for mut peer in [Peer::legacy(&server, json!({})).await, Peer::modern(&server, json!({}))] {
        let tools = peer.request("tools/list", json!({})).await["result"]["tools"].take();
        assert_eq!((&tools[0]["title"], &tools[1]["title"]), (&json!("Look"), &json!("Another")));
        let icon = json!({
            "src": "https://example.com/look.svg", "mimeType": "image/svg+xml", "sizes": ["any"],
        });
        assert_eq!(tools[0]["icons"], json!([icon]));
    }
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let names_of_tools: Vec<String> = (0..1001).map(|n| format!("t{n:04}")).collect();
    let tool = |name: &String| {
        let mut definition = definition("x", RiskClass::Read);
        definition.name = ToolName::new(name.clone()).unwrap();
        definition.description = "Does it. ".repeat(300).into();
        DynamicTool::new(definition, |_: Value, _: Context| async { "done" })
    };
    let tools = names_of_tools.iter().map(tool);
    let registry = tools.fold(Registry::builder(), |all, tool| all.add(tool)).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    let (mut listed, mut params) = (Vec::new(), json!({}));
    for _ in 0..3 {
        let page = peer.request("tools/list", params).await;
        listed.extend(names(&page).into_iter().map(str::to_owned));
        params = json!({ "cursor": page["result"]["nextCursor"] });
    }
    assert_eq!(listed, names_of_tools);
    assert!(params["cursor"].is_null());
    for cursor in ["no such cursor", "t0500", "after:", "after: t0500"] {
        let wrong = peer.request("tools/list", json!({ "cursor": cursor })).await;
        assert_eq!(wrong["error"]["code"], -32602, "{cursor}");
    }
}

// Models in strict mode send `null` for an optional argument.
#[tokio::test]
async fn null_for_an_optional_argument_is_absent_and_noted() {
    let mut greet = definition("greet", RiskClass::Read);
    greet.parameters = schema(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "manner": { "type": "string" },
            "comment": { "type": ["string", "null"] },
        },
        "required": ["name"],
        "additionalProperties": false,
    }));
    let greet = DynamicTool::new(greet, |args: Value, _: Context| async move { args.to_string() });
    let pipeline = Pipeline::new(Registry::builder().add(greet).build().unwrap());
    let server = Server::new(pipeline.clone(), Session::default());
    for mut peer in [Peer::legacy(&server, json!({})).await, Peer::modern(&server, json!({}))] {
        let mut events = pipeline.subscribe();
        let sent = json!({ "name": "ada", "manner": null, "comment": null });
        let result = peer.call("greet", sent).await;
        assert_eq!(text(&result), r#"{"name":"ada","comment":null}"#);
        let notes = loop {
            if let EventKind::Pending { notes, .. } = events.recv().await.unwrap().kind {
                break notes;
            }
        };
        let [note] = &*notes else { panic!("{notes:?}") };
        assert_eq!((note.argument.as_str(), note.what), ("manner", Coercion::NullAsAbsent));
        let refused = peer.call("greet", json!({ "name": null })).await;
        assert_eq!(refused["isError"], true, "{refused}");
    }
}

// F132, F136
#[tokio::test]
async fn results_come_whole() {
    let server = server();
    let mut peer = Peer::legacy(&server, json!({})).await;
    let sum = peer.call("add", json!({ "a": 2, "b": 3 })).await;
    assert_eq!((text(&sum), &sum["structuredContent"]), ("{\"sum\":5}", &json!({ "sum": 5 })));
    let list = peer.call("list", json!({})).await;
    assert_eq!(list["structuredContent"], json!({ "result": [1, 2] }));
    let picture = peer.call("picture", json!({})).await;
    let image = json!([{ "type": "image", "data": "AQ==", "mimeType": "image/png" }]);
    assert_eq!(picture["content"], image);

    let mut modern = Peer::modern(&server, json!({}));
    let list = modern.call("list", json!({})).await;
    assert_eq!(
        (&list["structuredContent"], &list["resultType"]),
        (&json!([1, 2]), &json!("complete"))
    );
}

// F119: arguments are checked against the schema that was listed.
#[tokio::test]
async fn failures_are_results_and_unknown_tools_are_not() {
    let mut peer = Peer::legacy(&server(), json!({})).await;
    for (tool, arguments, words) in [
        ("fail", json!({}), "it changed\nhint: look again"),
        ("panic", json!({}), "the tool failed with a defect of its own"),
        ("add", json!({ "a": "two" }), "invalid arguments for `add`"),
        ("write", json!({}), "no approver is available; the rule `allow write` would allow it"),
    ] {
        let failed = peer.call(tool, arguments).await;
        assert_eq!(failed["isError"], true, "{tool}");
        assert!(text(&failed).contains(words), "{tool}: {}", text(&failed));
        assert!(!text(&failed).contains("a secret"));
    }
    let unknown = peer.request("tools/call", json!({ "name": "ad" })).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let message = unknown["error"]["message"].as_str().unwrap();
    assert_eq!(message, "there is no tool `ad`\nhint: did you mean `add`?");
}

#[tokio::test]
async fn a_peer_that_talks_nonsense_is_served_on() {
    let mut peer = Peer::legacy(&server(), json!({})).await;
    for nonsense in ["nonsense", "{", "", "[]", "{\"jsonrpc\": \"2.0\"}", "\u{0}"] {
        peer.send_line(nonsense).await;
    }
    let unknown = peer.request("no/such/method", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    // Also with parameters that would be none.
    for absent in [
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "completion/complete",
    ] {
        assert_eq!(peer.request(absent, json!({})).await["error"]["code"], -32601, "{absent}");
    }
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn progress_goes_to_those_who_want_it() {
    let mut peer = Peer::legacy(&server(), json!({})).await;
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "p" } });
    let answer = peer.request("tools/call", params).await;
    assert_eq!(text(&answer["result"]), "done");
    for step in 1..=3 {
        let told = peer.receive_method("notifications/progress").await;
        let expected = json!({
            "progressToken": "p", "progress": f64::from(step), "total": 3.0,
            "message": format!("step {step}"),
        });
        assert_eq!(told["params"], expected);
    }
    // The numbers are those of the tool; output counts as a fraction of a step.
    let told = peer.receive_method("notifications/progress").await;
    let expected = json!({ "progressToken": "p", "progress": 3.5, "message": "a part" });
    assert_eq!(told["params"], expected);
    peer.call("steps", json!({})).await;
    assert_eq!(peer.count_received("notifications/progress"), 0);
}

#[tokio::test]
async fn log_messages_have_the_wanted_level() {
    let mut peer = Peer::legacy(&server(), json!({})).await;
    peer.call("steps", json!({})).await;
    let told = peer.receive_method("notifications/message").await;
    let data = json!({ "kind": "found", "data": { "n": 3 } });
    assert_eq!(told["params"], json!({ "level": "info", "logger": "steps", "data": data }));
    for (level, messages) in [("error", 0), ("debug", 2)] {
        peer.request("logging/setLevel", json!({ "level": level })).await;
        peer.call("steps", json!({})).await;
        assert_eq!(peer.count_received("notifications/message"), messages, "{level}");
    }
    let mut modern = Peer::modern(&server(), json!({}));
    modern.call("steps", json!({})).await;
    assert_eq!(modern.count_received("notifications/message"), 0);
}

// F122
#[tokio::test]
async fn a_cancelled_call_ends_and_is_not_answered() {
    let seen = Arc::<Seen>::default();
    let server = Server::new(Pipeline::new(registry(&seen)), Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    let call = peer.send("tools/call", json!({ "name": "wait", "arguments": {} })).await;
    seen.started.notified().await;
    peer.notify("notifications/cancelled", json!({ "requestId": call })).await;
    seen.ended.notified().await;
    peer.request("ping", json!({})).await;
    let rest = peer.hang_up().await;
    assert!(rest.iter().all(|message| message["id"] != call), "{rest:?}");
}

// The id of a request is the same however it is spelt.
#[tokio::test]
async fn a_call_is_cancelled_under_another_spelling_of_its_id() {
    let seen = Arc::<Seen>::default();
    let server = Server::new(Pipeline::new(registry(&seen)), Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    let call = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"wait"}}"#;
    peer.send_line(call).await;
    seen.started.notified().await;
    let back = r#"{"method":"notifications/cancelled","params":{"requestId":"\u0061"}}"#;
    peer.send_line(&back.replacen('{', r#"{"jsonrpc":"2.0","#, 1)).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), seen.ended.notified());
    ended.await.expect("it is cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_hangs_up_cancels_what_does_not_end() {
    let seen = Arc::<Seen>::default();
    let server = Server::new(Pipeline::new(registry(&seen)), Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.send("tools/call", json!({ "name": "wait", "arguments": {} })).await;
    seen.started.notified().await;
    peer.hang_up().await;
    seen.ended.notified().await;
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let seen = Arc::<Seen>::default();
    let server = Server::new(Pipeline::new(registry(&seen)), Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.send("tools/call", json!({ "name": "wait", "arguments": {} })).await;
    seen.started.notified().await;
    let mut sent = Vec::new();
    for n in 0..10 {
        let params = json!({ "name": "add", "arguments": { "a": n, "b": n } });
        sent.push((peer.send("tools/call", params).await, 2 * n));
    }
    for (id, sum) in sent {
        let answer = peer.receive_response(id).await;
        assert_eq!(answer["result"]["structuredContent"]["sum"], sum);
    }
}

#[tokio::test]
async fn peers_hear_of_changes_that_they_would_see() {
    let pipeline = pipeline();
    let server = Server::new(pipeline.clone(), Session::default());
    let mut legacy = Peer::legacy(&server, json!({})).await;
    let mut modern = Peer::modern(&server, json!({}));
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    modern.send("subscriptions/listen", listen).await;
    modern.receive_method("notifications/subscriptions/acknowledged").await;
    // Both listen once they have answered something that came later.
    legacy.request("ping", json!({})).await;
    modern.request("tools/list", json!({})).await;

    pipeline.set_mode(tool_sdk_core::Mode::Auto);
    let late =
        DynamicTool::new(definition("late", RiskClass::Read), |_: Value, _: Context| async {
            "late"
        });
    pipeline.toolset().add(late).unwrap();
    legacy.receive_method("notifications/tools/list_changed").await;
    modern.receive_method("notifications/tools/list_changed").await;
    assert_eq!(text(&legacy.call("late", json!({})).await), "late");
    pipeline.toolset().remove("late");
    legacy.receive_method("notifications/tools/list_changed").await;
    assert_eq!(legacy.count_received("notifications/tools/list_changed"), 0);
}

/// Resources of which one changes whenever its name is sent.
struct Changing(tokio::sync::broadcast::Sender<String>);

impl ResourceProvider for Changing {
    async fn list(&self) -> Vec<ResourceDefinition> {
        Vec::new()
    }

    async fn read(&self, _: &str) -> Result<Option<Attachment>, ToolError> {
        Ok(None)
    }

    fn subscribe_updates(&self) -> Option<tokio::sync::broadcast::Receiver<String>> {
        Some(self.0.subscribe())
    }
}

// Who watches resources hears of those, in both eras, and who watches nothing else as well.
#[tokio::test]
async fn peers_hear_of_the_resources_that_they_watch() {
    let changed = tokio::sync::broadcast::channel(8).0;
    let pipeline = pipeline();
    let server = Server::new(pipeline.clone(), Session::default());
    let server = server.with_resources(Changing(changed.clone()));
    let mut legacy = Peer::legacy(&server, json!({})).await;
    legacy.request("resources/subscribe", json!({ "uri": "shelf://a" })).await;
    let mut modern = Peer::modern(&server, json!({}));
    let listen = json!({ "notifications": { "resourceSubscriptions": ["shelf://a"] } });
    modern.send("subscriptions/listen", listen).await;
    let accepted = modern.receive_method("notifications/subscriptions/acknowledged").await;
    let accepted = &accepted["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*accepted, json!(["shelf://a"]));
    modern.request("tools/list", json!({})).await;
    pipeline.toolset().remove("add");
    tokio::time::sleep(Duration::from_millis(50)).await;
    for uri in ["shelf://b", "shelf://a"] {
        changed.send(uri.to_owned()).unwrap();
    }
    for peer in [&mut legacy, &mut modern] {
        let told = peer.receive_method("notifications/resources/updated").await;
        assert_eq!(told["params"]["uri"], "shelf://a");
    }
}

#[tokio::test]
async fn a_last_line_needs_no_end() {
    let (mut ours, theirs) = tokio::io::duplex(1024);
    let (read, write) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move { server().serve(read, write).await });
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    tokio::io::AsyncWriteExt::write_all(&mut ours, hello.as_bytes()).await.unwrap();
    tokio::io::AsyncWriteExt::shutdown(&mut ours).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut ours, &mut answer).await.unwrap();
    assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    serving.await.unwrap().unwrap();
}

// Peers of a version that has no block of a kind are not sent one, whichever way it goes.
#[tokio::test]
async fn older_peers_are_sent_no_block_that_they_do_not_know() {
    let tool = |_: Value, _: Context| async {
        let link = Attachment::uri("text/html", "https://example.com/").with_name("home");
        Output::default().attach(Attachment::bytes("audio/wav", vec![1])).attach(link)
    };
    let tool = DynamicTool::new(definition("ring", RiskClass::Read), tool);
    let registry = Registry::builder().add(tool).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    for (version, expected) in [
        ("2024-11-05", ["resource", "text"]),
        ("2025-03-26", ["audio", "text"]),
        ("2025-06-18", ["audio", "resource_link"]),
    ] {
        let mut peer = Peer::legacy_version(version, &server, json!({})).await;
        let content = peer.call("ring", json!({})).await["content"].take();
        assert_eq!([&content[0]["type"], &content[1]["type"]], expected, "{version}");
        let served = Served::start(&server).await;
        let id = served.open_as(version, ADA, json!({})).await;
        let params = json!({ "name": "ring" });
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params,
        });
        let answer = served.post(ADA, Some(&id), &call).await;
        for kind in expected {
            assert!(answer.contains(&format!(r#""type":"{kind}""#)), "{version}: {answer}");
        }
    }
}
