//! Calls over a WebSocket.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::server::{ADA, CLIENT, PERSON, TestServer};

/// A client of a socket.
pub(crate) struct TestSocket(WebSocketStream<TcpStream>);

impl TestSocket {
    /// Opens a socket with these headers; the error is the status of the refusal.
    pub(crate) async fn open(server: &TestServer, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let stream = TcpStream::connect(&server.address).await.unwrap();
        let address = format!("ws://{}/v1/calls/ws", server.address);
        let mut request = address.into_client_request().unwrap();
        for (name, value) in headers {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens a socket with the token of the start.
    pub(crate) async fn of(server: &TestServer) -> Self {
        Self::open(server, &[("authorization", &format!("Bearer {CLIENT}"))]).await.unwrap()
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    pub(crate) async fn call(&mut self, id: &str, tool: &str, arguments: &Value) {
        let call = json!({ "type": "call", "id": id, "tool": tool, "arguments": arguments });
        self.send(&call).await;
    }

    /// Returns the next message with JSON; `None` when the server closed the socket.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Returns the next message of this type.
    pub(crate) async fn next_typed(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("no message `{kind}`"));
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Returns the reply to a call: its type, its status, and its body.
    pub(crate) async fn reply(&mut self, id: &str) -> (String, u64, Value) {
        loop {
            let message = self.next().await.expect("a reply");
            let kind = message["type"].as_str().unwrap().to_owned();
            if message["id"] == id && ["result", "problem"].contains(&&*kind) {
                return (
                    kind.clone(),
                    message["status"].as_u64().unwrap(),
                    message[&*kind].clone(),
                );
            }
        }
    }
}

// F184: the parts of a streaming tool arrive one by one, and its result once.
#[tokio::test]
async fn streams_a_call_part_by_part() {
    let server = TestServer::start().await;
    let mut socket = TestSocket::of(&server).await;
    socket.call("1", "stream_parts", &json!({})).await;
    let started = socket.next().await.unwrap();
    assert_eq!((&started["type"], &started["id"]), (&json!("started"), &json!("1")));
    for part in ["one", "two", "three"] {
        loop {
            let event = socket.next_typed("event").await;
            if event["event"]["type"] == "output" {
                assert_eq!(event["event"]["text"], part, "{event}");
                assert_eq!(event["event"]["call"], started["call"]);
                break;
            }
        }
        // The tool goes on only now.
        server.signals.proceed.notify_one();
    }
    let (kind, status, body) = socket.reply("1").await;
    assert_eq!((&*kind, status, &body["text"]), ("result", 200, &json!("done")));
    assert_eq!(body["call"], started["call"]);
}

#[tokio::test]
async fn runs_calls_side_by_side_and_cancels_one() {
    let server = TestServer::start().await;
    let mut socket = TestSocket::of(&server).await;
    socket.call("long", "wait_forever", &json!({})).await;
    server.signals.started.notified().await;
    socket.call("short", "add", &json!({ "a": 1 })).await;
    let (_, status, body) = socket.reply("short").await;
    assert_eq!((status, &body["structured"]["sum"]), (200, &json!(2)));
    // The id of a call that runs is taken.
    socket.call("long", "add", &json!({ "a": 1 })).await;
    assert_eq!(socket.reply("long").await.1, 409);
    socket.send(&json!({ "type": "cancel", "id": "long" })).await;
    let (kind, status, body) = socket.reply("long").await;
    assert_eq!((&*kind, status, &body["category"]), ("problem", 499, &json!("aborted")));
    server.signals.ended.notified().await;
    socket.send(&json!({ "type": "cancel", "id": "long" })).await;
    assert_eq!(socket.reply("long").await.1, 404);
}

#[tokio::test]
async fn answers_what_it_does_not_understand() {
    let server = TestServer::start().await;
    let mut socket = TestSocket::of(&server).await;
    for (message, status, says) in [
        (json!([]), 400, "the message"),
        (json!({ "type": "shout", "id": "1" }), 400, "unknown variant"),
        (json!({ "type": "call", "id": "1" }), 400, "`tool` is missing"),
        (json!({ "type": "call", "id": "", "tool": "add" }), 400, "`id` must have"),
        (json!({ "type": "call", "id": "1", "tool": "ad" }), 404, "did you mean `add`?"),
        (json!({ "type": "call", "id": "1", "tool": "add", "session": "x" }), 400, "unknown field"),
        (json!({ "type": "cancel", "id": "1", "tool": "add" }), 400, "belong to `call`"),
    ] {
        socket.send(&message).await;
        let problem = socket.next_typed("problem").await;
        let detail = problem["problem"]["detail"].as_str().unwrap();
        assert!(problem["status"] == status && detail.contains(says), "{message}: {problem}");
    }
    // Two JSON parsers could read such arguments in two ways.
    let twice = r#"{"type":"call","id":"1","tool":"add","arguments":{"a":1,"a":2}}"#;
    socket.0.send(Message::text(twice)).await.unwrap();
    assert_eq!(socket.reply("1").await.1, 400);
    socket.0.send(Message::binary(vec![1, 2])).await.unwrap();
    assert_eq!(socket.next_typed("problem").await["status"], 400);
    // It is still of use.
    socket.call("2", "add", &json!({ "a": 1 })).await;
    assert_eq!(socket.reply("2").await.1, 200);
    // A message over the limit ends the connection.
    let long = "x".repeat(1 << 21);
    let _ = socket.0.send(Message::text(long)).await;
    assert_eq!(socket.next().await, None);
}

// RS6: the checks are those of every request.
#[tokio::test]
async fn opens_for_known_clients_only() {
    let server = TestServer::start_with_approvals().await;
    let refused = async |headers: &[(&str, &str)]| {
        TestSocket::open(&server, headers).await.err().expect("a refusal")
    };
    let (client, person) = (format!("Bearer {CLIENT}"), format!("Bearer {PERSON}"));
    assert_eq!(refused(&[]).await, 401);
    assert_eq!(refused(&[("authorization", "Bearer x")]).await, 401);
    assert_eq!(refused(&[("authorization", &person)]).await, 403);
    let token = ("authorization", &*client);
    assert_eq!(refused(&[token, ("host", "evil.example")]).await, 403);
    assert_eq!(refused(&[token, ("origin", "https://evil.example")]).await, 403);
    assert_eq!(refused(&[token, ("session-id", "session-none")]).await, 404);
    let session = server.new_session(ADA).await;
    assert_eq!(refused(&[token, ("session-id", &session)]).await, 404);
    let plain = server.get("/v1/calls/ws").send().await.expect(426);
    assert!(plain.json()["suggestion"].as_str().unwrap().contains("WebSocket"));
}

#[tokio::test]
async fn calls_belong_to_the_session_of_the_socket() {
    let server = TestServer::start_with_approvals().await;
    let session = server.new_session(CLIENT).await;
    let headers = [("authorization", &*format!("Bearer {CLIENT}")), ("session-id", &session)];
    let mut socket = TestSocket::open(&server, &headers).await.unwrap();
    socket.call("1", "write_word", &json!({ "word": "w" })).await;
    let request = loop {
        let event = socket.next_typed("event").await["event"].clone();
        if event["type"] == "permission_asked" {
            break event;
        }
    };
    let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
    let answer = json!({ "reply": "once", "fingerprint": request["fingerprint"] });
    server.post(path, &answer).token(PERSON).send().await.expect(204);
    assert_eq!(socket.reply("1").await.1, 200);
    let calls = server.get("/v1/calls").session(&session).send().await.expect(200).json();
    assert_eq!(calls["calls"][0]["tool"], "write_word");
    // A session that has ended makes no further call.
    server.delete(format!("/v1/sessions/{session}")).send().await.expect(204);
    socket.call("2", "add", &json!({ "a": 1 })).await;
    assert_eq!(socket.reply("2").await.1, 404);
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_calls() {
    let server = TestServer::start().await;
    let mut socket = TestSocket::of(&server).await;
    socket.call("1", "wait_forever", &json!({})).await;
    server.signals.started.notified().await;
    drop(socket);
    server.signals.ended.notified().await;
}

#[tokio::test]
async fn a_revoked_token_makes_no_further_call() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tool_sdk::http::{TokenIdentity, TokenVerifier};

    struct OneToken(Arc<AtomicBool>);
    impl TokenVerifier for OneToken {
        fn verify_token(&self, token: &str) -> Option<TokenIdentity> {
            let is_valid = token == ADA && self.0.load(Ordering::SeqCst);
            is_valid.then(TokenIdentity::default)
        }
    }
    let is_valid = Arc::new(AtomicBool::new(true));
    let verifier = OneToken(Arc::clone(&is_valid));
    let server = TestServer::start_with(|it| it, |http| http.with_token_verifier(verifier)).await;
    let headers = [("authorization", &*format!("Bearer {ADA}"))];
    let mut socket = TestSocket::open(&server, &headers).await.unwrap();
    socket.call("1", "add", &json!({ "a": 1 })).await;
    assert_eq!(socket.reply("1").await.1, 200);
    is_valid.store(false, Ordering::SeqCst);
    socket.call("2", "add", &json!({ "a": 1 })).await;
    assert_eq!(socket.reply("2").await.1, 401);
}

#[tokio::test]
async fn a_shutdown_closes_the_socket() {
    let shutdown = tokio_util::sync::CancellationToken::new();
    let token = shutdown.clone();
    let server = TestServer::start_with(|it| it, |http| http.shut_down_on(token)).await;
    let mut socket = TestSocket::of(&server).await;
    socket.call("1", "add", &json!({ "a": 1 })).await;
    assert_eq!(socket.reply("1").await.1, 200);
    shutdown.cancel();
    let close = loop {
        if let Message::Close(close) = socket.0.next().await.unwrap().unwrap() {
            break close.unwrap();
        }
    };
    assert_eq!(close.code, CloseCode::Away);
}
