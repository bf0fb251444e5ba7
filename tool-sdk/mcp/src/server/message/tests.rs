//! Parsing and validation of messages.

use rmcp::model::{GetPromptRequestParams, PaginatedRequestParams};
use serde_json::json;

use super::*;
use crate::server::response::JsonRpcResponse;

#[track_caller]
fn parse(text: &str) -> ClientMessage {
    parse_message(text.as_bytes()).expect(text)
}

#[track_caller]
fn parse_request(method: &str, params: &str) -> ClientRequest {
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    match parse(&text) {
        ClientMessage::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

/// Checks that a message is refused with this code and this id.
#[track_caller]
fn check_refused(text: &str, code: i32, id: &Value) {
    let refused = parse_message(text.as_bytes()).expect_err(text);
    let response: Value = serde_json::from_slice(&JsonRpcResponse::from(refused).text).unwrap();
    assert_eq!((&response["error"]["code"], &response["id"]), (&json!(code), id), "{text}");
}

#[test]
fn distinguishes_invalid_messages_from_invalid_json() {
    for text in ["", "nonsense", "{", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, "\u{1}"] {
        check_refused(text, -32700, &Value::Null);
    }
    check_refused(r#"{"jsonrpc":"2.0","id":1,"id":1,"method":5"#, -32700, &Value::Null);
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
        check_refused(text, -32600, &Value::Null);
    }
    check_refused(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, &json!(1));
    check_refused(r#"{"jsonrpc":"2.0","id":"a"}"#, -32600, &json!("a"));
    assert!(parse_message(b"\xff").is_err());
}

// The author of the client does not know the types of this program.
#[test]
fn describes_errors_in_terms_of_the_protocol() {
    for text in ["5", "\"a\"", "true"] {
        let words = parse_message(text.as_bytes()).unwrap_err().error.message;
        assert!(words.contains("expected an object") && !words.contains("struct"), "{words}");
    }
}

// serde would take the last of two equal keys, at any depth.
#[test]
fn refuses_duplicate_keys() {
    for params in [
        r#"{"name":"t","name":"u"}"#,
        r#"{"name":"t","arguments":{},"arguments":{"a":1}}"#,
        r#"{"_meta":{"progressToken":1,"progressToken":2}}"#,
        r#"{"cursor":"a","cursor":"b"}"#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{params}}}"#);
        check_refused(&text, -32602, &json!(7));
    }
    let nested = r#"{"a":{"action":"accept","content":{"answer":"reject","answer":"once"}}}"#;
    let request = parse_request("tools/call", &format!(r#"{{"inputResponses":{nested}}}"#));
    assert!(request.params.member::<Value>("inputResponses").is_err());
    let params = format!(r#"{{"name":"t","inputResponses":{nested}}}"#);
    let request = parse_request("prompts/get", &params);
    assert!(request.params.decode::<GetPromptRequestParams>("prompts/get").is_err());
}

#[test]
fn an_invalid_response_is_an_error_for_the_request_that_waits() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":{"answer":"reject","answer":"once"}}}"#,
    ] {
        assert!(matches!(parse(text), ClientMessage::Response { answer: Err(_), .. }), "{text}");
    }
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#;
    let ClientMessage::Response { answer: Ok(answer), .. } = parse(text) else { panic!("{text}") };
    assert_eq!(answer, json!({ "a": 1 }));
}

// A client may report that it could not read a message; a response to it would never end.
#[test]
fn an_error_without_an_id_gets_no_response() {
    for id in ["", r#","id":null"#] {
        let text = format!(r#"{{"jsonrpc":"2.0"{id},"error":{{"code":-32700,"message":"no"}}}}"#);
        assert!(matches!(parse(&text), ClientMessage::Response { id: None, .. }), "{text}");
    }
}

#[test]
fn parameters_are_an_object() {
    for params in ["[]", "5", r#""x""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{params}}}"#);
        check_refused(&text, -32602, &json!(7));
        let text = format!(r#"{{"jsonrpc":"2.0","method":"ping","params":{params}}}"#);
        assert!(matches!(parse(&text), ClientMessage::Notification { .. }), "{text}");
    }
}

#[test]
fn decodes_parameters() {
    let request = parse_request("m", r#"{"name":"t","cursor":null,"n":5,"uri":"a:b"}"#);
    let params = &request.params;
    assert_eq!(params.required::<String>("name").unwrap(), "t");
    assert_eq!(params.member::<String>("cursor").unwrap(), None);
    for missing in ["n", "cursor", "none"] {
        let error = params.required::<String>(missing).unwrap_err();
        assert!(error.message.contains(&format!("`{missing}`")), "{}", error.message);
    }
    assert_eq!(params.decode::<PaginatedRequestParams>("m").unwrap().cursor, None);
    let error = params.decode::<rmcp::model::CompleteRequestParams>("m").unwrap_err();
    assert!(error.message.contains("`params` of `m`"), "{}", error.message);
}

#[test]
fn bounds_the_depth_of_a_message() {
    let message = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":{open}{close}}}}}"#)
    };
    assert!(parse_message(message(MAX_DEPTH).as_bytes()).is_ok());
    check_refused(&message(MAX_DEPTH + 1), -32600, &Value::Null);
    let words = "[".repeat(MAX_DEPTH) + r#"\"[\\"#;
    let flat = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":"{words}"}}}}"#);
    assert!(parse_message(flat.as_bytes()).is_ok());
}

#[test]
fn keeps_arguments_as_they_were_written() {
    let request = parse_request(
        "tools/call",
        r#"{"name":"t","_meta":{"a":1},"arguments":{"a": 1, "a":2},"more":5}"#,
    );
    assert_eq!(request.params.get("arguments").unwrap().get(), r#"{"a": 1, "a":2}"#);
    assert_eq!(request.meta.get("a"), Some(&json!(1)));
}

#[test]
fn reads_the_id_from_the_front_of_a_request() {
    let id = |front: &str| MessageFront::parse(front.as_bytes()).request_id();
    for front in [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"aaa"#,
        r#"{"method":"tools/call","id":7,"params":{"x":{"id":8},"y"#,
    ] {
        assert_eq!(id(front), Some(RequestId::Number(7)), "{front}");
    }
    for front in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"x":"aaa"#,
        r#"{"method":"tools/call","params":{"id":7,"x":"aaa"#,
        r#"{"jsonrpc":"2.0","method":"m","id"#,
        "nonsense",
        "",
    ] {
        assert_eq!(id(front), None, "{front}");
    }
}
