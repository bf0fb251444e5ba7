//! Health, metrics, and the MCP endpoint beside REST.

use serde_json::json;

use crate::server::{ADMIN, PERSON, TestServer};

#[tokio::test]
async fn health_needs_no_token_and_metrics_need_their_scope() {
    let server = TestServer::start_with_approvals().await;
    server.get("/healthz").without("authorization").send().await.expect(200);
    server.get("/readyz").without("authorization").send().await.expect(200);
    server.get("/metrics").without("authorization").send().await.expect(401);
    server.get("/metrics").send().await.expect(403);

    let mut events = server.get("/v1/events").token(ADMIN).events().await;
    server.call("add", &json!({ "a": 1 })).send().await.expect(200);
    server.call("fail_as", &json!({ "kind": "conflict" })).send().await.expect(409);
    // The events of the calls were counted before they are shown.
    events.next_named("failed").await;
    let metrics = server.get("/metrics").token(ADMIN).send().await.expect(200);
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        r#"tool_calls_total{tool="add",outcome="ok"} 1"#,
        r#"tool_calls_total{tool="fail_as",outcome="conflict"} 1"#,
        r#"tool_call_duration_seconds_count{tool="add"} 1"#,
        "tool_open_approvals 0",
        "tool_event_subscribers 1",
    ] {
        assert!(metrics.body.lines().any(|it| it == line), "{line}: {}", metrics.body);
    }
    drop(server.pipeline.close());
    server.get("/readyz").send().await.expect(503);
}

// F129: the same tools, and the same scopes.
#[tokio::test]
async fn mcp_is_served_beside_rest() {
    let server = TestServer::start_with_approvals().await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    let post =
        || server.post("/mcp", &list).header("accept", "application/json, text/event-stream");
    let answer = post().send().await.expect(200);
    assert!(answer.body.contains("serverInfo"), "{}", answer.body);
    post().token(PERSON).send().await.expect(403);
}
