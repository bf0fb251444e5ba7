//! The loop guard belongs to a conversation; requests without one only share a limit per minute.

use tool_sdk_core::LoopGuard;

use super::http::{ADA, Served, modern, status};
use super::*;

fn guarded_server() -> Server {
    Server::new(pipeline().loop_guard(LoopGuard::default()), Session::default())
}

fn add(meta: &Value) -> Value {
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

// F34: 60 clients of 2026-07-28 with one token each make the same first call.
#[tokio::test]
async fn stateless_clients_of_one_principal_are_no_loop() {
    let served = Served::start(&guarded_server()).await;
    let head = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\n";
    for _ in 0..60 {
        let answer = served.ask("POST", ADA, head, &add(&modern()).to_string()).await;
        assert!(answer.contains(r#""isError":false"#), "{answer}");
    }
    let refused = served.ask("POST", ADA, head, &add(&modern()).to_string()).await;
    assert_eq!(status(&refused), "200");
    assert!(refused.contains("61 times within a minute"), "{refused}");
}

// F34: a session over HTTP is a conversation of its own.
#[tokio::test]
async fn each_session_over_http_has_its_own_loop_guard() {
    let served = Served::start(&guarded_server()).await;
    for _ in 0..4 {
        let session = served.open(ADA).await;
        for _ in 0..2 {
            let answer = served.post(ADA, Some(&session), &add(&json!({}))).await;
            assert!(answer.contains(r#""isError":false"#), "{answer}");
        }
    }
}

// F34: on one long-lived connection the same call is accepted again after other progress.
#[tokio::test]
async fn a_long_connection_may_repeat_a_call_after_progress() {
    let mut peer = Peer::legacy(&guarded_server(), json!({})).await;
    for round in 0..20 {
        let again = peer.call("add", json!({ "a": 1, "b": 2 })).await;
        assert_eq!(again["isError"], false, "{round}: {again}");
        let other = peer.call("add", json!({ "a": 10, "b": round })).await;
        assert_eq!(other["isError"], false, "{round}: {other}");
    }
}
