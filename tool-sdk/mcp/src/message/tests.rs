//! Validation of messages.

use super::*;

#[track_caller]
fn check(text: &str, code: i32, id: Value) {
    let answer = validate_message(text.as_bytes()).expect_err(text).to_response();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{text}");
}

#[test]
fn what_is_no_message_is_told_from_what_is_no_json() {
    for text in ["", "nonsense", "{", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, "\u{1}"] {
        check(text, -32700, Value::Null);
    }
    check(r#"{"jsonrpc":"2.0","id":1,"id":1,"method":5"#, -32700, Value::Null);
    for text in [
        "5",
        "null",
        "[]",
        r#"["2.0",1,"ping"]"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0"}"#,
    ] {
        check(text, -32600, Value::Null);
    }
    check(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, json!(1));
    check(r#"{"jsonrpc":"2.0","id":"a"}"#, -32600, json!("a"));
    assert!(validate_message(b"\xff").is_err());
}

// Whoever wrote the message does not know what it is read into.
#[test]
fn what_is_no_object_is_told_in_the_protocols_words() {
    for text in ["5", "\"a\"", "true"] {
        let answer = validate_message(text.as_bytes()).unwrap_err().to_response();
        let words = answer["error"]["message"].as_str().unwrap();
        assert!(words.contains("expected an object") && !words.contains("struct"), "{words}");
    }
}

// The library would take the last of two equal keys, however deep they stand.
#[test]
fn of_two_equal_keys_none_is_chosen() {
    let twice = r#"{"a":{"action":"accept","content":{"answer":"reject","answer":"once"}}}"#;
    for (method, params) in [
        ("tools/call", format!(r#"{{"name":"t","inputResponses":{twice}}}"#)),
        ("tools/call", r#"{"name":"t","_meta":{"progressToken":1,"progressToken":2}}"#.to_owned()),
        ("prompts/get", format!(r#"{{"name":"t","inputResponses":{twice}}}"#)),
        ("initialize", r#"{"capabilities":{"roots":{},"roots":{}}}"#.to_owned()),
        ("tools/list", r#"{"cursor":"a","cursor":"b"}"#.to_owned()),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        check(&text, -32602, json!(7));
    }
}

// An error with the id of a server request would be taken for the response to a client request.
#[test]
fn an_answer_that_is_none_says_no() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":{"answer":"reject","answer":"once"}}}"#,
    ] {
        let kind = validate_message(text.as_bytes()).expect(text);
        let readable = normalize_for_rmcp(text.as_bytes(), &kind);
        let message: ClientJsonRpcMessage = serde_json::from_slice(&readable).expect(text);
        assert!(matches!(message, JsonRpcMessage::Error(_)), "{text}");
    }
}

#[test]
fn parameters_are_an_object() {
    for params in ["[]", "5", r#""x""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{params}}}"#);
        check(&text, -32602, json!(7));
    }
}

#[test]
fn a_call_has_one_name_and_one_set_of_arguments() {
    for params in [
        r#"{"name":"t","name":"u"}"#,
        r#"{"name":"t","arguments":{},"arguments":{"a":1}}"#,
        r#"{"name":5}"#,
        r#"["t"]"#,
        "{}",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        check(&text, -32602, json!(7));
    }
}

#[test]
fn what_a_revision_has_removed_it_does_not_know() {
    let meta = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    for method in REMOVED_METHODS {
        let text = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#)
        };
        check(&text(meta), -32601, json!(7));
        assert!(validate_message(text("{}").as_bytes()).is_ok(), "{method}");
    }
}

#[test]
fn no_message_is_endlessly_deep() {
    let message = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":{open}{close}}}}}"#)
    };
    assert!(validate_message(message(MAX_DEPTH).as_bytes()).is_ok());
    check(&message(MAX_DEPTH + 1), -32600, Value::Null);
    let words = "[".repeat(MAX_DEPTH) + r#"\"[\\"#;
    let flat = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":"{words}"}}}}"#);
    assert!(validate_message(flat.as_bytes()).is_ok());
}

#[test]
fn arguments_stay_as_they_were_written() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":
        {"name":"t","_meta":{"a":1},"arguments":{"a": 1, "a":2},"more":5}}"#;
    let Ok(MessageKind::ToolCall(RawArguments(arguments))) = validate_message(call.as_bytes())
    else {
        panic!("a call")
    };
    assert_eq!(&*arguments, r#"{"a": 1, "a":2}"#);
    for text in [
        r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/anything","params":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
    ] {
        assert!(matches!(validate_message(text.as_bytes()), Ok(MessageKind::Other)), "{text}");
    }
}

// The error names the invalid member, for the author of the client.
#[test]
fn a_greeting_that_does_not_fit_says_where() {
    let fine = json!({ "name": "t", "version": "1" });
    for (can, client, words) in [
        (json!({ "roots": true }), &fine, "`capabilities.roots`: invalid type: boolean `true`"),
        (json!({ "experimental": { "a": true } }), &fine, "`capabilities.experimental`: "),
        (json!({}), &json!({ "name": "t" }), "missing field `version`"),
    ] {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": can, "clientInfo": client,
        } });
        let message = serde_json::from_value(hello).unwrap();
        let answer = reject_invalid_params(&message).unwrap_err().to_response();
        let told = answer["error"]["message"].as_str().unwrap();
        assert!(told.contains("do not match the protocol: ") && told.contains(words), "{told}");
    }
}
