//! Response bodies of HTTP servers: JSON and SSE are decoded with the same tolerance as stdio lines.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_stub::{HttpStub, RecordedRequest, StubReply, status};
use tool_sdk_core::ErrorKind;

use super::http::{at, failed};
use super::*;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

fn body(status: &str, kind: &str, body: &str) -> StubReply {
    StubReply::Raw(format!(
        "{status}\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// Returns the members of a 2025 server's response, without braces; `None` for a method it does not
/// know.
fn members(asked: &RecordedRequest) -> Option<String> {
    let result = match asked.message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-03-26", "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        }),
        "tools/list" => {
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => json!({ "content": [{ "type": "text", "text": "heard" }] }),
        _ => return None,
    };
    Some(format!(r#""jsonrpc":"2.0","id":{},"result":{result}"#, asked.message["id"]))
}

/// A server that writes all responses with `write`.
fn writing(write: impl Fn(&str) -> StubReply + Send + Sync + 'static) -> HttpStub {
    HttpStub::start(move |asked| members(asked).map_or(StubReply::Usual, |members| write(&members)))
}

async fn check(web: &HttpStub, what: &str) {
    let setting = at(web);
    let connected = setting.servers.connect("s").await;
    let met = connected.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(met.tools, ["mcp__s__echo"], "{what}");
    assert_eq!(setting.call("echo", "{}").await.text(), "heard", "{what}");
}

// F117: every transport accepts the same malformed responses.
#[tokio::test]
async fn http_accepts_what_stdio_accepts() {
    let log =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    for (before, after) in [
        ("{", "}"),
        ("{", r#","error":null}"#),
        (r#"{"error": null,"method":null,"params":null,"#, "}"),
        ("\u{feff}{", "}"),
        ("\u{feff}{", r#","error":null}"#),
        (r#"{"extra":"\ud83d","#, "}"),
        ("[{", "}]"),
        ("\u{feff} [{", r#","error":null}]"#),
        (&*format!("[{log},{{"), r#"},5,{"id":1}]"#),
        (r#"[{"jsonrpc":"2.0","id":4711,"result":{}},{"#, "}]"),
    ] {
        for kind in [
            JSON,
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "Application/JSON",
            EVENTS,
            "text/event-stream; charset=utf-8",
            "Text/Event-Stream",
        ] {
            let (before, after) = (before.to_owned(), after.to_owned());
            let what = format!("{kind}: {before}..{after}");
            let is_stream = kind.eq_ignore_ascii_case(EVENTS) || kind.starts_with(EVENTS);
            let web = writing(move |members| match is_stream {
                true => body("200 OK", kind, &format!("data: {before}{members}{after}\n\n")),
                false => body("200 OK", kind, &format!("{before}{members}{after}")),
            });
            check(&web, &what).await;
        }
    }
}

#[tokio::test]
async fn any_response_to_a_notification_is_accepted() {
    let open = |kind: &str, body: &str| {
        StubReply::Raw(format!("200 OK\r\n{kind}Connection: close\r\n\r\n{body}"))
    };
    for reply in [
        status("202 Accepted"),
        status("204 No Content"),
        status("200 OK"),
        open("", ""),
        open("Content-Type: application/json\r\n", ""),
        body("200 OK", JSON, ""),
        body("200 OK", JSON, "null"),
        body("200 OK", JSON, "{}"),
        body("200 OK", JSON, "[]"),
        body("200 OK", JSON, r#"{"jsonrpc":"2.0","id":null,"result":null,"error":null}"#),
        body("200 OK", "text/html", "<p>it is here"),
        body("202 Accepted", "text/plain", "Accepted"),
    ] {
        let what = format!("{reply:?}");
        let web = HttpStub::start(move |asked| {
            match (members(asked), asked.method.as_str(), asked.message["id"].is_null()) {
                (Some(members), ..) => body("200 OK", JSON, &format!("{{{members}}}")),
                (None, "POST", true) => reply.clone(),
                _ => StubReply::Usual,
            }
        });
        check(&web, &what).await;
        assert_eq!(web.count("notifications/initialized"), 1, "{what}");
    }
}

// fault 10
#[tokio::test]
async fn unreadable_json_body_is_a_protocol_error() {
    for (said, words) in [
        (r#"{"jsonrpc":"2.0","id":ID,"error":"boom"}"#, "the server's response cannot be parsed"),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"x":NaN}}"#,
            "the server's response cannot be parsed",
        ),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"#, "the server's response cannot be parsed"),
        (r#"{"jsonrpc":"2.0","id":ID}"#, "the server's response cannot be parsed"),
        ("nonsense", "not a JSON-RPC message"),
        ("", "not a JSON-RPC message"),
        ("[]", "something else instead of a response"),
        ("[nonsense]", "something else instead of a response"),
        (r#"[{"jsonrpc":"2.0","id":4711,"result":{}}]"#, "something else instead"),
        (r#"[{"jsonrpc":"2.0","id":ID,"error":5}]"#, "the server's response cannot be parsed"),
    ] {
        let web = HttpStub::start(move |asked| match asked.is("tools/call") {
            true => body("200 OK", JSON, &said.replace("ID", &asked.message["id"].to_string())),
            false => StubReply::Usual,
        });
        let setting = at(&web);
        setting.connect().await;
        let (kind, told) = failed(&setting).await;
        assert!(kind == ErrorKind::Failed && told.contains(words), "{said}: {told}");
        assert!(setting.servers.status("s").unwrap().connected, "others may still be answered");
    }
}

// fault 10: a body that is too long is not read to its end.
#[tokio::test]
async fn oversized_body_is_not_read_to_its_end() {
    const MOST_READ: usize = 64 << 20;
    let ok = "200 OK\r\nConnection: close\r\nContent-Type:";
    let broken = "500 Internal Server Error\r\nConnection: close\r\nContent-Type:";
    let length = "Content-Length: 1073741824\r\n";
    for (head, words) in [
        (format!("{ok} {JSON}\r\n\r\n{{\"x\":\""), "a message of more than 4194304 bytes"),
        (format!("{ok} {JSON}\r\n{length}\r\n"), "a message of more than 4194304 bytes"),
        (format!("{ok} {EVENTS}\r\n\r\ndata: "), "a message of more than 4194304 bytes"),
        (format!("{ok} {EVENTS}\r\n\r\n: "), "a message of more than 4194304 bytes"),
        (format!("{broken} {JSON}\r\n\r\n{{\"x\":\""), "the server failed (HTTP 500)"),
        (format!("{broken} text/plain\r\n\r\n"), "the server failed (HTTP 500)"),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let flood = StubReply::Flood(head.clone(), Arc::clone(&count));
        let web = HttpStub::start(move |asked| match asked.is("tools/call") {
            true => flood.clone(),
            false => StubReply::Usual,
        });
        let setting = at(&web);
        setting.connect().await;
        let (_, told) = failed(&setting).await;
        assert!(told.contains(words), "{head}: {told}");
        let read = count.load(Ordering::Relaxed);
        assert!(read < MOST_READ, "{head}: {read}");
    }
}
