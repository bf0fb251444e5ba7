//! Responses over HTTP: JSON, or an event stream for requests that have to wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use super::http::{ADA, Served, status};
use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// The answer in the body of a response, which is JSON or a stream of events, and whether it
/// is the former.
fn message(answer: &str) -> (Value, bool) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    if head.contains("content-type: application/json") {
        return (serde_json::from_str(body).unwrap(), true);
    }
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut messages = data.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let answer = messages.find(|message| message["method"].is_null());
    (answer.unwrap_or_else(|| panic!("no answer in {body}")), false)
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

#[tokio::test]
async fn responds_with_json_unless_something_is_sent_before() {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let served = Served::start(&server()).await;
    let id = served.open(ADA).await;
    for (method, params, is_json) in [
        ("ping", json!({}), true),
        ("tools/list", json!({}), true),
        ("tools/list", json!({ "cursor": "after:list" }), true),
        ("tools/call", call("add", json!({ "a": 2, "b": 3 })), true),
        ("tools/call", call("add", json!({ "a": "two" })), true),
        ("tools/call", call("list", json!({})), true),
        ("tools/call", call("picture", json!({})), true),
        ("tools/call", call("fail", json!({})), true),
        ("tools/call", call("panic", json!({})), true),
        ("tools/call", call("write", json!({})), true),
        ("tools/call", call("steps", json!({})), false),
        ("tools/call", call("no_such_tool", json!({})), true),
        ("tools/call", json!({ "name": "add", "_meta": {} }), true),
        ("no/such/method", json!({}), true),
    ] {
        let answer = served.post(ADA, Some(&id), &request(method, params.clone())).await;
        assert_eq!(status(&answer), "200", "{answer}");
        let (answer, was_json) = message(&answer);
        assert_eq!(was_json, is_json, "{method} {params}");
        // The transport does not change the response.
        let mut peer = Peer::legacy(&server(), json!({})).await;
        peer.send_line(&request(method, params.clone()).to_string()).await;
        assert_eq!(peer.receive_response(7).await, answer, "{method} {params}");
    }
}

/// A server whose tool says something and then has to wait, and how often it has begun.
fn slow() -> (Server, Arc<AtomicUsize>) {
    let count = Arc::<AtomicUsize>::default();
    let begun = Arc::clone(&count);
    let tool =
        DynamicTool::new(definition("slow", RiskClass::Read), move |_: Value, cx: Context| {
            let nth = begun.fetch_add(1, Ordering::Relaxed);
            async move {
                cx.emit("early", json!(nth));
                tokio::task::yield_now().await;
                cx.emit("late", json!(nth));
                "it went on"
            }
        });
    let registry = Registry::builder().add(tool).build().unwrap();
    (Server::new(Pipeline::new(registry), Session::default()), count)
}

// Whoever goes on with a call goes on with the one that has begun.
#[tokio::test]
async fn a_call_that_has_to_wait_begins_once() {
    let (server, count) = slow();
    let served = Served::start(&server).await;
    let id = served.open(ADA).await;
    for nth in 1..=3 {
        let call = request("tools/call", json!({ "name": "slow", "arguments": {} }));
        let answer = served.post(ADA, Some(&id), &call).await;
        let (answer, is_json) = message(&answer);
        assert_eq!((text(&answer["result"]), is_json), ("it went on", false));
        assert_eq!(count.load(Ordering::Relaxed), nth);
    }
}

#[tokio::test]
async fn a_call_that_waits_can_be_taken_back() {
    let seen = Arc::<Seen>::default();
    let pipeline = Pipeline::new(registry(&seen));
    let served = Served::start(&Server::new(pipeline, Session::default())).await;
    let id = served.open(ADA).await;
    let call = request("tools/call", json!({ "name": "wait", "arguments": {} }));
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
    });
    let ending = async {
        seen.started.notified().await;
        served.post(ADA, Some(&id), &cancel).await;
        seen.ended.notified().await;
    };
    let calling = served.post(ADA, Some(&id), &call);
    tokio::pin!(calling);
    let both = async {
        tokio::select! {
            biased;
            () = ending => {}
            answer = &mut calling => panic!("{answer}"),
        }
    };
    timeout(LIMIT, both).await.expect("the call ends");
}

#[tokio::test]
async fn checks_the_head_of_a_request() {
    let served = Served::start(&server()).await;
    let id = served.open(ADA).await;
    let call = request("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }));
    for (more, code, is_json) in [
        ("MCP-Protocol-Version: 2025-11-25\r\n", "200", true),
        ("MCP-Protocol-Version: 2024-11-05\r\n", "200", true),
        ("MCP-Protocol-Version: 1999-01-01\r\n", "400", false),
        ("MCP-Protocol-Version: 2026-07-28\r\n", "400", true),
        ("Accept: text/plain\r\n", "200", true),
        ("Content-Type: text/plain\r\n", "415", false),
    ] {
        let head = format!("Mcp-Session-Id: {id}\r\n{more}");
        let answer = served.ask("POST", ADA, &head, &call.to_string()).await;
        assert_eq!(status(&answer), code, "{more}: {answer}");
        assert_eq!(answer.contains("content-type: application/json"), is_json, "{more}: {answer}");
    }
    let named = format!("Mcp-Session-Id: {id}\r\n");
    assert_eq!(status(&served.ask("DELETE", ADA, &named, "").await), "204");
    assert_eq!(status(&served.post(ADA, Some(&id), &call).await), "404");
}
