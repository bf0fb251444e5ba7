//! Streamable HTTP: authentication, handshakes, SSE, error statuses and cancellation.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_stub::{HttpStub, RecordedRequest, StubReply, said, status};
use tool_sdk_core::ErrorKind;

use super::*;
use crate::{ErrorClass, HttpEndpoint};

/// A pipeline in which the tools of the HTTP server may run.
pub(super) fn at(web: &HttpStub) -> TestHost {
    to(HttpEndpoint::new(&web.url()).unwrap())
}

fn to(address: HttpEndpoint) -> TestHost {
    let setting = TestHost::trusting(|_| Vec::new());
    setting.servers.remove("s");
    let upstream =
        ServerConfig::new("s", address).unwrap().startup_timeout(Duration::from_secs(60));
    setting.servers.add(upstream).unwrap();
    setting
}

/// A server that answers calls with `reply`, and has defaults for the rest.
fn calls(reply: impl Fn(&RecordedRequest) -> StubReply + Send + Sync + 'static) -> HttpStub {
    HttpStub::start(
        move |asked| if asked.is("tools/call") { reply(asked) } else { StubReply::Usual },
    )
}

pub(super) async fn failed(setting: &TestHost) -> (ErrorKind, String) {
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    (error.kind(), error.to_string())
}

// F117
#[tokio::test]
async fn token_and_headers_are_sent_with_every_request() {
    let web = HttpStub::start(|_| StubReply::Usual);
    let address = HttpEndpoint::new(&web.url())
        .unwrap()
        .bearer_token("s3cret")
        .header("X-Team", "a")
        .unwrap();
    let setting = to(address);
    assert_eq!(setting.connect().await.tools, ["mcp__s__echo"]);
    assert_eq!(setting.call("echo", r#"{"text": "hi"}"#).await.text(), "hi");
    for asked in web.requests() {
        assert!(asked.has("authorization: bearer s3cret") && asked.has("x-team: a"), "{asked:?}");
    }
}

// F117: a rejected token is reported, and is not sent elsewhere.
#[tokio::test]
async fn rejected_token_is_reported() {
    let web = HttpStub::start(|_| {
        StubReply::Raw(
            "401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\n\
             Content-Length: 0\r\n\r\n"
                .to_owned(),
        )
    });
    let error = at(&web).servers.connect("s").await.unwrap_err();
    assert!(error.message.contains("requires a valid token"), "{error}");

    let elsewhere = HttpStub::start(|_| StubReply::Usual);
    let place = elsewhere.url();
    let web = HttpStub::start(move |_| {
        StubReply::Raw(format!(
            "307 Temporary Redirect\r\nLocation: {place}\r\nConnection: close\r\n\
             Content-Length: 0\r\n\r\n"
        ))
    });
    let setting = to(HttpEndpoint::new(&web.url()).unwrap().bearer_token("s3cret"));
    setting.servers.connect("s").await.unwrap_err();
    assert!(elsewhere.requests().is_empty(), "{:?}", elsewhere.requests());
}

// A 2025 server is connected, in whichever way it rejects an unknown method.
#[tokio::test]
async fn connects_to_2025_servers_after_any_first_response() {
    let json = |body: &str| {
        StubReply::Raw(format!(
            "200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    for odd in [
        status("400 Bad Request"),
        status("404 Not Found"),
        status("405 Method Not Allowed"),
        status("406 Not Acceptable"),
        status("500 Internal Server Error"),
        status("202 Accepted"),
        status("200 OK"),
        json("nonsense"),
        json("[]"),
        StubReply::Result(json!({})),
        StubReply::Result(json!(null)),
        StubReply::Result(json!({ "supportedVersions": [] })),
    ] {
        let first = odd.clone();
        let web = HttpStub::start(move |asked| match asked.is("server/discover") {
            true => first.clone(),
            false => StubReply::Usual,
        });
        let setting = at(&web);
        let connected = setting.servers.connect("s").await;
        let status = connected.unwrap_or_else(|error| panic!("{odd:?}: {error}"));
        assert_eq!(status.tools, ["mcp__s__echo"], "{odd:?}");
        // The 2026 version has no `initialize`.
        for asked in web.requests().iter().filter(|asked| !asked.is("server/discover")) {
            let params = &asked.message["params"];
            let version = &params["protocolVersion"];
            assert!(!asked.is("initialize") || version == "2025-11-25", "{odd:?}: {asked:?}");
            assert!(!asked.has("mcp-protocol-version: 2026-07-28"), "{odd:?}: {asked:?}");
            let modern = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
            assert!(modern.is_null(), "{odd:?}: {asked:?}");
        }
    }
}

// A server with an unknown protocol version is disconnected.
#[tokio::test]
async fn unknown_protocol_version_ends_the_connection() {
    for version in ["2042-01-01", "2026-07-28", "1"] {
        let web = HttpStub::start(move |asked| match asked.is("initialize") {
            true => StubReply::Result(json!({
                "protocolVersion": version, "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" },
            })),
            false => StubReply::Usual,
        });
        let error = at(&web).servers.connect("s").await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Protocol, "{error}");
        assert!(error.message.contains(&format!("protocol version {version}")), "{error}");
        assert_eq!(web.count("tools/list"), 0, "{version}");
    }
}

// MC9: a response to another request is dropped, and the next one is used.
#[tokio::test]
async fn response_to_another_request_is_dropped() {
    let web = calls(|asked| {
        let answer = |id: &Value, text: &str| {
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        };
        let (forged, own) = (answer(&json!(7), "forged"), answer(&asked.message["id"], "own"));
        let body = format!("data: {forged}\n\ndata: {own}\n\n");
        StubReply::Raw(format!(
            "200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    });
    let setting = at(&web);
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "own");
}

#[tokio::test]
async fn oversized_response_is_reported() {
    let web = calls(|asked| {
        let text = "x".repeat(17 << 20);
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        StubReply::Raw(said(
            &json!({ "jsonrpc": "2.0", "id": asked.message["id"], "result": result }),
        ))
    });
    let setting = at(&web);
    setting.connect().await;
    let (kind, words) = failed(&setting).await;
    assert!(kind == ErrorKind::Failed && words.contains("a message of more than"), "{words}");
}

/// An SSE response whose last event has this data.
fn events(data: &str) -> StubReply {
    let body = format!(": hello\n\ndata: nonsense\n\ndata: {data}\n\n");
    StubReply::Raw(format!(
        "200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// A server that sends `first` before each of its responses.
fn beginning(first: &'static str, is_modern: bool) -> HttpStub {
    let about = json!({
        "protocolVersion": "2025-11-25", "supportedVersions": ["2026-07-28"],
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" },
        "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }],
        "content": [{ "type": "text", "text": "heard" }],
    });
    let of = |names: &[&str]| names.iter().map(|name| (*name, about[name].clone())).collect();
    let cached = ["resultType", "ttlMs", "cacheScope"];
    let answers: [(_, Value); 4] = [
        ("initialize", of(&["protocolVersion", "capabilities", "serverInfo"])),
        (
            "server/discover",
            of(&[&cached[..], &["supportedVersions", "capabilities", "serverInfo"]].concat()),
        ),
        ("tools/list", of(&[&cached[..], &["tools"]].concat())),
        ("tools/call", of(&["resultType", "content"])),
    ];
    HttpStub::start(move |asked| {
        let known = answers.iter().find(|(method, _)| asked.is(method));
        let Some((method, result)) = known else { return StubReply::Usual };
        if *method == "server/discover" && !is_modern {
            return StubReply::Usual;
        }
        let answer = json!({ "jsonrpc": "2.0", "id": asked.message["id"], "result": result });
        let body = format!("{first}event: message\ndata: {answer}\n\n");
        StubReply::Raw(format!(
            "200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    })
}

// Frameworks send events of their own to keep streams alive, also in the first response.
#[tokio::test]
async fn events_of_other_types_are_skipped() {
    for first in [
        "event: ping\ndata: {}\n\n",
        "event: ping\ndata: 2026-11-23 08:00:00+00:00\n\n",
        "event: ping\ndata: [{}, {}]\n\n",
        "event: ping\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n\n",
        "event: ping\n\n",
        ": ping\n\n",
        "data:\n\n",
        "event: message\ndata:\n\n",
        "id: 1\nretry: 500\ndata:\n\n",
        "event: open\nid: 1\ndata: {}\n\n",
    ] {
        for is_modern in [false, true] {
            let web = beginning(first, is_modern);
            let setting = at(&web);
            let connected = setting.servers.connect("s").await;
            let status = connected.unwrap_or_else(|error| panic!("{first:?}: {error}"));
            assert_eq!(status.tools, ["mcp__s__echo"], "{first:?}");
            assert_eq!(setting.call("echo", "{}").await.text(), "heard", "{first:?}");
            assert_eq!(web.count("initialize"), usize::from(!is_modern), "{first:?}");
        }
    }
}

// An event of type `message` that is not JSON-RPC is an error.
#[tokio::test]
async fn malformed_first_event_is_reported() {
    let web = HttpStub::start(|asked| match asked.is("initialize") {
        true => events("nonsense"),
        false => StubReply::Usual,
    });
    at(&web).servers.connect("s").await.unwrap_err();
}

// Servers of 2025-03-26 may send several messages in one event.
#[tokio::test]
async fn batch_in_an_event_is_split() {
    let web = calls(|asked| {
        let text = asked.message["params"]["arguments"]["text"].clone();
        if text == "many" {
            return events(&Value::from(vec![0; 101]).to_string());
        }
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} });
        let answer = json!({
            "jsonrpc": "2.0", "id": asked.message["id"],
            "result": { "content": [{ "type": "text", "text": "heard" }] },
        });
        match text == "unread" {
            true => {
                let broken = json!({ "jsonrpc": "2.0", "id": asked.message["id"], "error": 5 });
                events(&json!([log, broken]).to_string())
            }
            false => events(&json!([5, log, answer]).to_string()),
        }
    });
    let setting = at(&web);
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "heard");
    for (text, words) in [("many", "more than 100 messages"), ("unread", "cannot be parsed")] {
        let call = setting.call("echo", &json!({ "text": text }).to_string()).await;
        let error = call.result.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

// fault 10
#[tokio::test]
async fn oversized_or_unreadable_event_is_reported() {
    let long = format!("\"{}\"", "x".repeat(5 << 20));
    for (text, words) in [(long, "4194304 bytes"), ("1e999".to_owned(), "be parsed")] {
        let web = calls(move |asked| {
            let id = &asked.message["id"];
            let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#);
            events(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
        });
        let setting = at(&web);
        setting.connect().await;
        let (kind, told) = failed(&setting).await;
        assert!(kind == ErrorKind::Failed && told.contains(words), "{told}");
        assert!(setting.servers.status("s").unwrap().connected, "others may still be answered");
    }
}

// F123: the error says what to do, and whether the tool may have run.
#[tokio::test]
async fn error_status_is_reported() {
    let html =
        "200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let later = "429 Too Many Requests\r\nRetry-After: 30\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    for (reply, words, may_have_run) in [
        (status("302 Found"), "redirects to another URL", false),
        (status("401 Unauthorized"), "requires a valid token", false),
        (status("403 Forbidden"), "denies access with this token", false),
        (status("404 Not Found"), "ended the session", false),
        (StubReply::Raw(later.to_owned()), "too many requests; retry after 30 s (HTTP 429)", false),
        (status("500 Internal Server Error"), "the server failed (HTTP 500)", true),
        (status("418 I'm a teapot"), "rejected the message (HTTP 418)", true),
        (StubReply::Raw(html.to_owned()), "not a JSON-RPC message", true),
    ] {
        let (call, start) = (reply.clone(), reply);
        let web = calls(move |_| call.clone());
        let setting = at(&web);
        setting.connect().await;
        let (_, told) = failed(&setting).await;
        assert!(told.contains(words), "{told}");
        assert_eq!(told.contains("it did not run"), !may_have_run, "{told}");

        let web = HttpStub::start(move |_| start.clone());
        let error = at(&web).servers.connect("s").await.unwrap_err();
        // There is no session yet.
        let words = words.replace("ended the session", "there is no MCP server at this URL");
        assert!(error.message.contains(&words), "{error}");
    }
}

// fault 10: after a session expired, the next call opens a new one, with all checks.
#[tokio::test]
async fn call_in_an_expired_session_is_not_resent() {
    let count = AtomicUsize::new(0);
    let web = calls(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => status("404 Not Found"),
        _ => StubReply::Usual,
    });
    let setting = at(&web);
    setting.connect().await;
    let (kind, words) = failed(&setting).await;
    assert!(kind == ErrorKind::Unavailable && words.contains("ended the session"), "{words}");
    assert_eq!((web.count("tools/call"), web.count("initialize")), (1, 1));
    assert_eq!(setting.call("echo", r#"{"text": "hi"}"#).await.text(), "hi");
    assert_eq!(
        (web.count("tools/call"), web.count("initialize"), web.count("tools/list")),
        (2, 2, 2)
    );
}

// F120, F122: also when the runtime of the call ends with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn aborted_call_is_cancelled_on_the_server() {
    let web = calls(|_| StubReply::Hang);
    let setting = at(&web);
    setting.connect().await;
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                tokio::select! {
                    outcome = setting.call("echo", "{}") => panic!("{outcome:?}"),
                    () = async {
                        while web.count("tools/call") == 0 {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    } => {}
                }
            });
        });
        calling.join().unwrap();
    });
    web.until(|asked| asked.is("notifications/cancelled"));
    setting.servers.close();
    web.until(|asked| asked.method == "DELETE");
}

// A request without a valid response fails at once.
#[tokio::test]
async fn invalid_response_fails_the_call_at_once() {
    let refusal = json!({
        "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "not like this" },
    })
    .to_string();
    let body = |status: &str, body: &str| {
        let kind = "Content-Type: application/json\r\nConnection: close";
        StubReply::Raw(format!(
            "{status}\r\n{kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    let json = |status: &str| body(status, &refusal);
    let to_another = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":1,"message":"no"}}"#;
    let other = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let of_another = r#"{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}"#;
    for (reply, words) in [
        (json("200 OK"), "the server returned an error (-32600): not like this"),
        (json("400 Bad Request"), "the server returned an error (-32600): not like this"),
        (json("500 Internal Server Error"), "the server returned an error (-32600): not like this"),
        (events(&refusal), "the server returned an error (-32600): not like this"),
        (events(&format!("[{refusal}]")), "the server returned an error (-32600): not like this"),
        (body("200 OK", to_another), "the server returned an error (1): no"),
        (body("200 OK", of_another), "sent the result of another request"),
        (body("200 OK", other), "something else instead of a response"),
        (status("202 Accepted"), "without a response"),
        (status("204 No Content"), "without a response"),
        (status("200 OK"), "not a JSON-RPC message"),
    ] {
        let web = calls(move |_| reply.clone());
        let setting = at(&web);
        setting.connect().await;
        let told = tokio::time::timeout(Duration::from_secs(60), failed(&setting)).await;
        let (kind, told) = told.expect("it is told before anybody's patience ends");
        assert!(kind == ErrorKind::Failed && told.contains(words), "{words}: {told}");
        assert!(told.starts_with("[PROTOCOL]"), "{told}");
    }
}
