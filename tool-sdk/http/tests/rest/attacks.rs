//! What an attacker sends: a page in the browser, another client, a broken client.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::{BOB_APPROVES, CLIENT, TestServer};

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
