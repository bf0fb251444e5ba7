//! What is answered without rmcp, beside what rmcp answers.

use super::*;

fn both() -> [Server; 2] {
    [server(), server().answering_directly(false)]
}

// The way that an answer takes is not to be seen in it.
#[tokio::test]
async fn both_ways_give_the_same_answers() {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let requests = [
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "list" })),
        ("tools/list", json!({ "cursor": "no such cursor" })),
        ("tools/call", call("add", json!({ "a": 2, "b": 3 }))),
        ("tools/call", call("add", json!({ "a": "two" }))),
        ("tools/call", call("list", json!({}))),
        ("tools/call", call("picture", json!({}))),
        ("tools/call", call("fail", json!({}))),
        ("tools/call", call("panic", json!({}))),
        ("tools/call", call("write", json!({}))),
        ("tools/call", call("steps", json!({}))),
        ("tools/call", call("no_such_tool", json!({}))),
        ("tools/call", json!({ "name": "steps" })),
        ("tools/call", json!({ "name": "steps", "_meta": {} })),
        ("tools/call", json!({ "name": 5 })),
        ("tools/call", json!({})),
        ("no/such/method", json!({})),
    ];
    let mut told = Vec::new();
    for server in both() {
        let mut peer = Peer::legacy(&server, json!({})).await;
        let mut answers = Vec::new();
        for (method, params) in &requests {
            answers.push(peer.request(method, params.clone()).await);
        }
        answers.extend(peer.hang_up().await);
        told.push(answers);
    }
    let rmcp = told.pop().unwrap();
    assert_eq!(told.pop().unwrap(), rmcp);
}

// A key that stands there twice is seen where the text is not parsed before.
#[tokio::test]
async fn arguments_are_read_as_they_were_written() {
    let mut peer = Peer::legacy(&server(), json!({})).await;
    peer.request("ping", json!({})).await;
    let twice = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"add","arguments":{"a":1,"a":2,"b":3}}}"#;
    peer.line(twice).await;
    let answer = peer.said_to("x").await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text(&answer["result"]).contains("twice"), "{answer}");
}

// Everything that came at once is answered, whatever came between.
#[tokio::test]
async fn a_batch_of_lines_is_answered_line_by_line() {
    for server in both() {
        let mut peer = Peer::legacy(&server, json!({})).await;
        let mut lines = String::new();
        for n in 0..200 {
            let params = json!({ "name": "add", "arguments": { "a": n, "b": 1 } });
            let line = json!({
                "jsonrpc": "2.0", "id": format!("c{n}"), "method": "tools/call", "params": params,
            });
            lines += &format!("{line}\r\n");
            if n % 50 == 0 {
                lines += "nonsense\n\n{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"no/such\"}\n";
            }
        }
        peer.line(lines.trim_end()).await;
        for n in 0..200 {
            let answer = peer.said_to(&format!("c{n}")).await;
            assert_eq!(answer["result"]["structuredContent"]["sum"], n + 1, "{answer}");
        }
    }
}

// Whoever writes much before reading anything is served.
#[tokio::test]
async fn answers_wait_for_a_peer_that_writes_first() {
    let long = "x".repeat(400_000);
    for server in both() {
        let mut peer = Peer::legacy(&server, json!({})).await;
        for n in 0..20 {
            // The answer tells the peer of its key, so it is long as well.
            let params = json!({ "name": "add", "arguments": { (long.as_str()): n } });
            peer.send("tools/call", params).await;
        }
        for id in 2..22 {
            assert_eq!(peer.answer(id).await["result"]["isError"], true);
        }
    }
}
