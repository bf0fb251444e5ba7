//! Approval requests of the program as an MCP server, and the settings for them.

use std::process::Command;

use serde_json::{Value, json};

use crate::peer::{Peer, call, program, text};

/// Starts the program, which needs approval for reads, with these options.
fn asking(options: &[&str]) -> Command {
    let options = [&["--ask", "read_file"], options, &["serve", "mcp"]].concat();
    program(&options)
}

fn forms() -> Value {
    json!({ "elicitation": {} })
}

fn read() -> Value {
    call(1, "read_file", json!({ "path": "Cargo.toml", "limit": 1 }))
}

fn answered(action: &str, answer: &str) -> Value {
    json!({ "action": action, "content": { "answer": answer } })
}

#[track_caller]
fn check(result: &Value, allowed: bool) {
    assert_eq!(result["result"]["isError"], !allowed, "{result}");
    assert_eq!(text(result).starts_with("1: [package]"), allowed, "{result}");
}

#[test]
fn requests_approval_by_elicitation() {
    for (answer, allowed) in [
        (answered("accept", "once"), true),
        (answered("accept", "reject"), false),
        (answered("decline", "once"), false),
    ] {
        let mut peer = Peer::greet(asking(&[]), forms());
        peer.send(&read());
        let question = peer.hear();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let shown = question["params"]["message"].as_str().expect("a text");
        assert!(shown.contains("read_file") && shown.contains("Cargo.toml"), "{shown}");
        peer.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
        check(&peer.hear(), allowed);
        peer.hang_up();
    }
}

// A client that fails to ask its user has not approved.
#[test]
fn a_failed_elicitation_is_not_a_rejection() {
    for (answer, words) in [
        (json!({ "result": answered("decline", "once") }), "the user rejected it"),
        (json!({ "error": { "code": -32603, "message": "x" } }), "the client did not answer"),
        (json!({ "result": { "action": "shrug" } }), "the client did not answer"),
    ] {
        let mut peer = Peer::greet(asking(&[]), forms());
        peer.send(&read());
        let mut reply = answer.clone();
        reply["jsonrpc"] = "2.0".into();
        reply["id"] = peer.hear()["id"].clone();
        peer.send(&reply);
        let denied = peer.hear();
        check(&denied, false);
        assert!(text(&denied).contains(words), "{answer}: {denied}");
        peer.hang_up();
    }
}

#[test]
fn requests_approval_as_required_input() {
    let read = |more: Value| {
        let mut read = read();
        for (key, value) in more.as_object().expect("an object") {
            read["params"][key] = value.clone();
        }
        read["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": forms(),
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "1" },
        });
        read
    };
    for (answer, allowed) in [
        (answered("accept", "once"), true),
        (answered("accept", "reject"), false),
        (answered("decline", "once"), false),
    ] {
        let mut peer = Peer::silent(asking(&[]));
        let wanted = peer.ask(&read(json!({})));
        assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
        let question = &wanted["result"]["inputRequests"]["approval"];
        assert_eq!(question["method"], "elicitation/create", "{wanted}");
        let state = &wanted["result"]["requestState"];
        let again = json!({ "requestState": state, "inputResponses": { "approval": answer } });
        check(&peer.ask(&read(again)), allowed);
        peer.hang_up();
    }
}

#[test]
fn does_not_request_approval_for_a_known_decision() {
    for (options, allowed) in [
        (&["--no-input"][..], false),
        (&["--yes"], true),
        (&["--deny", "read_file"], false),
        (&["--yes", "--deny", "read_file(Cargo.toml)"], false),
    ] {
        let mut peer = Peer::greet(asking(options), forms());
        check(&peer.ask(&read()), allowed);
        peer.hang_up();
    }
}

// A call that cannot be approved is denied, and the denial names the rule that would help.
#[test]
fn denies_without_an_approver() {
    let mut peer = Peer::greet(asking(&[]), json!({}));
    let denied = peer.ask(&read());
    check(&denied, false);
    assert!(text(&denied).contains("`allow read(Cargo.toml)` would allow it"), "{denied}");
    peer.hang_up();
}

// An approver command of the user decides calls of every surface.
#[cfg(unix)]
#[test]
fn hook_commands_decide_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    let hook = r#"{ type = "command", command = "echo not today >&2; exit 2" }"#;
    let hooks = format!("[hooks]\nPreToolUse = [{{ matcher = \"read_*\", hooks = [{hook}] }}]\n");
    std::fs::write(&config, hooks).expect("it can be written");
    let mut program = program(&["--yes", "--config"]);
    program.arg(&config).args(["serve", "mcp"]);
    let mut peer = Peer::greet(program, forms());
    let denied = peer.ask(&read());
    check(&denied, false);
    assert!(text(&denied).contains("not today"), "{denied}");
    let list = peer.ask(&call(2, "list_dir", json!({ "path": "." })));
    assert_eq!(list["result"]["isError"], false, "{list}");
    peer.hang_up();
}
