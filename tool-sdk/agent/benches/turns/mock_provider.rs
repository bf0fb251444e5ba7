//! A provider that calls a tool, and answers with a text once it has the result.

use std::error::Error;
use std::fmt::Write as _;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How many words the answer has; each is an event.
const WORDS: usize = 200;

pub(crate) async fn serve() -> Result<(), Box<dyn Error>> {
    let (call, text) = (encode_events(&call_deltas()), encode_events(&text_deltas()));
    let respond = move |request: String| async move {
        let events = if request.contains(r#""role":"tool""#) { text } else { call };
        ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/v1", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/v1/chat/completions", post(respond))).await?;
    Ok(())
}

fn call_deltas() -> Vec<Value> {
    let mut deltas = vec![json!({ "tool_calls": [
        { "index": 0, "id": "call-1", "type": "function", "function": { "name": "add", "arguments": "" } }
    ] })];
    deltas.extend(
        ["{\"a\"", ": 1,", " \"b\"", ": 2}"].map(
            |part| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": part } }] }),
        ),
    );
    deltas
}

fn text_deltas() -> Vec<Value> {
    (0..WORDS).map(|number| json!({ "content": format!("word{number} ") })).collect()
}

fn encode_events(deltas: &[Value]) -> &'static str {
    let reason = if deltas.len() == WORDS { "stop" } else { "tool_calls" };
    let mut events = String::new();
    let chunk = |choice: Value| json!({ "id": "c", "object": "chat.completion.chunk", "choices": [choice] });
    let chunks = deltas.iter().map(|delta| chunk(json!({ "index": 0, "delta": delta })));
    let last = chunk(json!({ "index": 0, "delta": {}, "finish_reason": reason }));
    for event in chunks.chain([last]) {
        // Writing to a string cannot fail.
        let _ = write!(events, "data: {event}\n\n");
    }
    events.push_str("data: [DONE]\n\n");
    events.leak()
}
