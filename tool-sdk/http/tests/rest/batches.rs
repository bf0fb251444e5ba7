//! Several calls of one message.

use serde_json::json;

use crate::server::{CLIENT, TestServer};

#[tokio::test]
async fn a_batch_answers_in_the_order_of_its_calls() {
    let server = TestServer::start().await;
    let session = server.new_session(CLIENT).await;
    let calls = json!({ "calls": [
        { "tool": "add", "arguments": { "a": 1 } },
        { "tool": "nothing", "arguments": {} },
        { "tool": "add", "arguments": { "b": 1 } },
        { "tool": "draw_dot" },
    ] });
    let batch = server.post("/v1/batch", &calls).session(&session).send().await.expect(200).json();
    let results = batch["results"].as_array().unwrap();
    let statuses: Vec<_> = results.iter().map(|it| it["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 404, 400, 200]);
    assert_eq!(results[0]["result"]["structured"]["sum"], 2);
    assert_eq!(results[1]["problem"]["category"], "not_found");
    let history = server.get("/v1/calls").session(&session).send().await.json();
    assert_eq!(history["calls"].as_array().unwrap().len(), 4);
    server.post("/v1/batch", &json!({ "calls": [] })).send().await.expect(400);
    server.post("/v1/batch", &json!({ "call": [] })).send().await.expect(400);
}
