//! Events of one call, of a session, and of all sessions of a user.

use serde_json::json;

use crate::server::{ADA, ADMIN, BOB_APPROVES, CLIENT, TestServer};

// F43, F184: chunk by chunk, the result once and last.
#[tokio::test]
async fn streams_a_call_chunk_by_chunk() {
    let server = TestServer::start().await;
    let mut events = server.call("stream_parts", &json!({})).events().await;
    assert_eq!(events.status, 200);
    assert_eq!(events.headers["content-type"], "text/event-stream");
    assert_eq!(events.next().await.unwrap().name, "pending");
    for part in ["one", "two", "three"] {
        // The tool goes on only after the part was seen.
        assert_eq!(events.next_named("output").await.data["text"], part);
        server.signals.proceed.notify_one();
    }
    assert_eq!(events.next_named("completed").await.data["tool"], "stream_parts");
    let result = events.next().await.unwrap();
    assert_eq!((&*result.name, &result.data["text"]), ("result", &json!("done")));
    assert!(events.next().await.is_none());
}

// F170
#[tokio::test]
async fn events_carry_display_and_source() {
    let server = TestServer::start().await;
    let mut events = server.call("add", &json!({ "a": 1 })).events().await;
    let pending = events.next().await.unwrap().data;
    assert_eq!(pending["source"]["type"], "native");
    assert!(pending["display"].is_object(), "{pending}");
    assert_eq!(events.names().await, ["started", "completed", "result"]);
}

// A failure is the last event as well.
#[tokio::test]
async fn streams_end_with_the_problem() {
    let server = TestServer::start().await;
    let mut events = server.call("fail_as", &json!({ "kind": "conflict" })).events().await;
    assert_eq!(events.next_named("problem").await.data["status"], 409);
    assert!(events.next().await.is_none());
    // A tool that does not exist is refused before the stream begins.
    assert_eq!(server.call("nothing", &json!({})).events().await.status, 404);
}

#[tokio::test]
async fn a_session_is_followed_and_resumed() {
    let server = TestServer::start().await;
    let session = server.new_session(CLIENT).await;
    let mut first = server.get("/v1/events").session(&session).events().await;
    server.call("add", &json!({ "a": 1 })).session(&session).send().await.expect(200);
    let pending = first.next_named("pending").await;
    first.next_named("completed").await;
    drop(first);
    // A client that reads an event later still learns when it happened.
    let list = server.get("/v1/calls").session(&session).send().await.expect(200).json();
    let started = list["calls"][0]["started_at_ms"].as_u64().unwrap();
    assert!(pending.data["at_ms"].as_u64().unwrap().abs_diff(started) < 60_000, "{}", pending.data);
    server.call("join_words", &json!({ "words": [] })).session(&session).send().await.expect(200);
    // A call of another session is not shown.
    server.call("draw_dot", &json!({})).send().await.expect(200);

    let resume = server.get("/v1/events").session(&session).header("last-event-id", &pending.id);
    let mut second = resume.events().await;
    let mut seen = Vec::new();
    while seen.len() < 5 {
        let event = second.next().await.unwrap();
        seen.push((event.name, event.data["tool"].as_str().unwrap().to_owned()));
    }
    let seen: Vec<_> = seen.iter().map(|(name, tool)| (&**name, &**tool)).collect();
    assert_eq!(
        seen,
        [
            ("started", "add"),
            ("completed", "add"),
            ("pending", "join_words"),
            ("started", "join_words"),
            ("completed", "join_words"),
        ]
    );
}

#[tokio::test]
async fn an_id_of_an_earlier_run_is_a_gap() {
    let server = TestServer::start().await;
    let session = server.new_session(CLIENT).await;
    let old = server.get("/v1/events").session(&session).header("last-event-id", "e-0123-77");
    assert_eq!(old.events().await.next().await.unwrap().name, "gap");
}

// An approver sees the calls of its user, an administrator those of all.
#[tokio::test]
async fn events_without_a_session_need_a_scope() {
    let server = TestServer::start_with_approvals().await;
    server.get("/v1/events").send().await.expect(403);
    server.get("/v1/events").token(ADA).send().await.expect(403);
    let mut of_bob = server.get("/v1/events").token(BOB_APPROVES).events().await;
    let mut of_all = server.get("/v1/events").token(ADMIN).events().await;
    server.call("add", &json!({ "a": 1 })).token(ADA).send().await.expect(200);
    server.call("join_words", &json!({ "words": [] })).token(crate::server::BOB).send().await;
    assert_eq!(of_all.next().await.unwrap().data["tool"], "add");
    assert_eq!(of_bob.next().await.unwrap().data["tool"], "join_words");
}

/// Calls a tool at `/mcp` with a token.
async fn call_over_mcp(server: &TestServer, token: &str, tool: &str) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
    });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = server
        .post("/mcp", &body)
        .token(token)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    let answer = request.send().await.expect(200);
    assert!(answer.body.contains("a dot"), "{}", answer.body);
}

// What a user asks for over MCP is seen by the same people as what it asks for over REST.
#[tokio::test]
async fn calls_over_mcp_reach_the_events_of_their_user() {
    let server = TestServer::start_with_approvals().await;
    let mut of_bob = server.get("/v1/events").token(BOB_APPROVES).events().await;
    let mut of_owner = server.get("/v1/events").token(crate::server::PERSON).events().await;
    let mut of_all = server.get("/v1/events").token(ADMIN).events().await;
    call_over_mcp(&server, ADA, "draw_dot").await;
    call_over_mcp(&server, crate::server::BOB, "draw_dot").await;
    call_over_mcp(&server, CLIENT, "draw_dot").await;
    assert_eq!(of_bob.next().await.unwrap().data["user"], "bob");
    assert_eq!(of_owner.next().await.unwrap().data.get("user"), None);
    assert_eq!(of_all.next().await.unwrap().data["user"], "ada");
    server.call("add", &json!({ "a": 1 })).token(crate::server::BOB).send().await.expect(200);
    for name in ["started", "completed", "pending"] {
        assert_eq!(of_bob.next().await.unwrap().name, name);
    }
}
