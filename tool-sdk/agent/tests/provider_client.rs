//! The clients of the providers' APIs against an HTTP server on loopback: requests, streams, retries,
//! broken connections, refusals.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tool_sdk::agent::{
    ApiKey, ModelClient, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ProviderClient,
    ReasoningEffort, RetryPolicy, ToolChoice, Transcript,
};
use tool_sdk::provider::{MessageDelta, ModelApi, ModelMessage, StopReason};
use tool_sdk::{Registry, Toolset, tool, tools};

/// Add two numbers.
#[tool(read)]
fn add(
    /// One number.
    a: i64,
    /// The other number.
    b: i64,
) -> String {
    (a + b).to_string()
}

/// What the server answers to one request.
#[derive(Clone)]
enum Answer {
    /// The events, and then the end of the response.
    Events(Vec<Value>),
    /// The events, and then `[DONE]`.
    Done(Vec<Value>),
    /// The events, and when the client has read one of them the connection breaks.
    Broken(Vec<Value>),
    /// The events, and then nothing.
    Silent(Vec<Value>),
    /// A status with these headers and this body.
    Status(u16, &'static [(&'static str, &'static str)], &'static str),
}

/// One received request: path with query, headers, body.
type ReceivedRequest = (String, HeaderMap, Value);

#[derive(Clone, Default)]
struct FakeProvider {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// Notified when the client has read an event.
    read: Arc<Notify>,
}

impl FakeProvider {
    /// Starts a server that gives these answers in turn, and returns it with its URL.
    async fn start(answers: impl IntoIterator<Item = Answer>) -> (Self, String) {
        let provider = Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            ..Self::default()
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer_request).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (provider, url)
    }

    fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

async fn answer_request(
    State(provider): State<FakeProvider>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = serde_json::from_slice(&body).unwrap();
    provider.requests.lock().unwrap().push((uri.to_string(), headers, body));
    let answer = provider.answers.lock().unwrap().pop_front();
    let lines = |events: Vec<Value>| {
        events.into_iter().map(|event| Ok::<_, std::io::Error>(format!("data: {event}\n\n")))
    };
    let body = match answer.unwrap() {
        Answer::Events(events) => Body::from_stream(stream::iter(lines(events))),
        Answer::Done(events) => {
            let end = std::iter::once(Ok("data: [DONE]\n\n".to_owned()));
            Body::from_stream(stream::iter(lines(events).chain(end)))
        }
        Answer::Broken(events) => {
            let end = stream::once(async move {
                provider.read.notified().await;
                Err(std::io::Error::other("broken"))
            });
            Body::from_stream(stream::iter(lines(events)).chain(end))
        }
        Answer::Silent(events) => {
            Body::from_stream(stream::iter(lines(events)).chain(stream::pending()))
        }
        Answer::Status(status, headers, body) => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            for (name, value) in headers {
                response.headers_mut().insert(*name, value.parse().unwrap());
            }
            return response;
        }
    };
    Response::new(body)
}

/// A call of `add`, as each API streams it.
fn call_events(api: ModelApi) -> Vec<Value> {
    match api {
        ModelApi::OpenAiChat => vec![
            json!({ "choices": [{ "delta": { "role": "assistant", "tool_calls": [{
                "index": 0, "id": "c1",
                "function": { "name": "add", "arguments": "{\"a\":1,\"b\":2}" },
            }]}}]}),
            json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
        ],
        ModelApi::OpenAiResponses => {
            let item = json!({ "type": "function_call", "call_id": "c1", "name": "add",
                               "arguments": "{\"a\":1,\"b\":2}" });
            vec![
                json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
                json!({ "type": "response.completed",
                        "response": { "status": "completed", "output": [item] } }),
            ]
        }
        ModelApi::Anthropic => vec![
            json!({ "type": "content_block_start", "index": 0, "content_block": {
                "type": "tool_use", "id": "c1", "name": "add", "input": {},
            }}),
            json!({ "type": "content_block_delta", "index": 0, "delta": {
                "type": "input_json_delta", "partial_json": "{\"a\":1,\"b\":2}",
            }}),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        ],
        ModelApi::Gemini => vec![
            json!({ "event_type": "step.start", "index": 0, "step": {
                "type": "function_call", "id": "c1", "name": "add", "arguments": { "a": 1, "b": 2 },
            }}),
            json!({ "event_type": "interaction.completed",
                    "interaction": { "status": "requires_action" } }),
        ],
        ModelApi::GeminiGenerate => vec![json!({ "candidates": [{
            "content": { "parts": [{ "functionCall": {
                "id": "c1", "name": "add", "args": { "a": 1, "b": 2 },
            }}]},
            "finishReason": "STOP",
        }]})],
    }
}

fn text_event(text: &str) -> Value {
    json!({ "choices": [{ "delta": { "content": text } }] })
}

fn end_event() -> Value {
    json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] })
}

fn client(api: ModelApi, url: &str) -> ProviderClient {
    // The version is part of OpenAI's base URL.
    let url = match api {
        ModelApi::OpenAiChat | ModelApi::OpenAiResponses => format!("{url}/v1"),
        _ => url.to_owned(),
    };
    let retry = RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    ProviderClient::new(api, "m-1")
        .unwrap()
        .with_base_url(&url)
        .unwrap()
        .with_key(ApiKey::value("k-1"))
        .with_retry(retry)
}

async fn respond(
    client: &ProviderClient,
    provider: &FakeProvider,
) -> (Result<ModelMessage, ModelError>, Vec<ModelEvent>) {
    let transcript = Transcript::from_user("What is 1 + 2?");
    let registry = Registry::builder().add(tools![add]).build().unwrap();
    let mut request = ModelRequest::new(&transcript);
    request.system = "Be brief.";
    request.tools = Some(Toolset::new(registry).view());
    request.tool_choice = ToolChoice::Required;
    request.reasoning_effort = Some(ReasoningEffort::Low);
    request.max_output_tokens = Some(1_000);
    request.cache_key = "s-1";
    let mut events = Vec::new();
    let mut keep = |event: ModelEvent| {
        if matches!(event, ModelEvent::Delta(_)) {
            provider.read.notify_one();
        }
        events.push(event);
    };
    let message = client.respond(&request, &mut keep).await;
    (message, events)
}

// F196: a call of each API, with the request that leads to it.
#[tokio::test]
async fn every_api_is_asked_in_its_own_words() {
    for (api, path, key, pointers) in [
        (
            ModelApi::OpenAiChat,
            "/v1/chat/completions",
            ("authorization", "Bearer k-1"),
            &[
                ("/model", json!("m-1")),
                ("/stream", json!(true)),
                ("/messages/0/content", json!("Be brief.")),
                ("/messages/1/content", json!("What is 1 + 2?")),
                ("/tools/0/function/name", json!("add")),
                ("/tool_choice", json!("required")),
                ("/max_completion_tokens", json!(1_000)),
                ("/reasoning_effort", json!("low")),
            ][..],
        ),
        (
            ModelApi::OpenAiResponses,
            "/v1/responses",
            ("authorization", "Bearer k-1"),
            &[
                ("/instructions", json!("Be brief.")),
                ("/store", json!(false)),
                ("/tools/0/name", json!("add")),
                ("/reasoning/effort", json!("low")),
                ("/prompt_cache_key", json!("s-1")),
            ],
        ),
        (
            ModelApi::Anthropic,
            "/v1/messages",
            ("x-api-key", "k-1"),
            &[
                ("/max_tokens", json!(1_000)),
                ("/system/0/cache_control/type", json!("ephemeral")),
                ("/messages/0/content/0/cache_control/type", json!("ephemeral")),
                ("/tools/0/cache_control/type", json!("ephemeral")),
                ("/tool_choice/type", json!("any")),
            ],
        ),
        (
            ModelApi::Gemini,
            "/v1beta/interactions",
            ("x-goog-api-key", "k-1"),
            &[
                ("/model", json!("m-1")),
                ("/store", json!(false)),
                ("/system_instruction", json!("Be brief.")),
                ("/tools/0/name", json!("add")),
                ("/generation_config/tool_choice", json!("any")),
            ],
        ),
        (
            ModelApi::GeminiGenerate,
            "/v1beta/models/m-1:streamGenerateContent?alt=sse",
            ("x-goog-api-key", "k-1"),
            &[
                ("/systemInstruction/parts/0/text", json!("Be brief.")),
                ("/tools/0/functionDeclarations/0/name", json!("add")),
                ("/toolConfig/functionCallingConfig/mode", json!("ANY")),
            ],
        ),
    ] {
        let (provider, url) = FakeProvider::start([Answer::Events(call_events(api))]).await;
        let (message, _) = respond(&client(api, &url), &provider).await;
        let message = message.unwrap();
        assert_eq!(message.stop, StopReason::ToolCalls, "{api}");
        assert_eq!(message.calls()[0].arguments.text().replace(' ', ""), r#"{"a":1,"b":2}"#);

        let (sent_path, headers, body) = provider.requests().remove(0);
        assert_eq!((sent_path.as_str(), &headers[key.0]), (path, &key.1.parse().unwrap()), "{api}");
        for (pointer, expected) in pointers {
            assert_eq!(body.pointer(pointer), Some(expected), "{api} {pointer}: {body}");
        }
    }
}

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    let busy = [
        Answer::Status(503, &[], "busy"),
        Answer::Status(429, &[("retry-after-ms", "5")], r#"{"error": {"message": "slow down"}}"#),
        Answer::Events(vec![json!({ "error": { "code": "overloaded", "message": "busy" } })]),
        Answer::Events(vec![text_event("Hi"), end_event()]),
    ];
    let (provider, url) = FakeProvider::start(busy).await;
    let (message, events) = respond(&client(ModelApi::OpenAiChat, &url), &provider).await;
    assert_eq!(message.unwrap().text(), "Hi");
    assert_eq!(provider.requests().len(), 4);
    let retries: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Retry { reason, .. } => Some(reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        retries,
        ["the provider answered 503: busy", "the provider answered 429: slow down", "busy"]
    );
}

// What was shown once is not sent twice: the client leaves it to its caller.
#[tokio::test]
async fn a_message_that_breaks_off_is_not_asked_for_again() {
    let (provider, url) = FakeProvider::start([Answer::Broken(vec![text_event("Hi ")])]).await;
    let (message, events) = respond(&client(ModelApi::OpenAiChat, &url), &provider).await;
    let error = message.unwrap_err();
    assert_eq!((error.kind, provider.requests().len()), (ModelErrorKind::Network, 1));
    let partial = error.partial.unwrap();
    assert_eq!((partial.text().as_str(), &partial.stop), ("Hi ", &StopReason::CutOff));
    assert!(matches!(&events[..], [ModelEvent::Delta(MessageDelta::Text(_))]), "{events:?}");
}

// A proxy may end a response that broke off behind it like a whole one.
#[tokio::test]
async fn a_message_without_its_end_is_a_failure() {
    let cut = || Answer::Events(vec![text_event("Hi")]);
    let (provider, url) = FakeProvider::start([cut()]).await;
    let error = respond(&client(ModelApi::OpenAiChat, &url), &provider).await.0.unwrap_err();
    assert_eq!(
        (error.kind, error.partial.unwrap().text().as_str()),
        (ModelErrorKind::Network, "Hi")
    );

    // Nothing arrived, so it is asked for again; and some servers say no more than `[DONE]`.
    let done = Answer::Done(vec![text_event("Hi")]);
    let (provider, url) = FakeProvider::start([Answer::Events(Vec::new()), done]).await;
    let message = respond(&client(ModelApi::OpenAiChat, &url), &provider).await.0.unwrap();
    assert_eq!((message.text().as_str(), message.stop), ("Hi", StopReason::EndTurn));
}

// Servers that do not know streams answer with the whole message; a response that is not a message is an error.
#[tokio::test]
async fn a_response_that_is_not_streamed_is_read_whole() {
    let headers: &[_] = &[("content-type", "application/json")];
    let whole = r#"{"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}"#;
    let (provider, url) = FakeProvider::start([Answer::Status(200, headers, whole)]).await;
    let (message, events) = respond(&client(ModelApi::OpenAiChat, &url), &provider).await;
    assert_eq!((message.unwrap().text().as_str(), events.len()), ("Hi", 1));

    let (provider, url) = FakeProvider::start([Answer::Status(200, headers, "{}")]).await;
    let error = respond(&client(ModelApi::OpenAiChat, &url), &provider).await.0.unwrap_err();
    assert_eq!((error.kind, provider.requests().len()), (ModelErrorKind::InvalidRequest, 1));
    assert!(error.message.contains("did not answer as a model"), "{error}");
}

#[tokio::test]
async fn silence_ends_a_response() {
    let (provider, url) = FakeProvider::start([Answer::Silent(vec![text_event("Hi")])]).await;
    let client = client(ModelApi::OpenAiChat, &url)
        // So long that the event has come, however late it is.
        .with_timeouts(Duration::from_secs(60), Duration::from_secs(3));
    let error = respond(&client, &provider).await.0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert_eq!(error.partial.unwrap().text(), "Hi");
}

#[tokio::test]
async fn refusals_are_told_and_not_repeated() {
    let long = r#"{"error": {"message": "prompt is too long: 250000 tokens > 200000 maximum"}}"#;
    for (status, body, kind, said) in [
        (
            401,
            r#"{"error": {"message": "invalid key"}}"#,
            ModelErrorKind::Unauthorized,
            "invalid key",
        ),
        (400, r#"{"error": "no such model"}"#, ModelErrorKind::InvalidRequest, "no such model"),
        (400, long, ModelErrorKind::ContextFull, "too long"),
        (404, "", ModelErrorKind::InvalidRequest, "no explanation"),
        (302, "", ModelErrorKind::InvalidRequest, "302"),
    ] {
        let headers: &[_] = &[("location", "http://127.0.0.1:9/")];
        let (provider, url) = FakeProvider::start([Answer::Status(status, headers, body)]).await;
        let error = respond(&client(ModelApi::Anthropic, &url), &provider).await.0.unwrap_err();
        assert_eq!(error.kind, kind, "{status} {body}");
        assert!(error.message.contains(said), "{error}");
        assert_eq!(provider.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_endpoint_without_protection_is_refused() {
    for (url, problem) in [
        ("http://example.com/v1", "plain http is allowed for this machine only; use https"),
        ("https://ada:secret@example.com", "it must not contain credentials"),
        ("ftp://example.com", "it must start with https://"),
        ("models", "relative URL without a base"),
    ] {
        let client = ProviderClient::new(ModelApi::OpenAiChat, "m").unwrap();
        let error = client.with_base_url(url).unwrap_err().to_string();
        assert_eq!(error, format!("the URL of the model: {problem}"));
    }
    let nowhere = client(ModelApi::OpenAiChat, "http://127.0.0.1:9")
        .with_retry(RetryPolicy { max_retries: 0, ..RetryPolicy::default() });
    let error = respond(&nowhere, &FakeProvider::default()).await.0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(error.message.contains("cannot be reached"), "{error}");
    assert!(!format!("{nowhere:?}").contains("k-1"));
}
