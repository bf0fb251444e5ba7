//! Questions to the user of an MCP client, and plan mode over MCP.

#[cfg(unix)]
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::peer::{Peer, call, program, text};

fn forms() -> Value {
    json!({ "elicitation": {} })
}

/// Reads the next message that is not a log message.
fn hear(peer: &mut Peer) -> Value {
    loop {
        let message = peer.hear();
        if message["method"] != "notifications/message" {
            return message;
        }
    }
}

fn ask(peer: &mut Peer, message: &Value) -> Value {
    peer.send(message);
    hear(peer)
}

/// Answers the form that the server sends next.
fn answer_form(peer: &mut Peer, answer: &Value) -> Value {
    let form = hear(peer);
    assert_eq!(form["method"], "elicitation/create", "{form}");
    peer.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": answer }));
    form["params"].clone()
}

// F153: a question is an elicitation, and its answer the result.
#[test]
fn questions_are_elicitations() {
    let mut peer = Peer::greet(program(&["serve", "mcp"]), forms());
    peer.send(&call(1, "ask_clarification", json!({ "question": "Which port?" })));
    let answer = json!({ "action": "accept", "content": { "answer": "8080" } });
    let form = answer_form(&mut peer, &answer);
    assert_eq!(form["message"], "Which port?");
    let answered = hear(&mut peer);
    assert_eq!(text(&answered), "The user answered: 8080");
    assert_eq!(answered["result"]["structuredContent"]["outcome"], "answered", "{answered}");

    let options = json!([{ "label": "tea" }, { "label": "coffee" }]);
    for (mode, content, expected) in [
        ("single", json!({ "choice": "tea" }), "The user chose: \"tea\""),
        ("multiple", json!({ "choice": ["coffee", "tea"] }), "The user chose: \"coffee\", \"tea\""),
        ("single", json!({ "other": "water" }), "The user answered in their own words: water"),
    ] {
        let arguments = json!({ "question": "Which?", "options": options, "selection_mode": mode });
        peer.send(&call(2, "request_decision", arguments));
        answer_form(&mut peer, &json!({ "action": "accept", "content": content }));
        assert_eq!(text(&hear(&mut peer)), expected);
    }
    for (action, expected) in [("decline", "declined"), ("cancel", "cancelled")] {
        peer.send(&call(3, "ask_clarification", json!({ "question": "Which port?" })));
        answer_form(&mut peer, &json!({ "action": action }));
        let outcome = hear(&mut peer);
        assert_eq!(outcome["result"]["isError"], false, "{outcome}");
        assert_eq!(outcome["result"]["structuredContent"]["outcome"], expected, "{outcome}");
    }
    peer.hang_up();
}

// F153: a client without forms cannot be asked, and the model reads that at once.
#[test]
fn a_client_without_forms_is_not_asked() {
    let mut peer = Peer::greet(program(&["serve", "mcp"]), json!({}));
    let refused =
        ask(&mut peer, &call(1, "ask_clarification", json!({ "question": "Which port?" })));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(text(&refused).contains("decide yourself"), "{refused}");
    peer.hang_up();
}

// F155: in plan mode, commands and tools that change something are refused, until the user has
// approved the plan.
#[cfg(unix)]
#[test]
fn plan_mode_refuses_changes_until_the_plan_is_approved() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = program(&["--yes", "--root"]);
    server.arg(folder.path()).args(["--mode", "auto", "serve", "mcp"]);
    // `--yes` approves every call, and does not lift plan mode.
    let mut peer = Peer::greet(server, forms());
    let file = folder.path().join("made.txt");
    let touch = format!("touch {}", file.display());
    let changes = [
        call(2, "exec_command", json!({ "cmd": touch })),
        call(3, "write_file", json!({ "path": "made.txt", "content": "x" })),
    ];
    let entered = ask(&mut peer, &call(1, "plan_enter", json!({ "plan": "1. touch it" })));
    assert_eq!(entered["result"]["isError"], false, "{entered}");
    for change in &changes {
        let refused = ask(&mut peer, change);
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert!(text(&refused).contains("`plan`"), "{refused}");
        assert!(!file.exists());
    }
    let looked = ask(&mut peer, &call(4, "exec_command", json!({ "cmd": "ls" })));
    assert_eq!(looked["result"]["isError"], false, "{looked}");
    let left = ask(&mut peer, &call(5, "plan_exit", json!({})));
    assert_eq!(left["result"]["isError"], false, "{left}");
    assert!(text(&left).contains("1. touch it"), "{left}");
    let changed = ask(&mut peer, &changes[0]);
    assert_eq!(changed["result"]["isError"], false, "{changed}");
    assert!(file.exists());
    peer.hang_up();
}

// F155: without `--yes`, the client's user sees the plan.
#[test]
fn the_user_of_the_client_approves_the_plan() {
    let mut peer = Peer::greet(program(&["serve", "mcp"]), forms());
    ask(&mut peer, &call(1, "plan_enter", json!({ "plan": "1. a plan to read" })));
    for (answer, is_left) in [("reject", false), ("once", true)] {
        peer.send(&call(2, "plan_exit", json!({})));
        let answer = json!({ "action": "accept", "content": { "answer": answer } });
        let form = answer_form(&mut peer, &answer);
        let shown = form["message"].as_str().expect("a text");
        assert!(shown.contains("1. a plan to read"), "{shown}");
        let ended = hear(&mut peer);
        assert_eq!(ended["result"]["isError"], !is_left, "{ended}");
    }
    peer.hang_up();
}

// F157: a program that is killed while it writes the ledger loses nothing that it acknowledged, and
// the next program goes on.
#[cfg(unix)]
#[test]
fn a_killed_program_loses_no_acknowledged_mutation() {
    let (work, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    let start = || {
        let mut server = Command::new(env!("CARGO_BIN_EXE_tool-std"));
        server.arg("--root").arg(work.path()).arg("--state-dir").arg(state.path());
        server.args(["serve", "mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        server.stderr(Stdio::piped());
        Peer::greet(server, json!({}))
    };
    let mut acknowledged = Vec::new();
    for round in 0..20 {
        let mut peer = start();
        for id in 0..30 {
            let action = json!({ "action": format!("{round} {id}") });
            peer.send(&call(id + 1, "mutation_begin", action));
        }
        for _ in 0..=round {
            let begun = hear(&mut peer);
            let id = &begun["result"]["structuredContent"]["id"];
            acknowledged.push(id.as_str().expect("an id").to_owned());
        }
        peer.kill();
    }
    let mut peer = start();
    for id in &acknowledged {
        let status = call(1, "mutation_status", json!({ "transaction_id": id }));
        let status = ask(&mut peer, &status);
        assert_eq!(status["result"]["isError"], false, "{status}");
    }
    assert_eq!(acknowledged.len(), 210);
    peer.hang_up();
}
