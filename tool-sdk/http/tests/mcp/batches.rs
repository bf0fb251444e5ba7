//! JSON-RPC batches, as clients of 2025-03-26 may send them.

use std::time::Duration;

use tokio::time::timeout;
use tool_sdk_core::Inquiry;

use super::http::{ADA, Served, next, status};
use super::request_limits::gate;
use super::*;

const VERSION: &str = "2025-03-26";
const LIMIT: Duration = Duration::from_secs(60);

/// A request for a batch.
fn asks(id: Value, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn calls(id: Value, name: &str, arguments: Value) -> Value {
    asks(id, "tools/call", json!({ "name": name, "arguments": arguments }))
}

fn tells(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// One of everything.
fn mixed() -> Value {
    json!([
        asks(json!(1), "ping", json!({})),
        calls(json!("two"), "add", json!({ "a": 1, "b": 2 })),
        tells("notifications/roots/list_changed", json!({})),
        asks(json!(3), "no/such/method", json!({})),
        calls(json!(4), "no_such_tool", json!({})),
        asks(json!(1), "ping", json!({})),
        asks(json!(5), "initialize", json!({})),
        7,
        [],
        { "jsonrpc": "2.0", "id": 6 },
        asks(json!(8), "tools/list", json!({})),
    ])
}

/// What the answers say, in no particular order: the id, and the code of what is wrong.
fn said(answers: &[Value]) -> Vec<(String, Option<i64>)> {
    let one = |answer: &Value| (answer["id"].to_string(), answer["error"]["code"].as_i64());
    let mut all: Vec<_> = answers.iter().map(one).collect();
    all.sort();
    all
}

/// What is said to [`mixed`].
fn expected() -> Vec<(String, Option<i64>)> {
    let mut all = [
        ("1", None),
        ("\"two\"", None),
        ("3", Some(-32601)),
        ("4", Some(-32602)),
        ("1", Some(-32600)),
        ("5", Some(-32600)),
        ("null", Some(-32600)),
        ("null", Some(-32600)),
        ("6", Some(-32600)),
        ("8", None),
    ]
    .map(|(id, code)| (id.to_owned(), code));
    all.sort();
    all.to_vec()
}

/// A server with one tool, which asks for a name and says on the way that it does.
fn curious() -> Server {
    let greet = DynamicTool::new(
        definition("greet", RiskClass::Read),
        |_: Value, cx: Context| async move {
            cx.progress(1, None, "asking");
            let form = Inquiry::form("your name?", json!({ "type": "object", "properties": {} }));
            cx.inquire([("name", form)]).await.map(|_| "hello")
        },
    );
    let registry = Registry::builder().add(greet).build().unwrap();
    Server::new(Pipeline::new(registry), Session::default())
}

fn greets(id: u64) -> Value {
    let meta = json!({ "progressToken": id });
    asks(json!(id), "tools/call", json!({ "name": "greet", "arguments": {}, "_meta": meta }))
}

fn yes(question: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": {} },
    })
}

#[tokio::test]
async fn what_comes_in_one_line_is_answered_in_one() {
    let server = server();
    let mut peer = Peer::legacy_version(VERSION, &server, json!({})).await;
    peer.send_line(&mixed().to_string()).await;
    assert_eq!(said(&peer.receive_batch().await), expected());
    // Nothing is answered to what wants no answer.
    peer.send_line(&json!([tells("notifications/roots/list_changed", json!({}))]).to_string())
        .await;
    peer.request("ping", json!({})).await;
    assert_eq!(peer.hang_up().await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_comes_in_one_body_is_answered_in_one() {
    let server = server();
    let served = Served::start(&server).await;
    let id = served.open_as(VERSION, ADA, json!({})).await;
    let answer = served.post(ADA, Some(&id), &mixed()).await;
    assert_eq!(status(&answer), "200");
    let messages: Vec<Value> = match answer.contains("text/event-stream") {
        true => {
            let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
            data.map(|data| serde_json::from_str(data).unwrap()).collect()
        }
        false => serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap(),
    };
    assert_eq!(said(&messages), expected());

    let nothing = json!([tells("notifications/roots/list_changed", json!({}))]);
    let answer = served.post(ADA, Some(&id), &nothing).await;
    assert_eq!(status(&answer), "202");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    let answer = served.post(ADA, Some(&id), &json!([5])).await;
    assert_eq!(status(&answer), "400");
    assert!(answer.ends_with("}}]"), "{answer}");
    let answer = served.post(ADA, Some(&id), &json!([])).await;
    assert_eq!(status(&answer), "400");
}

// What needs no waiting needs no stream.
#[tokio::test]
async fn answers_that_are_there_are_a_list() {
    let served = Served::start(&server()).await;
    let id = served.open_as(VERSION, ADA, json!({})).await;
    let both = json!([
        asks(json!(1), "ping", json!({})),
        calls(json!(2), "add", json!({ "a": 1, "b": 2 })),
    ]);
    let answer = served.post(ADA, Some(&id), &both).await;
    assert!(answer.contains("application/json"), "{answer}");
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let answers: Vec<Value> = serde_json::from_str(body).unwrap();
    assert_eq!(answers[1]["result"]["structuredContent"], json!({ "sum": 3 }));
}

#[tokio::test]
async fn other_versions_know_no_batches() {
    let ping = json!([asks(json!(1), "ping", json!({}))]);
    let is_refused = |answer: &Value| {
        let error = &answer["error"];
        error["code"] == -32600 && error["message"].as_str().unwrap().contains("2025-03-26")
    };
    let server = server();
    let served = Served::start(&server).await;
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut peer = Peer::legacy_version(version, &server, json!({})).await;
        peer.send_line(&ping.to_string()).await;
        assert!(is_refused(&peer.receive_error().await), "{version}");
        peer.request("ping", json!({})).await;
        let id = served.open_as(version, ADA, json!({})).await;
        let answer = served.post(ADA, Some(&id), &ping).await;
        assert_eq!(status(&answer), "400", "{version}");
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        assert!(is_refused(&serde_json::from_str(body).unwrap()), "{version}");
    }
    // A batch cannot begin a session.
    let hello = json!({
        "protocolVersion": VERSION, "capabilities": {},
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let hello = json!([asks(json!(1), "initialize", hello)]);
    let mut stranger = Peer::uninitialized(&server);
    stranger.send_line(&hello.to_string()).await;
    assert!(is_refused(&stranger.receive_error().await));
    assert_eq!(status(&served.post(ADA, None, &hello).await), "400");
    let mut modern = Peer::modern(&server, json!({}));
    modern.send_line(&ping.to_string()).await;
    assert!(is_refused(&modern.receive_error().await));
}

// A question may come up while others of its batch have their answers.
#[tokio::test]
async fn calls_of_a_batch_may_ask() {
    let both_calls = json!([greets(1), asks(json!(3), "ping", json!({})), greets(2)]);
    let server = curious();
    let all = async {
        let mut peer = Peer::legacy_version(VERSION, &server, json!({ "elicitation": {} })).await;
        peer.send_line(&both_calls.to_string()).await;
        let questions = [
            peer.receive_method("elicitation/create").await,
            peer.receive_method("elicitation/create").await,
        ];
        for _ in 0..2 {
            peer.receive_method("notifications/progress").await;
        }
        // Answers may come together as well.
        peer.send_line(&json!(questions.each_ref().map(yes)).to_string()).await;
        let answers = peer.receive_batch().await;
        let ids = ["1", "2", "3"].map(|id| (id.to_owned(), None));
        assert_eq!(said(&answers), ids);
        assert_eq!(answers.iter().filter(|it| !it["result"]["content"].is_null()).count(), 2);
    };
    timeout(LIMIT, all).await.expect("all of it comes");
}

#[tokio::test]
async fn calls_of_a_batch_may_ask_over_http() {
    let both_calls = json!([greets(1), asks(json!(3), "ping", json!({})), greets(2)]);
    let server = curious();
    let served = Served::start(&server).await;
    let id = served.open_as(VERSION, ADA, json!({ "elicitation": {} })).await;
    let mut lines = served.begin(ADA, &id, &both_calls).await;
    let (mut questions, mut answers, mut steps) = (Vec::new(), Vec::new(), 0);
    let all = async {
        while answers.len() < 3 {
            let message = next(&mut lines).await;
            match message["method"].as_str() {
                Some("elicitation/create") => questions.push(yes(&message)),
                Some("notifications/progress") => steps += 1,
                _ => answers.push(message),
            }
            if questions.len() == 2 {
                let both = Value::from(std::mem::take(&mut questions));
                assert_eq!(status(&served.post(ADA, Some(&id), &both).await), "202");
            }
        }
    };
    timeout(LIMIT, all).await.expect("all of it comes");
    assert_eq!(said(&answers), ["1", "2", "3"].map(|id| (id.to_owned(), None)));
    assert_eq!(steps, 2);
    // The stream ends with the last answer.
    let end = async { while lines.next_line().await.unwrap().is_some_and(|it| it != "0") {} };
    timeout(LIMIT, end).await.expect("the stream ends");
}

// What is taken back is left out, and keeps back nothing.
#[tokio::test]
async fn a_call_of_a_batch_can_be_taken_back() {
    let batch = json!([
        asks(json!(1), "ping", json!({})),
        calls(json!(2), "wait", json!({})),
        asks(json!(3), "tools/call", json!({ "name": "wait", "_meta": {} })),
    ]);
    let server = server();
    let mut peer = Peer::legacy_version(VERSION, &server, json!({})).await;
    peer.send_line(&batch.to_string()).await;
    peer.request("ping", json!({})).await;
    let back = |id: u64| tells("notifications/cancelled", json!({ "requestId": id }));
    peer.send_line(&json!([back(2), back(3)]).to_string()).await;
    let answers = timeout(LIMIT, peer.receive_batch()).await.expect("the others are answered");
    assert_eq!(said(&answers), [("1".to_owned(), None)]);
    // Also in the batch itself.
    peer.send_line(&json!([calls(json!(4), "wait", json!({})), back(4)]).to_string()).await;
    peer.request("ping", json!({})).await;
}

#[tokio::test]
async fn a_call_of_a_body_can_be_taken_back() {
    let server = server();
    let served = Served::start(&server).await;
    let id = served.open_as(VERSION, ADA, json!({})).await;
    let back = tells("notifications/cancelled", json!({ "requestId": 2 }));
    let batch =
        json!([asks(json!(1), "ping", json!({})), calls(json!(2), "wait", json!({})), back,]);
    let answering = served.post(ADA, Some(&id), &batch);
    let answer = timeout(LIMIT, answering).await.expect("nothing is waited for");
    assert!(answer.contains(r#""id":1,"#), "{answer}");
    assert!(!answer.contains(r#""id":2,"#), "{answer}");
}

// More messages than there is room for wait as those do that come alone.
#[tokio::test]
async fn a_crowd_of_batches_is_answered() {
    const BATCHES: u64 = 4;
    const EACH: u64 = 100;
    let (server, gate, _) = gate();
    let mut peer = Peer::legacy_version(VERSION, &server, json!({})).await;
    for batch in 0..BATCHES {
        let ids = batch * EACH..(batch + 1) * EACH;
        let all: Vec<_> = ids.map(|id| calls(json!(id), "wait", json!({}))).collect();
        peer.send_line(&Value::from(all).to_string()).await;
    }
    gate.add_permits(usize::try_from(BATCHES * EACH).unwrap());
    for _ in 0..BATCHES {
        let answers = timeout(LIMIT, peer.receive_batch()).await.expect("all are answered");
        assert_eq!(answers.len(), usize::try_from(EACH).unwrap());
        assert!(answers.iter().all(|answer| text(&answer["result"]) == "it went on"));
    }
}

// What waits for others is bounded: beyond that, requests are refused.
#[tokio::test]
async fn answers_that_are_too_much_together_are_not_made() {
    let tool =
        DynamicTool::new(definition("picture", RiskClass::Read), |_: Value, _: Context| async {
            Output::default().attach(Attachment::bytes("image/png", vec![0; 1 << 20]))
        });
    let registry = Registry::builder().add(tool).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    let all: Vec<_> = (0..100).map(|id| calls(json!(id), "picture", json!({}))).collect();
    let batch = Value::from(all);
    let count = |answers: &[Value]| {
        let refused = answers.iter().filter(|it| it["error"]["code"] == -32600).count();
        assert_eq!(answers.len(), 100);
        assert!((80..100).contains(&refused), "{refused} were refused");
    };
    let mut peer = Peer::legacy_version(VERSION, &server, json!({})).await;
    peer.send_line(&batch.to_string()).await;
    count(&timeout(LIMIT, peer.receive_batch()).await.expect("all are answered"));
    let served = Served::start(&server).await;
    let id = served.open_as(VERSION, ADA, json!({})).await;
    let answer = served.post(ADA, Some(&id), &batch).await;
    count(&serde_json::from_str::<Vec<_>>(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap());
}

// Whoever hangs up loses no answer that is there.
#[tokio::test(start_paused = true)]
async fn what_is_answered_leaves_at_the_end() {
    let server = server();
    let mut peer = Peer::legacy_version(VERSION, &server, json!({})).await;
    let batch = json!([asks(json!(1), "ping", json!({})), calls(json!(2), "wait", json!({}))]);
    peer.send_line(&batch.to_string()).await;
    peer.request("ping", json!({})).await;
    let rest = peer.hang_up().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    let answers = rest[0].as_array().unwrap();
    assert!(answers.iter().any(|answer| answer["id"] == 1), "{rest:?}");
}
