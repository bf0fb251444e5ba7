//! F117, MC2: changes of the tools are noticed for as long as there is a connection.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_stub::{HttpStub, RecordedRequest, StubReply, said, status};

use super::*;
use crate::HttpEndpoint;

/// The response to `server/discover` of a server that announces changes of its tools.
fn about() -> Value {
    json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": ["2026-07-28"], "capabilities": { "tools": { "listChanged": true } },
        "serverInfo": { "name": "news", "version": "1" },
    })
}

/// A list with one tool.
fn one_tool(name: &str) -> Value {
    json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "tools": [tool(name, "A tool.")],
    })
}

/// A notification to the subscription that the request `id` opened.
fn told(method: &str, id: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params })
}

fn taken(id: &Value) -> Value {
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    told("subscriptions/acknowledged", id, wanted)
}

/// A 2026 server whose only tool is `a` at first and `b` in later lists; `begin` handles the nth
/// request for a subscription.
fn telling(begin: impl Fn(usize, &Value) -> Vec<ServerAct> + Send + Sync + 'static) -> TestHost {
    let (lists, listens) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let script = ScriptedServer::modern(move |message| match message["method"].as_str() {
        Some("server/discover") => vec![ServerAct::Answer(about())],
        Some("tools/list") => {
            let name = if lists.fetch_add(1, Ordering::Relaxed) == 0 { "a" } else { "b" };
            vec![ServerAct::Answer(one_tool(name))]
        }
        Some("subscriptions/listen") => begin(listens.fetch_add(1, Ordering::Relaxed), message),
        _ => echo(message),
    });
    TestHost::with_server(TestHost::trusting(|_| Vec::new()).pipeline, script)
}

/// Waits until the tools changed.
async fn until_b(setting: &TestHost) {
    let mut changes = setting.pipeline.toolset().subscribe_changes();
    while setting.tools() != ["mcp__s__b"] {
        changes.changed().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn ended_subscription_is_renewed() {
    type End = fn(&Value) -> Vec<ServerAct>;
    let ends: [End; 4] = [
        |id| {
            let end = json!({
                "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": id },
            });
            vec![ServerAct::Say(taken(id)), ServerAct::Answer(end)]
        },
        |id| {
            let cancelled = told("cancelled", id, json!({ "requestId": id }));
            vec![ServerAct::Say(taken(id)), ServerAct::Say(cancelled)]
        },
        |id| vec![ServerAct::Say(taken(id)), ServerAct::Say(told("tools/nonsense", id, json!({})))],
        |_| vec![ServerAct::Refuse(-32603, "out of order")],
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let setting = telling(move |time, message| match time {
            0..3 => end(&message["id"]),
            _ => vec![ServerAct::Say(taken(&message["id"]))],
        });
        setting.connect().await;
        let met = until_b(&setting);
        let met = tokio::time::timeout(Duration::from_secs(60), met).await;
        assert!(met.is_ok(), "{at}: {:?}", setting.server.heard("subscriptions/listen"));
        let mut changes = setting.pipeline.toolset().subscribe_changes();
        changes.mark_unchanged();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(setting.server.heard("subscriptions/listen").len(), 4, "{at}");
        assert!(!changes.has_changed().unwrap(), "{at}: nothing is new since");
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_subscription_is_not_retried() {
    let setting = telling(|_, _| vec![ServerAct::Refuse(-32601, "no such method")]);
    setting.connect().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(setting.server.heard("subscriptions/listen").len(), 1);
    assert_eq!(setting.server.heard("tools/list").len(), 1);
}

// Changes between the first list and the subscription were not notified.
#[tokio::test(start_paused = true)]
async fn changes_before_the_subscription_are_noticed() {
    let setting = telling(|_, message| vec![ServerAct::Say(taken(&message["id"]))]);
    setting.connect().await;
    until_b(&setting).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(setting.server.heard("tools/list").len(), 2);
}

// Repeated notifications are collected.
#[tokio::test(start_paused = true)]
async fn flood_of_notifications_is_collected() {
    let setting = telling(|_, message| {
        let id = &message["id"];
        let change = told("tools/list_changed", id, json!({}));
        let storm = vec![ServerAct::Say(change); 500];
        [vec![ServerAct::Say(taken(id))], storm].concat()
    });
    setting.connect().await;
    until_b(&setting).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(setting.server.heard("subscriptions/listen").len(), 1);
    assert_eq!(setting.server.heard("notifications/cancelled").len(), 0);
}

/// An SSE stream that ends after these events.
fn stream(events: &[Value]) -> StubReply {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    StubReply::Raw(format!(
        "200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// An HTTP server whose only tool is `a` at first and `b` in later lists.
fn at(act: impl Fn(&RecordedRequest) -> StubReply + Send + Sync + 'static) -> (HttpStub, TestHost) {
    let lists = AtomicUsize::new(0);
    let web = HttpStub::start(move |asked| match asked.is("tools/list") {
        true => {
            let name = if lists.fetch_add(1, Ordering::Relaxed) == 0 { "a" } else { "b" };
            StubReply::Result(one_tool(name))
        }
        false => act(asked),
    });
    let setting = TestHost::trusting(|_| Vec::new());
    setting.servers.remove("s");
    let upstream = ServerConfig::new("s", HttpEndpoint::new(&web.url()).unwrap()).unwrap();
    setting.servers.add(upstream.startup_timeout(Duration::from_secs(60))).unwrap();
    (web, setting)
}

#[tokio::test]
async fn closed_notification_stream_is_reopened() {
    let (web, setting) = at(|asked| match asked.message["method"].as_str() {
        Some("server/discover") => StubReply::Result(about()),
        Some("subscriptions/listen") => stream(&[taken(&asked.message["id"])]),
        _ => StubReply::Usual,
    });
    setting.connect().await;
    until_b(&setting).await;
    let again = async {
        while web.count("subscriptions/listen") < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), again).await.unwrap();
}

#[tokio::test]
async fn notification_stream_recovers_after_errors() {
    let gets = AtomicUsize::new(0);
    let (web, setting) = at(move |asked| match asked.method.as_str() {
        "GET" if gets.fetch_add(1, Ordering::Relaxed) == 0 => status("503 Service Unavailable"),
        "GET" => stream(&[]),
        _ if asked.is("initialize") => StubReply::Raw(said(&json!({
            "jsonrpc": "2.0", "id": asked.message["id"], "result": {
                "protocolVersion": "2025-11-25", "serverInfo": { "name": "old", "version": "1" },
                "capabilities": { "tools": { "listChanged": true } },
            },
        }))),
        _ => StubReply::Usual,
    });
    setting.connect().await;
    until_b(&setting).await;
    assert!(web.requests().iter().filter(|asked| asked.method == "GET").count() > 1);
}
