//! Decoding of messages, compared with rmcp's deserializer.

use serde_json::json;

use super::*;

/// Both, as the library shows a message and as it writes it.
#[track_caller]
fn check(text: &str) {
    let show = |message: Option<ClientJsonRpcMessage>| {
        message.map(|it| (format!("{it:?}"), serde_json::to_value(&it).unwrap()))
    };
    let theirs = serde_json::from_str(text).ok();
    assert_eq!(show(decode_message(text.as_bytes())), show(theirs), "{text}");
}

#[test]
fn requests_are_what_the_library_makes_of_them() {
    let meta = json!({
        "progressToken": 5,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "ada", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let parameters = [
        json!({}),
        json!({ "a": [1, -2, 3.5, 1e300, 18_446_744_073_709_551_615_u64, null, "x"] }),
        json!({ "name": "t", "arguments": { "a": 1 }, "inputResponses": { "q": { "b": 2 } } }),
        json!({ "name": "t", "arguments": { "a": "b" }, "requestState": "s" }),
        json!({ "name": "t", "arguments": 5 }),
        json!({ "name": 5 }),
        json!({ "cursor": "c" }),
        json!({ "cursor": null }),
        json!({ "cursor": 5 }),
        json!({ "level": "debug" }),
        json!({ "level": "loud" }),
        json!({ "uri": "file:///a" }),
        json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" } }),
        json!({ "ref": { "type": "ref/resource", "uri": "u" }, "argument": { "name": "a", "value": "v" },
                "context": { "arguments": { "b": "c" } } }),
        json!({ "ref": { "type": "ref/other" }, "argument": { "name": "a", "value": "v" } }),
        json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["u"] } }),
        json!({ "notifications": 1 }),
        json!({ "taskId": "t" }),
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {} },
                              "experimental": { "x": { "y": 1 } }, "extensions": { "e": {} } },
            "clientInfo": { "name": "ada", "version": "1", "title": "Ada", "icons": [{ "src": "s" }] },
        }),
        json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": { "name": "ada", "version": "1" },
        }),
        json!({ "protocolVersion": "1", "capabilities": 5, "clientInfo": {} }),
    ];
    for method in crate::message::KNOWN_METHODS.iter().copied().chain(["x", "tools/calls", ""]) {
        check(&json!({ "jsonrpc": "2.0", "id": 1, "method": method }).to_string());
        let none = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": null });
        check(&none.to_string());
        for own in &parameters {
            for meta in [None, Some(&meta), Some(&json!({})), Some(&Value::Null), Some(&json!(5))] {
                let mut params = own.clone();
                if let Some(meta) = meta {
                    params["_meta"] = meta.clone();
                }
                for id in [json!(1), json!(-1), json!("a")] {
                    let message =
                        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                    check(&message.to_string());
                }
            }
        }
    }
}

#[test]
fn notifications_are_what_the_library_makes_of_them() {
    let parameters = [
        None,
        Some(Value::Null),
        Some(json!({})),
        Some(json!({ "requestId": 1, "reason": "r" })),
        Some(json!({ "requestId": "a" })),
        Some(json!({ "requestId": {} })),
        Some(json!({ "progressToken": 1, "progress": 0.5, "total": 1, "message": "m" })),
        Some(json!({ "progressToken": "t", "progress": 1, "_meta": { "a": 1 } })),
        Some(json!({ "_meta": { "a": 1 } })),
        Some(json!({ "_meta": [] })),
        Some(json!([])),
        Some(json!(5)),
    ];
    for method in [
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/tools/list_changed",
        "x",
    ] {
        for params in &parameters {
            let mut message = json!({ "jsonrpc": "2.0", "method": method });
            if let Some(params) = params {
                message["params"] = params.clone();
            }
            check(&message.to_string());
        }
    }
}

#[test]
fn answers_are_what_the_library_makes_of_them() {
    for result in [
        json!({}),
        json!({ "x": 1 }),
        json!({ "_meta": { "a": 1 } }),
        json!({ "action": "accept", "content": { "a": 1, "b": [1.5, "x", null] } }),
        json!({ "action": "decline" }),
        json!({ "action": "accept", "_meta": { "a": 1 }, "more": true }),
        json!({ "action": "perhaps" }),
        json!({ "roots": [{ "uri": "file:///a", "name": "a" }] }),
        json!({ "roots": 5 }),
        json!({ "model": "m", "role": "assistant", "content": { "type": "text", "text": "t" } }),
        json!({ "model": "m", "role": "assistant", "stopReason": "endTurn",
                "content": [{ "type": "image", "data": "aGk=", "mimeType": "image/png" },
                            { "type": "tool_use", "id": "1", "name": "t", "input": { "a": 1 } }] }),
        json!({ "model": "m", "role": "nobody", "content": { "type": "text", "text": "t" } }),
        json!(null),
        json!(5),
        json!([1]),
        json!("x"),
    ] {
        check(&json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string());
    }
    for error in [
        json!({ "code": -32601, "message": "m" }),
        json!({ "code": 5, "message": "m", "data": { "a": [1] } }),
        json!({ "code": "5", "message": "m" }),
        json!({ "message": "m" }),
        json!(5),
    ] {
        check(&json!({ "jsonrpc": "2.0", "id": "a", "error": error }).to_string());
    }
}

#[test]
fn what_is_of_two_kinds_is_of_none() {
    for more in [r#""result":{}"#, r#""result":null"#, r#""error":{"code":1,"message":"m"}"#] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping",{more}}}"#));
        check(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/initialized",{more}}}"#));
    }
    check(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#);
    check(r#"{"jsonrpc":"2.0","id":1}"#);
    check("[]");
    check("5");
}

// Many libraries write both fields of an answer. This one would drop it, and its question
// would wait until the client disconnects.
#[test]
fn an_answer_may_say_that_it_is_no_error() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"decline"},"error":null}"#;
    let message = decode_message(text.as_bytes());
    assert!(matches!(
        message,
        Some(JsonRpcMessage::Response(response))
            if matches!(response.result, ClientResult::ElicitResult(_))
    ));
}
