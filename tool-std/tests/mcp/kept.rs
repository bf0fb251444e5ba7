//! Truncated results: the full text is kept for its session only.

#![cfg(unix)]

use serde_json::json;

use crate::peer::{Peer, call, program, text};

// F97
#[test]
fn truncated_results_are_readable_in_the_same_session_only() {
    let peer = || Peer::greet(program(&["--allow", "execute", "serve", "mcp"]), json!({}));
    let mut first = peer();
    let list = first.ask(&call(1, "exec_command", json!({ "cmd": "seq 1 30000" })));
    let told = text(&list);
    let (_, rest) = told.split_once("the whole output is in ").expect("it was too long");
    let path = rest.split([';', ']']).next().expect("a path").to_owned();

    let again = |id| call(id, "read_file", json!({ "path": path, "offset": 2, "limit": 1 }));
    let read = first.ask(&again(2));
    assert_eq!(read["result"]["isError"], false, "{read}");
    assert!(text(&read).starts_with("2: "), "{read}");

    let mut other = peer();
    let denied = other.ask(&again(1));
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    other.hang_up();
    first.hang_up();
}
