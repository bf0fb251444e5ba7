//! Approval requests: shown to the right person, answered once.

use serde_json::{Value, json};

use crate::server::{ADA, ADMIN, BOB, BOB_APPROVES, CLIENT, PERSON, TestResponse, TestServer};

/// Returns the open requests that a token may answer.
async fn open_requests(server: &TestServer, token: &str) -> Vec<Value> {
    let list = server.get("/v1/approvals").token(token).send().await.expect(200).json();
    list["approvals"].as_array().unwrap().clone()
}

/// Waits for the one open request.
async fn wait_for_request(server: &TestServer, token: &str) -> Value {
    let mut events = server.get("/v1/events").token(token).events().await;
    let open = open_requests(server, token).await;
    if let Some(request) = open.first() {
        return request.clone();
    }
    events.next_named("permission_asked").await.data
}

async fn answer(server: &TestServer, token: &str, request: &Value, body: Value) -> TestResponse {
    let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
    let mut body = body;
    body["fingerprint"] = request["fingerprint"].clone();
    server.post(path, &body).token(token).send().await
}

fn write<'s>(server: &'s TestServer, word: &str) -> crate::server::TestRequest<'s> {
    server.call("write_word", &json!({ "word": word }))
}

// F174
#[tokio::test]
async fn a_call_waits_until_a_person_approves_it_once() {
    let server = TestServer::start_with_approvals().await;
    let (called, second) = tokio::join!(write(&server, "w").send(), async {
        let request = wait_for_request(&server, PERSON).await;
        assert_eq!(
            (&request["tool"], &request["arguments"]["word"]),
            (&json!("write_word"), &json!("w"),)
        );
        let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
        let shown = server.get(&path).token(PERSON).send().await.expect(200).json();
        assert_eq!(shown["fingerprint"], request["fingerprint"]);
        // The client that calls tools may not answer, and no wrong answer ends the request.
        answer(&server, CLIENT, &request, json!({ "reply": "once" })).await.expect(403);
        answer(&server, BOB_APPROVES, &request, json!({ "reply": "once" })).await.expect(404);
        answer(&server, PERSON, &request, json!({ "reply": "yes" })).await.expect(400);
        answer(&server, PERSON, &request, json!({ "reply": "always" })).await.expect(400);
        answer(&server, PERSON, &request, json!({ "reply": "once", "feedback": "x" }))
            .await
            .expect(400);
        let wrong = json!({ "reply": "once", "fingerprint": "0123" });
        server.post(&path, &wrong).token(PERSON).send().await.expect(409);
        answer(&server, PERSON, &request, json!({ "reply": "once" })).await.expect(204);
        answer(&server, PERSON, &request, json!({ "reply": "once" })).await
    });
    assert!(called.expect(200).json()["text"].as_str().unwrap().starts_with("w #1"));
    second.expect(409);
}

#[tokio::test]
async fn a_rejection_with_feedback_is_for_the_model() {
    let server = TestServer::start_with_approvals().await;
    let (called, answered) = tokio::join!(write(&server, "w").token(BOB).send(), async {
        let request = wait_for_request(&server, BOB_APPROVES).await;
        assert!(open_requests(&server, PERSON).await.is_empty(), "it is bob's to answer");
        let no = json!({ "reply": "reject", "feedback": "ask me first" });
        answer(&server, BOB_APPROVES, &request, no).await
    });
    answered.expect(204);
    let denied = called.expect(403).json();
    assert!(denied["error"].as_str().unwrap().contains("ask me first"), "{denied}");
}

#[tokio::test]
async fn an_approval_for_the_session_covers_its_next_calls() {
    let server = TestServer::start_with_approvals().await;
    let session = server.new_session(CLIENT).await;
    let (called, answered) = tokio::join!(write(&server, "w").session(&session).send(), async {
        let request = wait_for_request(&server, ADMIN).await;
        let patterns = request["suggestions"].clone();
        answer(&server, ADMIN, &request, json!({ "reply": "session", "patterns": patterns })).await
    });
    answered.expect(204);
    called.expect(200);
    write(&server, "w").session(&session).send().await.expect(200);
}

// The edited call is validated before the request ends, and is the one that runs.
#[tokio::test]
async fn a_call_is_approved_with_edited_arguments() {
    let server = TestServer::start_with_approvals().await;
    let (called, ()) = tokio::join!(write(&server, "w").send(), async {
        let request = wait_for_request(&server, PERSON).await;
        let edited = |arguments: Value| json!({ "reply": "once", "arguments": arguments });
        let wrong = answer(&server, PERSON, &request, edited(json!({ "word": 5 }))).await;
        let problem = wrong.expect(400).json();
        assert_eq!(
            (&problem["category"], &problem["faults"][0]["pointer"]),
            (&json!("invalid_args"), &json!("/word"))
        );
        assert!(problem["detail"].as_str().unwrap().contains("still open"), "{problem}");
        answer(&server, PERSON, &request, edited(json!([]))).await.expect(400);
        let mut far = edited(json!({ "word": "mine" }));
        far["reply"] = json!("session");
        answer(&server, PERSON, &request, far).await.expect(400);
        let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
        let mut stale = edited(json!({ "word": "mine" }));
        stale["fingerprint"] = json!("0123");
        server.post(&path, &stale).token(PERSON).send().await.expect(409);
        assert_eq!(open_requests(&server, PERSON).await.len(), 1);
        let right = edited(json!({ "word": "mine" }));
        answer(&server, PERSON, &request, right).await.expect(204);
    });
    let text = called.expect(200).json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("mine #1") && text.contains("edited the arguments"), "{text}");
}

// Without a person who could answer, the denial says how to allow the call.
#[tokio::test]
async fn a_call_is_denied_at_once_when_no_person_can_answer() {
    let server = TestServer::start().await;
    let denied = write(&server, "w").send().await.expect(403).json();
    assert!(denied["suggestion"].as_str().unwrap().contains("allow write_word"), "{denied}");
    // Approvals are those of a principal, and ada has no approver but the administrator.
    let server = TestServer::start_with(
        |pipeline| pipeline,
        |http| {
            http.with_principal(ADA.parse().unwrap(), tool_sdk::Principal::new("ada"))
                .with_token(PERSON.parse().unwrap(), tool_sdk::http::TokenScope::Approvals)
        },
    )
    .await;
    write(&server, "w").token(ADA).send().await.expect(403);
}

// State first, stream second: what happens after the list was made follows in the stream.
#[tokio::test]
async fn the_stream_starts_where_the_list_was_made() {
    let server = TestServer::start_with_approvals().await;
    let list = server.get("/v1/approvals").token(PERSON).send().await.expect(200).json();
    let last = list["last_event_id"].as_str().unwrap();
    let cancelled = async {
        let request = server.get("/v1/events").token(PERSON).header("last-event-id", last);
        let mut events = request.events().await;
        events.next_named("permission_asked").await;
    };
    tokio::select! {
        _ = write(&server, "w").send() => unreachable!("no person answers"),
        () = cancelled => {}
    }
}

// Of two channels the first answer counts.
#[tokio::test]
async fn a_terminal_and_a_browser_settle_one_request() {
    let (approver, mut terminal) = tool_sdk::approval_channel();
    let server =
        TestServer::start_with(|pipeline| pipeline.approver(approver), crate::server::with_people)
            .await;
    let (called, shown) = tokio::join!(write(&server, "w").send(), async {
        let shown = terminal.recv().await.unwrap();
        let request = wait_for_request(&server, PERSON).await;
        answer(&server, PERSON, &request, json!({ "reply": "once" })).await.expect(204);
        shown
    });
    called.expect(200);
    assert!(!shown.respond(tool_sdk::ApprovalResponse::Reject), "it was answered over HTTP");
}
