//! `serve mcp --roots-from-client`: the folders of the client can be read, and not written.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::peer::{Peer, call, program};

/// Starts a server for a client that lists this folder as its root.
fn start(args: &[&str], folder: &Path) -> Peer {
    let args = [&["serve", "mcp"], args].concat();
    let mut server = program(&args);
    server.env("TOOL_SDK_ROOTS_FROM_CLIENT", if args.len() == 2 { "false" } else { "true" });
    let mut peer = Peer::greet(server, json!({ "roots": { "listChanged": true } }));
    if args.len() > 2 {
        answer_roots(&mut peer, folder);
    }
    peer
}

fn answer_roots(peer: &mut Peer, folder: &Path) {
    let asked = peer.hear();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let roots = json!([{ "uri": format!("file://{}", folder.display()) }]);
    peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": roots } }));
}

fn read(peer: &mut Peer, path: &Path) -> Value {
    peer.send(&call(7, "read_file", json!({ "path": path })));
    peer.hear()
}

#[test]
fn tools_read_the_folders_of_the_client_and_do_not_write_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("note.txt");
    fs::write(&file, "a note of the client\n").unwrap();

    let mut peer = start(&["--roots-from-client"], folder.path());
    let answer = read(&mut peer, &file);
    assert!(answer["result"].to_string().contains("a note of the client"), "{answer}");
    let content = json!({ "path": file, "content": "changed" });
    peer.send(&call(8, "write_file", content));
    assert_eq!(peer.hear()["result"]["isError"], true);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a note of the client\n");

    // The client works in another folder now.
    let other = tempfile::tempdir().unwrap();
    peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    answer_roots(&mut peer, other.path());
    assert_eq!(read(&mut peer, &file)["result"]["isError"], true);
}

// A client of 2026-07-28 has no roots outside of calls.
#[test]
fn a_modern_client_is_asked_by_its_first_call() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("note.txt");
    fs::write(&file, "a note of the client\n").unwrap();
    let read = |id: u64, answers: Option<Value>| {
        let mut read = call(id, "read_file", json!({ "path": file }));
        read["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "roots": {} },
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "1" },
        });
        if let Some(answers) = answers {
            read["params"]["inputResponses"] = answers;
        }
        read
    };
    let mut peer = Peer::silent(program(&["serve", "mcp", "--roots-from-client"]));
    let wanted = peer.ask(&read(1, None));
    assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
    let (key, request) =
        wanted["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], "roots/list", "{wanted}");
    let roots = json!([{ "uri": format!("file://{}", folder.path().display()) }]);
    let answers = json!({ key: { "roots": roots } });
    for repeated in [read(2, Some(answers)), read(3, None)] {
        let answer = peer.ask(&repeated);
        assert!(answer["result"].to_string().contains("a note of the client"), "{answer}");
    }

    // An answer that is not a list counts, so that the client is not asked in a loop.
    let mut peer = Peer::silent(program(&["serve", "mcp", "--roots-from-client"]));
    let answer = peer.ask(&read(1, Some(json!({ key: { "action": "cancel" } }))));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[test]
fn without_the_option_the_client_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("note.txt");
    fs::write(&file, "a note of the client\n").unwrap();
    let mut peer = start(&[], folder.path());
    let answer = read(&mut peer, &file);
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(7), &json!(true)));
}

#[test]
fn folders_with_files_of_the_program_are_not_used() {
    let state = tempfile::tempdir().unwrap();
    let secret = state.path().join("secret");
    fs::write(&secret, "a token\n").unwrap();
    let mut server = program(&["serve", "mcp", "--roots-from-client"]);
    server.arg("--state-dir").arg(state.path());
    let mut peer = Peer::greet(server, json!({ "roots": {} }));
    answer_roots(&mut peer, state.path());
    assert_eq!(read(&mut peer, &secret)["result"]["isError"], true);
}

#[test]
fn the_option_is_an_error_over_http() {
    let refused = program(&["serve", "mcp", "--roots-from-client", "--http", "127.0.0.1:0"]);
    let refused = { refused }.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("has no effect over HTTP"), "{said}");
}
