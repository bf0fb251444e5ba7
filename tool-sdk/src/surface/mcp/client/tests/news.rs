//! F117, MC2: news of other tools are heard for as long as there is a connection.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::web::{Asked, Reply, Web, said, status};
use super::*;
use crate::surface::mcp::Address;

/// What a server of today says of itself that tells of other tools.
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

/// What a server says to the subscription that the message with `id` asked for.
fn told(method: &str, id: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params })
}

fn taken(id: &Value) -> Value {
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    told("subscriptions/acknowledged", id, wanted)
}

/// A server of today whose only tool is `a` at first and `b` when it is asked again; `begin`
/// says what it does when it is asked to tell of changes, for the how manieth time.
fn telling(begin: impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static) -> Setting {
    let (lists, listens) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let script = Script::modern(move |message| match message["method"].as_str() {
        Some("server/discover") => vec![Act::Answer(about())],
        Some("tools/list") => {
            let name = if lists.fetch_add(1, Ordering::Relaxed) == 0 { "a" } else { "b" };
            vec![Act::Answer(one_tool(name))]
        }
        Some("subscriptions/listen") => begin(listens.fetch_add(1, Ordering::Relaxed), message),
        _ => echo(message),
    });
    Setting::with(Setting::trusting(|_| Vec::new()).pipeline, script)
}

/// Waits until the tools are others.
async fn until_b(setting: &Setting) {
    let mut changes = setting.pipeline.toolset().changes();
    while setting.tools() != ["mcp__s__b"] {
        changes.changed().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_ends_is_asked_for_again() {
    type End = fn(&Value) -> Vec<Act>;
    let ends: [End; 4] = [
        |id| {
            let end = json!({
                "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": id },
            });
            vec![Act::Say(taken(id)), Act::Answer(end)]
        },
        |id| {
            let cancelled = told("cancelled", id, json!({ "requestId": id }));
            vec![Act::Say(taken(id)), Act::Say(cancelled)]
        },
        |id| vec![Act::Say(taken(id)), Act::Say(told("tools/nonsense", id, json!({})))],
        |_| vec![Act::Refuse(-32603, "out of order")],
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let setting = telling(move |time, message| match time {
            0..3 => end(&message["id"]),
            _ => vec![Act::Say(taken(&message["id"]))],
        });
        setting.connect().await;
        let met = until_b(&setting);
        let met = tokio::time::timeout(Duration::from_secs(60), met).await;
        assert!(met.is_ok(), "{at}: {:?}", setting.script.heard("subscriptions/listen"));
        let mut changes = setting.pipeline.toolset().changes();
        changes.mark_unchanged();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(setting.script.heard("subscriptions/listen").len(), 4, "{at}");
        assert!(!changes.has_changed().unwrap(), "{at}: nothing is new since");
    }
}

#[tokio::test(start_paused = true)]
async fn who_knows_no_subscriptions_is_not_asked_again() {
    let setting = telling(|_, _| vec![Act::Refuse(-32601, "no such method")]);
    setting.connect().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(setting.script.heard("subscriptions/listen").len(), 1);
    assert_eq!(setting.script.heard("tools/list").len(), 1);
}

// Nobody told what changed between the first list and the time from which on changes are told.
#[tokio::test(start_paused = true)]
async fn what_changed_before_a_subscription_stood_is_not_missed() {
    let setting = telling(|_, message| vec![Act::Say(taken(&message["id"]))]);
    setting.connect().await;
    until_b(&setting).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(setting.script.heard("tools/list").len(), 2);
}

// However often it is said at once, it is one thing that is said.
#[tokio::test(start_paused = true)]
async fn a_storm_of_news_deafens_nobody() {
    let setting = telling(|_, message| {
        let id = &message["id"];
        let change = told("tools/list_changed", id, json!({}));
        let storm = vec![Act::Say(change); 500];
        [vec![Act::Say(taken(id))], storm].concat()
    });
    setting.connect().await;
    until_b(&setting).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(setting.script.heard("subscriptions/listen").len(), 1);
    assert_eq!(setting.script.heard("notifications/cancelled").len(), 0);
}

/// Events of a stream that ends behind them.
fn stream(events: &[Value]) -> Reply {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Reply::Raw(format!(
        "200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// A server over HTTP whose only tool is `a` at first and `b` when it is asked again.
fn at(act: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (Web, Setting) {
    let lists = AtomicUsize::new(0);
    let web = Web::start(move |asked| match asked.is("tools/list") {
        true => {
            let name = if lists.fetch_add(1, Ordering::Relaxed) == 0 { "a" } else { "b" };
            Reply::Result(one_tool(name))
        }
        false => act(asked),
    });
    let setting = Setting::trusting(|_| Vec::new());
    setting.upstreams.remove("s");
    let upstream = Upstream::new("s", Address::new(&web.url()).unwrap()).unwrap();
    setting.upstreams.add(upstream.startup_timeout(Duration::from_secs(20))).unwrap();
    (web, setting)
}

#[tokio::test]
async fn a_stream_of_news_that_is_cut_is_opened_again() {
    let (web, setting) = at(|asked| match asked.message["method"].as_str() {
        Some("server/discover") => Reply::Result(about()),
        Some("subscriptions/listen") => stream(&[taken(&asked.message["id"])]),
        _ => Reply::Usual,
    });
    setting.connect().await;
    until_b(&setting).await;
    let again = async {
        while web.count("subscriptions/listen") < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.unwrap();
}

#[tokio::test]
async fn an_older_server_that_is_out_of_order_for_a_while_is_heard_again() {
    let gets = AtomicUsize::new(0);
    let (web, setting) = at(move |asked| match asked.method.as_str() {
        "GET" if gets.fetch_add(1, Ordering::Relaxed) == 0 => status("503 Service Unavailable"),
        "GET" => stream(&[]),
        _ if asked.is("initialize") => Reply::Raw(said(&json!({
            "jsonrpc": "2.0", "id": asked.message["id"], "result": {
                "protocolVersion": "2025-11-25", "serverInfo": { "name": "old", "version": "1" },
                "capabilities": { "tools": { "listChanged": true } },
            },
        }))),
        _ => Reply::Usual,
    });
    setting.connect().await;
    until_b(&setting).await;
    assert!(web.asked().iter().filter(|asked| asked.method == "GET").count() > 1);
}
