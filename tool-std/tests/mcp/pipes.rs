//! The program as an MCP server over stdio.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::peer::{Peer, call, hello, program, text};

#[test]
fn lists_and_calls_tools_over_stdio() {
    let mut peer = Peer::start();
    let list = peer.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let tools = list["result"]["tools"].as_array().expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.is_sorted() && names.contains(&"read_file"), "{names:?}");

    let read = peer.ask(&call(2, "read_file", json!({ "path": "Cargo.toml", "limit": 1 })));
    assert!(text(&read).starts_with("1: [package]"), "{read}");
    let missing = peer.ask(&call(3, "read_file", json!({ "path": "no/such/file" })));
    assert_eq!(missing["result"]["isError"], true);
    let wrong = peer.ask(&call(4, "read_file", json!({ "pth": "Cargo.toml" })));
    assert_eq!(wrong["result"]["isError"], true);
    assert!(text(&wrong).contains("did you mean `path`?"), "{wrong}");
    let outside = peer.ask(&call(5, "read_file", json!({ "path": "/etc/passwd" })));
    assert_eq!(outside["result"]["isError"], true);
    let unknown = peer.ask(&call(6, "red_file", json!({})));
    assert_eq!(unknown["error"]["code"], -32602);

    writeln!(peer.write, "no JSON at all").expect("the program reads");
    let refused = peer.hear();
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &Value::Null));
    let ping = peer.ask(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }));
    assert_eq!(ping["result"], json!({}));
    assert_eq!(peer.hang_up().stderr, b"");
}

#[test]
fn answers_concurrent_calls() {
    let mut peer = Peer::start();
    for id in 1..=10 {
        peer.send(&call(
            id,
            "read_file",
            json!({ "path": "Cargo.toml", "offset": id, "limit": 1 }),
        ));
    }
    let mut heard = Vec::new();
    for _ in 0..10 {
        let answer = peer.hear();
        let id = answer["id"].as_u64().expect("a number");
        assert!(text(&answer).starts_with(&format!("{id}: ")), "{answer}");
        heard.push(id);
    }
    heard.sort_unstable();
    assert_eq!(heard, (1..=10).collect::<Vec<_>>());
    peer.hang_up();
}

// The loop guard detects repeated calls.
#[test]
fn detects_repeated_calls() {
    let mut peer = Peer::start();
    let answers: Vec<Value> =
        (1..=5).map(|id| peer.ask(&call(id, "list_dir", json!({ "path": "src" })))).collect();
    assert_eq!(answers[0]["result"]["isError"], false);
    assert!(answers.iter().any(|answer| text(answer) != text(&answers[0])), "{answers:?}");
    peer.hang_up();
}

#[test]
fn answers_all_requests_before_end_of_input() {
    let mut child = program(&["serve", "mcp"]).spawn().expect("the program runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    let read = call(1, "read_file", json!({ "path": "Cargo.toml", "limit": 1 }));
    write!(stdin, "{}\n{read}", hello("2024-11-05")).expect("the program reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let lines = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 2, "{lines}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(answers[1]["id"], 1);
}

#[test]
fn ends_without_error_on_empty_input() {
    let output = program(&["serve", "mcp"]).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
}
