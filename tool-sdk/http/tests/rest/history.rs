//! Sessions, their history, calls that run on, and cancellation.

use std::sync::Arc;

use serde_json::json;
use tool_sdk::http::{HttpOptions, RestOptions};
use tool_sdk::{CallRecord, MemorySessionStore, Pipeline, Session, SessionStore as _};

use crate::server::{ADA, BOB, CLIENT, TestServer, with_people};
use crate::tools::{ToolSignals, registry};

#[tokio::test]
async fn a_session_has_a_history() {
    let server = TestServer::start().await;
    let session = server.new_session(CLIENT).await;
    let sum = server.call("add", &json!({ "a": 1 })).session(&session).send().await.expect(200);
    server.call("fail_as", &json!({ "kind": "failed" })).session(&session).send().await.expect(500);
    let list = server.get("/v1/calls").session(&session).send().await.expect(200).json();
    let calls = list["calls"].as_array().unwrap();
    let shown: Vec<_> = calls.iter().map(|it| (&it["tool"], &it["status"])).collect();
    assert_eq!(
        shown,
        [(&json!("add"), &json!("completed")), (&json!("fail_as"), &json!("failed"))]
    );
    assert!(list["last_event_id"].is_string() && calls[0]["response"].is_null());
    let path = format!("/v1/calls/{}", sum.header("call-id"));
    let one = server.get(&path).session(&session).send().await.expect(200).json();
    assert_eq!((&one["response"], &one["arguments"]), (&sum.json(), &json!({ "a": 1 })));
    server.get("/v1/calls").send().await.expect(400);

    server.delete(format!("/v1/sessions/{session}")).send().await.expect(204);
    server.get("/v1/calls").session(&session).send().await.expect(404);
    server.get(&path).session(&session).send().await.expect(404);
    server.call("add", &json!({ "a": 1 })).session(&session).send().await.expect(404);
}

#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let server = TestServer::start_with_approvals().await;
    let of_ada = server.new_session(ADA).await;
    let call = server.call("add", &json!({ "a": 1 })).token(ADA).session(&of_ada).send().await;
    let path = format!("/v1/calls/{}", call.header("call-id"));
    server.get(&path).token(ADA).session(&of_ada).send().await.expect(200);
    // Without the session's id the same principal does not see it either.
    server.get(&path).token(ADA).send().await.expect(404);
    for path in [&*path, "/v1/calls", "/v1/events"] {
        server.get(path).token(BOB).session(&of_ada).send().await.expect(404);
    }
    server.get(&path).token(BOB).send().await.expect(404);
    server.delete(&path).token(BOB).session(&of_ada).send().await.expect(404);
    server.delete(format!("/v1/sessions/{of_ada}")).token(BOB).send().await.expect(404);
    server.call("add", &json!({ "a": 1 })).token(BOB).session(&of_ada).send().await.expect(404);
}

#[tokio::test]
async fn a_call_answers_later_on_request_and_is_cancelled() {
    let server = TestServer::start().await;
    let call = server.call("wait_forever", &json!({})).header("prefer", "respond-async");
    let accepted = call.send().await.expect(202);
    assert_eq!(accepted.header("preference-applied"), "respond-async");
    server.signals.started.notified().await;
    let place = accepted.header("location").to_owned();
    assert_eq!(server.get(&place).send().await.expect(200).json()["status"], "running");
    server.delete(&place).send().await.expect(202);
    server.signals.ended.notified().await;
    // The record is written when the call has ended.
    let ended = loop {
        let record = server.get(&place).send().await.expect(200).json();
        if record["status"] != "running" {
            break record;
        }
    };
    assert_eq!((&ended["status"], &ended["response"]["status"]), (&json!("aborted"), &json!(499)));
    server.delete(&place).send().await.expect(409);
    server.delete("/v1/calls/call-0123").send().await.expect(404);

    let quick = server.call("add", &json!({ "a": 1 })).header("prefer", "respond-async, wait=30");
    quick.send().await.expect(200);
}

// A history that outlives the server can be read by the user whose session it was.
#[tokio::test]
async fn a_later_server_shows_the_history_of_a_session() {
    let store = Arc::new(MemorySessionStore::default());
    let start = async || {
        let signals = ToolSignals::default();
        let http = with_people(HttpOptions::new(CLIENT.parse().unwrap()));
        let session = Session::default().with_service(signals.clone());
        let options = RestOptions::new(http).with_session(session);
        let options = options.with_session_store(Arc::clone(&store));
        TestServer::start_options(Pipeline::new(registry()), options, signals).await
    };
    let first = start().await;
    let of_ada = first.new_session(ADA).await;
    let call = first.call("add", &json!({ "a": 1 })).token(ADA).session(&of_ada).send().await;
    let path = format!("/v1/calls/{}", call.header("call-id"));
    let listed = store.list_calls(&of_ada).await.unwrap();
    let foreign = CallRecord { session: "cli-0123".to_owned(), ..listed[0].clone() };
    store.save_call(CallRecord { call: "call-other".to_owned(), ..foreign }).await.unwrap();
    drop(first);

    let second = start().await;
    let list = second.get("/v1/calls").token(ADA).session(&of_ada).send().await.expect(200).json();
    assert_eq!(list["calls"][0]["tool"], "add", "{list}");
    second.get(&path).token(ADA).session(&of_ada).send().await.expect(200);
    // The session has ended: it is read, and makes no calls.
    second.call("add", &json!({ "a": 1 })).token(ADA).session(&of_ada).send().await.expect(404);
    for path in [&*path, "/v1/calls"] {
        second.get(path).token(BOB).session(&of_ada).send().await.expect(404);
        second.get(path).session(&of_ada).send().await.expect(404);
    }
    // A session of another surface in the same history stays there.
    for path in ["/v1/calls", "/v1/calls/call-other"] {
        second.get(path).token(ADA).session("cli-0123").send().await.expect(404);
    }
}
