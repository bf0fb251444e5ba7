//! Approval questions to the client's user, in both eras.

use std::time::Duration;

use tool_sdk_core::{ApprovalResponse, ScriptedApprover};

use super::http::{ADA, Served, next};
use super::*;

const FORMS: &str = r#"{ "elicitation": {} }"#;

fn forms() -> Value {
    serde_json::from_str(FORMS).unwrap()
}

/// Lets a legacy peer call the tool that has to be allowed, and answers with `answer`.
async fn ask(peer: &mut Peer, answer: Value) -> Value {
    let call = peer.send("tools/call", json!({ "name": "write", "arguments": {} })).await;
    let question = peer.receive_method("elicitation/create").await;
    peer.reply(&question, answer).await;
    peer.receive_response(call).await["result"].take()
}

fn accepted(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

// MS5: nothing but an accepted answer to our own question allows anything.
#[tokio::test]
async fn only_an_offered_yes_is_a_yes() {
    for (answer, allowed) in [
        (accepted(json!({ "answer": "once" })), true),
        (accepted(json!({ "answer": "reject" })), false),
        (accepted(json!({ "answer": "always" })), false),
        (accepted(json!({ "answer": "ONCE" })), false),
        (accepted(json!({ "answer": ["once"] })), false),
        (accepted(json!({})), false),
        (json!({ "action": "accept" }), false),
        (json!({ "action": "decline", "content": { "answer": "once" } }), false),
        (json!({ "action": "cancel" }), false),
        (json!({ "answer": "once" }), false),
    ] {
        let mut peer = Peer::legacy(&server(), forms()).await;
        let result = ask(&mut peer, answer.clone()).await;
        assert_eq!(result["isError"], !allowed, "{answer}: {result}");
    }
}

#[tokio::test]
async fn the_question_shows_the_call_and_the_answers() {
    let mut peer = Peer::legacy(&server(), forms()).await;
    let call = peer.send("tools/call", json!({ "name": "write", "arguments": {} })).await;
    let question = peer.receive_method("elicitation/create").await;
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("tool write"), "{message}");
    let answers = &question["params"]["requestedSchema"]["properties"]["answer"]["enum"];
    assert_eq!(*answers, json!(["once", "session", "reject"]));
    assert!(
        message.contains("`session` also allows") && !message.contains("`always`"),
        "{message}"
    );
    peer.reply(&question, accepted(json!({ "answer": "once" }))).await;
    let answer = peer.receive_response(call).await;
    let written = text(&answer["result"]);
    assert!(written.starts_with("written in mcp-") && written.ends_with(" by mcp:by-hand"));
}

#[tokio::test]
async fn a_no_can_say_what_to_do_instead() {
    let mut peer = Peer::legacy(&server(), forms()).await;
    let no = accepted(json!({ "answer": "reject", "feedback": "use the other file" }));
    let result = ask(&mut peer, no).await;
    assert!(text(&result).contains("use the other file"), "{result}");
}

// A form that nobody waits for is closed.
#[tokio::test]
async fn a_question_is_taken_back_with_its_call() {
    for meta in [None, Some(json!({}))] {
        let mut peer = Peer::legacy(&server(), forms()).await;
        let mut params = json!({ "name": "write", "arguments": {} });
        params.as_object_mut().unwrap().extend(meta.map(|meta| ("_meta".to_owned(), meta)));
        let call = peer.send("tools/call", params).await;
        let question = peer.receive_method("elicitation/create").await;
        peer.notify("notifications/cancelled", json!({ "requestId": call })).await;
        let taken_back = peer.receive_method("notifications/cancelled").await;
        assert_eq!(taken_back["params"]["requestId"], question["id"]);
    }
}

// A client that disconnected cannot answer: the call ends at once, and not at its timeout.
#[tokio::test(start_paused = true)]
async fn a_disconnected_client_ends_its_call_at_once() {
    for meta in [None, Some(json!({}))] {
        let mut peer = Peer::legacy(&server(), forms()).await;
        let mut params = json!({ "name": "write", "arguments": {} });
        params.as_object_mut().unwrap().extend(meta.map(|meta| ("_meta".to_owned(), meta)));
        let call = peer.send("tools/call", params).await;
        peer.receive_method("elicitation/create").await;
        let begun = tokio::time::Instant::now();
        let rest = peer.hang_up().await;
        assert!(rest.iter().any(|answer| answer["id"] == call), "{rest:?}");
        assert!(begun.elapsed() < Duration::from_secs(1));
    }
}

// AP5: an approval for the session is one for the connection.
#[tokio::test]
async fn an_approval_for_the_session_reaches_no_other_connection() {
    let server = server();
    let mut peer = Peer::legacy(&server, forms()).await;
    assert_eq!(ask(&mut peer, accepted(json!({ "answer": "session" }))).await["isError"], false);
    assert_eq!(peer.call("write", json!({})).await["isError"], false);
    let mut other = Peer::legacy(&server, forms()).await;
    assert_eq!(ask(&mut other, json!({ "action": "decline" })).await["isError"], true);
}

#[tokio::test]
async fn whom_the_host_named_is_asked_instead() {
    let pipeline = pipeline().approver(ScriptedApprover::always_respond(ApprovalResponse::Once));
    let mut peer = Peer::legacy(&Server::new(pipeline, Session::default()), forms()).await;
    assert_eq!(peer.call("write", json!({})).await["isError"], false);
    assert_eq!(peer.count_received("elicitation/create"), 0);
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_asks_ends() {
    let mut peer = Peer::legacy(&server(), forms()).await;
    let call = peer.send("tools/call", json!({ "name": "write", "arguments": {} })).await;
    peer.receive_method("elicitation/create").await;
    peer.notify("notifications/cancelled", json!({ "requestId": call })).await;
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    peer.hang_up().await;
}

// A client over HTTP need not listen beside its calls to be asked what they want to know.
#[tokio::test]
async fn questions_come_on_the_stream_of_their_call() {
    let served = Served::start(&server()).await;
    let id = served.open_with(ADA, forms()).await;
    for answer in ["once", "reject"] {
        let call = json!({
            "jsonrpc": "2.0", "id": answer, "method": "tools/call",
            "params": { "name": "write", "arguments": {} },
        });
        let talk = async {
            let mut stream = served.begin(ADA, &id, &call).await;
            let question = next(&mut stream).await;
            assert_eq!(question["method"], "elicitation/create", "{question}");
            let reply = accepted(json!({ "answer": answer }));
            let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": reply });
            served.post(ADA, Some(&id), &reply).await;
            next(&mut stream).await
        };
        let limit = Duration::from_secs(60);
        let told = tokio::time::timeout(limit, talk).await.expect("it is asked");
        assert_eq!(told["result"]["isError"], answer == "reject", "{told}");
    }
}

// A question is over when its answer came, whatever that is; and the peer hears nothing of it,
// which it could take for the answer to a request of its own.
#[tokio::test]
async fn an_answer_that_is_none_is_a_no() {
    let server = server();
    let served = Served::start(&server).await;
    let session = served.open_with(ADA, forms()).await;
    for broken in
        [json!({ "error": 5 }), json!({ "result": {}, "error": { "code": 1, "message": "x" } })]
    {
        let answer = |question: &Value| {
            let mut answer = broken.clone();
            (answer["jsonrpc"], answer["id"]) = ("2.0".into(), question["id"].clone());
            answer
        };
        let limit = Duration::from_secs(60);
        let mut peer = Peer::legacy(&server, forms()).await;
        let call = json!({ "name": "write", "arguments": {} });
        let id = peer.send("tools/call", call.clone()).await;
        let question = peer.receive_method("elicitation/create").await;
        peer.send_line(&answer(&question).to_string()).await;
        let told =
            tokio::time::timeout(limit, peer.receive_response(id)).await.expect("it is over");
        assert_eq!(told["result"]["isError"], true, "{told}");
        let rest = peer.hang_up().await;
        assert!(rest.iter().all(|message| message["error"].is_null()), "{rest:?}");

        let id = broken.to_string();
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call });
        let mut stream = served.begin(ADA, &session, &call).await;
        let question = next(&mut stream).await;
        let posted = served.post(ADA, Some(&session), &answer(&question)).await;
        assert!(posted.starts_with("HTTP/1.1 202"), "{posted}");
        let told = tokio::time::timeout(limit, next(&mut stream)).await.expect("it is over");
        assert_eq!(told["result"]["isError"], true, "{told}");
    }
}

#[tokio::test]
async fn a_modern_peer_is_told_that_input_is_required() {
    let server = server();
    let mut peer = Peer::modern(&server, forms());
    let wanted = peer.call("write", json!({})).await;
    assert_eq!(wanted["resultType"], "input_required");
    let question = &wanted["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "approval": accepted(json!({ "answer": "once" })) });
    let state = wanted["requestState"].clone();
    let again = |name: &str, arguments: Value, state: &Value, answer: &Value| {
        json!({
            "name": name, "arguments": arguments,
            "requestState": state, "inputResponses": answer,
        })
    };

    // A handle is good for this very call only.
    for (name, arguments, state) in [
        ("write", json!({ "x": 1 }), &state),
        ("add", json!({}), &state),
        ("write", json!({}), &json!("00000000000000000000000000000000")),
    ] {
        let forged = peer.request("tools/call", again(name, arguments, state, &answer)).await;
        assert_eq!(forged["error"]["code"], -32602, "{forged}");
    }
    let silent = peer.request("tools/call", again("write", json!({}), &state, &json!({}))).await;
    let newer = silent["result"]["requestState"].clone();
    assert!(newer.is_string() && newer != state, "{silent}");

    let done = peer.request("tools/call", again("write", json!({}), &newer, &answer)).await;
    assert_eq!(done["result"]["isError"], false, "{done}");
    let twice = peer.request("tools/call", again("write", json!({}), &newer, &answer)).await;
    assert_eq!(twice["error"]["code"], -32602);
}

#[tokio::test]
async fn answers_without_a_question_approve_nothing() {
    let mut peer = Peer::modern(&server(), forms());
    let answer = json!({ "approval": accepted(json!({ "answer": "once" })) });
    let params = json!({ "name": "write", "arguments": {}, "inputResponses": answer });
    let wanted = peer.request("tools/call", params).await;
    assert_eq!(wanted["result"]["resultType"], "input_required");
    let mut unable = Peer::modern(&server(), json!({}));
    assert_eq!(unable.call("write", json!({})).await["isError"], true);
}
