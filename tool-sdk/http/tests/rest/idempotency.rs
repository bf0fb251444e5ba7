//! Idempotency keys.

use std::sync::atomic::Ordering;

use serde_json::json;
use tool_sdk::{EventKind, Rule};

use crate::server::{ADA, TestServer, with_people};

async fn start() -> TestServer {
    let allow: Rule = "allow write_word".parse().unwrap();
    TestServer::start_with(|pipeline| pipeline.rules([allow]), with_people).await
}

#[tokio::test]
async fn a_repeated_request_runs_nothing_twice() {
    let server = start().await;
    let call = |word: &str| {
        server.call("write_word", &json!({ "word": word })).header("idempotency-key", "k1")
    };
    let first = call("w").send().await.expect(200);
    let second = call("w").send().await.expect(200);
    assert_eq!((&first.body, first.header("call-id")), (&second.body, second.header("call-id")));
    assert_eq!(server.signals.runs.load(Ordering::SeqCst), 1);
    assert_eq!(call("other").send().await.expect(422).json()["category"], "conflict");
    // The same key of another principal is another key.
    call("other").token(ADA).send().await.expect(200);
    let streamed = call("w").events().await.names().await;
    assert_eq!(
        (streamed, server.signals.runs.load(Ordering::SeqCst)),
        (vec!["result".to_owned()], 2)
    );
    call("w").header("idempotency-key", "").send().await.expect(400);
}

// A client that lost its connection asks again and gets the result of the first call.
#[tokio::test]
async fn a_call_with_a_key_survives_its_client() {
    let server = start().await;
    let mut happened = server.pipeline.subscribe();
    let call = || server.call("stream_parts", &json!({})).header("idempotency-key", "k2");
    let mut events = call().events().await;
    events.next_named("output").await;
    drop(events);
    let (answer, ()) = tokio::join!(call().send(), async {
        loop {
            match happened.recv().await.unwrap().kind {
                EventKind::Output { .. } => server.signals.proceed.notify_one(),
                kind if kind.is_terminal() => break,
                _ => {}
            }
        }
    });
    assert_eq!(answer.expect(200).json()["text"], "done");
}
