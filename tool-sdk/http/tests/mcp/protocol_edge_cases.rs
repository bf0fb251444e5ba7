//! Clients that send valid messages at unexpected moments.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::http::{ADA, Served, next, status};
use super::request_limits::gate;
use super::*;

const LIMIT: Duration = Duration::from_secs(60);

fn hello(version: &str) -> Value {
    json!({
        "protocolVersion": version, "capabilities": {},
        "clientInfo": { "name": "by-hand", "version": "1" },
    })
}

// Who says anew what it can do would have some of its answers in another version.
#[tokio::test]
async fn a_session_begins_once() {
    let server = server();
    let mut peer = Peer::legacy(&server, json!({})).await;
    for version in ["2025-11-25", "2026-07-28"] {
        let refused = peer.request("initialize", hello(version)).await;
        let words = refused["error"]["message"].as_str().unwrap();
        assert!(words.contains("already initialized"), "{refused}");
    }
    let call = json!({ "name": "write", "arguments": {}, "_meta": {} });
    let answer = peer.request("tools/call", call).await;
    assert!(answer["result"]["resultType"].is_null(), "{answer}");
    let served = Served::start(&server).await;
    let id = served.open(ADA).await;
    let again = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-06-18"),
    });
    let answer = served.post(ADA, Some(&id), &again).await;
    assert!(answer.contains("already initialized"), "{answer}");
}

// Who tries what there is, and takes that back when it lasts too long, may still begin.
#[tokio::test]
async fn what_is_taken_back_before_the_beginning_ends_nothing() {
    let discover = json!({
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let server = server();
    let mut peer = Peer::uninitialized(&server);
    assert!(peer.request("ping", json!({})).await["error"].is_null());
    assert!(peer.request("server/discover", discover.clone()).await["error"].is_null());
    peer.notify("notifications/cancelled", json!({ "requestId": 2 })).await;
    let opened = peer.request("initialize", hello("2025-11-25")).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25", "{opened}");
    peer.notify("notifications/initialized", json!({})).await;
    assert_eq!(peer.call("list", json!({})).await["isError"], false);
    assert_eq!(peer.hang_up().await, Vec::<Value>::new());
}

// Nobody waits for the end of what is only listened to.
#[tokio::test(start_paused = true)]
async fn who_listens_may_hang_up() {
    let server = server();
    let mut peer = Peer::modern(&server, json!({}));
    let what = json!({ "notifications": { "toolsListChanged": true } });
    peer.send("subscriptions/listen", what).await;
    peer.receive_method("notifications/subscriptions/acknowledged").await;
    let start = Instant::now();
    peer.hang_up().await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

// Whoever waits under one id could not tell two answers apart, and one of them would not come.
#[tokio::test]
async fn an_id_that_is_open_over_http_is_not_given_again() {
    let (server, gate, _) = gate();
    let served = Served::start(&server).await;
    let (ada, other) = (served.open(ADA).await, served.open(ADA).await);
    let request = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    for params in [json!({ "name": "wait" }), json!({ "name": "wait", "_meta": {} })] {
        let call = request("tools/call", params);
        let mut first = served.begin(ADA, &ada, &call).await;
        for again in [&call, &request("ping", json!({})), &request("tools/list", json!({}))] {
            let refused = served.post(ADA, Some(&ada), again).await;
            assert_eq!(status(&refused), "400", "{refused}");
            assert!(refused.contains("still in flight"), "{refused}");
        }
        let elsewhere = served.post(ADA, Some(&other), &request("ping", json!({}))).await;
        assert_eq!(status(&elsewhere), "200", "{elsewhere}");
        gate.add_permits(1);
        let answer = timeout(LIMIT, next(&mut first)).await.expect("it is answered");
        assert_eq!(text(&answer["result"]), "it went on");
        // The id is free when the answer has left.
        let freed = async {
            while status(&served.post(ADA, Some(&ada), &request("ping", json!({}))).await) != "200"
            {
            }
        };
        timeout(LIMIT, freed).await.expect("the id is free again");
    }
}
