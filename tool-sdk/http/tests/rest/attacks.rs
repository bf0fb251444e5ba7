//! What an attacker sends: a page in the browser, another client, a broken client.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::{ADA, ADMIN, BOB, BOB_APPROVES, CLIENT, PERSON, TestServer};

/// Sends bytes and returns the first line of the response.
async fn send_raw(server: &TestServer, bytes: &str) -> String {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer.lines().next().unwrap_or_default().to_owned()
}

// RS3
#[tokio::test]
async fn refuses_foreign_hosts_and_origins() {
    let server = TestServer::start().await;
    for path in
        ["/v1/tools", "/v1/approvals", "/v1/events", "/openapi.json", "/healthz", "/metrics"]
    {
        let get = || server.get(path);
        get().header("host", "evil.example").send().await.expect(403);
        get().header("host", "localhost:1").send().await.expect(403);
        get().header("origin", "https://evil.example").send().await.expect(403);
        get().header("origin", "null").send().await.expect(403);
    }
    let missing = format!(
        "GET /v1/tools HTTP/1.1\r\nAuthorization: Bearer {CLIENT}\r\nConnection: close\r\n\r\n"
    );
    assert!(send_raw(&server, &missing).await.contains(" 403 "), "a missing host");
    let two = format!(
        "GET http://evil.example/v1/tools HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {CLIENT}\r\nConnection: close\r\n\r\n",
        server.address
    );
    assert!(send_raw(&server, &two).await.contains(" 403 "), "another host in the request line");
    // No CORS unless configured, and no preflight for private networks.
    let ordinary = server.get("/v1/tools").send().await;
    assert_eq!(ordinary.header("access-control-allow-origin"), "");
    let preflight = server.request("OPTIONS", "/v1/tools").without("authorization");
    let preflight = preflight.header("access-control-request-private-network", "true");
    preflight.send().await.expect(403);
}

// RS2
#[tokio::test]
async fn refuses_requests_without_their_token() {
    let server = TestServer::start().await;
    let wrong = "wrong-0123456789abcdef0123456789abcdef";
    for path in ["/v1/tools", "/v1/tools/add", "/v1/events", "/v1/openapi.json", "/nothing"] {
        server.get(path).without("authorization").send().await.expect(401);
        server.get(path).token(wrong).send().await.expect(401);
        // A token in the address would be in logs and histories.
        let query = server.get(format!("{path}?token={CLIENT}&access_token={CLIENT}"));
        query.without("authorization").send().await.expect(401);
    }
}

// RS4: nothing of a body is read before the token is known.
#[tokio::test]
async fn refuses_bodies_that_are_too_long_or_not_wanted() {
    let server = TestServer::start().await;
    let long = format!(r#"{{"a": 1, "x": "{}"}}"#, "x".repeat(1024 * 1024));
    let refused = server.request("POST", "/v1/tools/add").text(long).send().await.expect(413);
    assert_eq!(refused.json()["category"], "invalid_args");
    let waiting = format!(
        "POST /v1/tools/add HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n",
        server.address
    );
    assert!(send_raw(&server, &waiting).await.contains(" 401 "), "answered without the body");
    let huge = format!(
        "GET /v1/tools HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n",
        server.address,
        "x".repeat(1 << 20)
    );
    assert!(send_raw(&server, &huge).await.contains(" 431 "), "a head that is too long");
}

// Two lengths, or a length and chunks: the request that a proxy sees must be the one that we see.
#[tokio::test]
async fn refuses_ambiguous_lengths() {
    let server = TestServer::start().await;
    let head = format!(
        "POST /v1/tools/add HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {CLIENT}\r\nContent-Type: application/json\r\nConnection: close\r\n",
        server.address
    );
    let smuggled = "GET /v1/tools HTTP/1.1\r\nHost: x\r\n\r\n";
    let both =
        format!("{head}Content-Length: 7\r\nContent-Length: 70\r\n\r\n{{\"a\":1}}{smuggled}");
    assert!(send_raw(&server, &both).await.contains(" 400 "));
    let odd = format!("{head}Transfer-Encoding: xchunked\r\n\r\n{smuggled}");
    assert!(send_raw(&server, &odd).await.contains(" 400 "));
}

// RS5
#[tokio::test]
async fn guessed_approval_ids_answer_nothing() {
    let server = TestServer::start_with_approvals().await;
    let guess = json!({ "reply": "once", "fingerprint": "0123" });
    for id in ["0", "00000000000000000000000000000000", "..%2Fcalls", "%00"] {
        let post = server.post(format!("/v1/approvals/{id}"), &guess);
        post.token(BOB_APPROVES).send().await.expect(404);
    }
}

#[tokio::test]
async fn limits_running_calls_of_a_principal() {
    use tool_sdk::http::{HttpOptions, RestOptions};
    let signals = crate::tools::ToolSignals::default();
    let session = tool_sdk::Session::default().with_service(signals.clone());
    let options = RestOptions::new(HttpOptions::new(CLIENT.parse().unwrap()));
    let options = options.with_session(session).max_running_calls(1);
    let pipeline = tool_sdk::Pipeline::new(crate::tools::registry());
    let server = TestServer::start_options(pipeline, options, signals).await;
    let call = server.call("wait_forever", &json!({})).header("prefer", "respond-async");
    call.send().await.expect(202);
    let busy = server.call("add", &json!({ "a": 1 })).send().await.expect(503);
    assert_eq!(
        (busy.header("retry-after"), &busy.json()["category"]),
        ("1", &json!("unavailable"))
    );
}

/// The head of a call of `write_word`, without the end of the head.
fn write_head(server: &TestServer, token: &str) -> String {
    format!(
        "POST /v1/tools/write_word HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n",
        server.address
    )
}

/// Sends bytes, and returns all that the server sends until the connection ends.
async fn send_and_read_all(server: &TestServer, bytes: &str) -> String {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

// RS4: the clock is paused, so it jumps to the limit once nothing else happens.
#[tokio::test(start_paused = true)]
async fn closes_connections_whose_head_or_body_does_not_arrive() {
    let server = TestServer::start().await;
    for part in ["", "GET /v1/tools", "GET /v1/tools HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let answer = send_and_read_all(&server, part).await;
        assert!(answer.is_empty() || answer.contains(" 408 "), "{part:?}: {answer}");
    }
    let body = format!("{}Content-Length: 100\r\n\r\n{{\"word\":", write_head(&server, CLIENT));
    let answer = send_and_read_all(&server, &body).await;
    assert!(answer.contains(" 408 ") && answer.contains("10 seconds"), "{answer}");
}

// A proxy in front may see the end of a request elsewhere. The server treats the bytes behind its own end as
// a request of their own with its own checks, or refuses both.
#[tokio::test]
async fn a_smuggled_request_runs_nothing() {
    let server = TestServer::start().await;
    let smuggled =
        format!("{}Content-Length: 12\r\n\r\n{{\"word\":\"s\"}}", write_head(&server, "none"));
    let add = format!(
        "POST /v1/tools/add HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {CLIENT}\r\nContent-Type: application/json\r\nConnection: close\r\n",
        server.address
    );
    let chunked = "7\r\n{\"a\":1}\r\n0\r\n\r\n";
    for fields in [
        // Chunks and a length, in both orders.
        format!("Transfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n{chunked}"),
        format!("Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"),
        // Lengths and codings that two parsers read in two ways.
        "Content-Length: +7\r\n\r\n{\"a\":1}".to_owned(),
        "Content-Length: 7, 7\r\n\r\n{\"a\":1}".to_owned(),
        "Content-Length : 7\r\n\r\n{\"a\":1}".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n".to_owned(),
        "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n".to_owned(),
        // A folded header, a size of chunks that overflows, a chunk that ends elsewhere.
        "X: a\r\n Content-Length: 7\r\n\r\n{\"a\":1}".to_owned(),
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}xx0\r\n\r\n".to_owned(),
    ] {
        let answer = send_and_read_all(&server, &format!("{add}{fields}{smuggled}")).await;
        let answers = answer.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "{fields:?}: {answer}");
    }
    let runs = server.signals.runs.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(runs, 0);
    // The server is still of use.
    server.call("add", &json!({ "a": 1 })).send().await.expect(200);
}

// RS4: what is nested too deep reaches no tool.
#[tokio::test]
async fn refuses_bodies_that_are_nested_too_deep() {
    let server = TestServer::start().await;
    let deep = format!(r#"{{"words": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    for path in ["/v1/tools/join_words", "/v1/batch", "/v1/sessions"] {
        let refused = server.request("POST", path).text(&*deep).send().await.expect(400);
        assert_eq!(refused.json()["category"], "invalid_args", "{path}");
    }
}

// RS5: an id that is known still belongs to the request's user, and ends with it.
#[tokio::test]
async fn approval_ids_of_others_are_like_guessed_ones() {
    let server = TestServer::start_with_approvals().await;
    let mut events = server.get("/v1/events").token(ADMIN).events().await;
    let call = server.call("write_word", &json!({ "word": "w" })).token(ADA).send();
    let asking = async {
        let asked = events.next_named("permission_asked").await.data;
        let path = format!("/v1/approvals/{}", asked["id"].as_str().unwrap());
        let answer = json!({ "reply": "once", "fingerprint": asked["fingerprint"] });
        let guess = server.post("/v1/approvals/0123", &answer).token(BOB_APPROVES).send().await;
        let other = server.post(&path, &answer).token(BOB_APPROVES).send().await;
        assert_eq!((guess.status, other.status), (404, 404));
        let body = |it: crate::server::TestResponse| it.json()["detail"].clone();
        assert_eq!(body(guess), body(other), "neither says that the id exists");
        server.get(&path).token(BOB_APPROVES).send().await.expect(404);
        server.get(&path).token(ADA).send().await.expect(403);
        // The client of the call may not answer, not even with all that was shown.
        server.post(&path, &answer).token(ADA).send().await.expect(403);
        path
    };
    let path = tokio::select! {
        _ = call => panic!("the call has no answer"),
        path = asking => path,
    };
    // The client has disconnected, which ends the request.
    events.next_named("aborted").await;
    let late = json!({ "reply": "once", "fingerprint": "0123" });
    server.post(&path, &late).token(ADMIN).send().await.expect(409);
}

// Cross-session reads: ids of sessions and calls are of no use to another principal, and an
// approver of one user learns nothing of another one.
#[tokio::test]
async fn events_and_history_of_others_cannot_be_read() {
    let server = TestServer::start_with_approvals().await;
    let of_ada = server.new_session(ADA).await;
    let call = server.call("add", &json!({ "a": 1 })).token(ADA).session(&of_ada);
    let id = call.send().await.expect(200).header("call-id").to_owned();
    for token in [CLIENT, BOB] {
        for path in ["/v1/events".to_owned(), "/v1/calls".to_owned(), format!("/v1/calls/{id}")] {
            server.get(&path).token(token).session(&of_ada).send().await.expect(404);
        }
    }
    for token in [PERSON, BOB_APPROVES] {
        // These may follow their own user, and no session, because they may not call tools.
        server.get("/v1/events").token(token).session(&of_ada).send().await.expect(403);
        let from_the_start = server.get("/v1/events").token(token).header("last-event-id", "e-0");
        let mut events = from_the_start.events().await;
        assert_eq!(events.next().await.unwrap().name, "gap");
        let caller = if token == PERSON { CLIENT } else { BOB };
        server.call("draw_dot", &json!({})).token(caller).send().await.expect(200);
        assert_eq!(events.next().await.unwrap().data["tool"], "draw_dot");
    }
}
