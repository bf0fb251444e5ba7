//! Messages of each API: streamed and not, with calls, with what is broken, and on their way back.

use serde_json::{Value, json};

use super::*;
use crate::call::{CallId, Outcome};
use crate::content::Output;
use crate::error::ToolError;

/// A message that says "Let me see." and calls `add` and `now`, as each API sends it.
fn response(api: ModelApi) -> Value {
    match api {
        ModelApi::OpenAiChat => json!({
            "choices": [{
                "finish_reason": "tool_calls",
                "message": { "role": "assistant", "content": "Let me see.", "tool_calls": [
                    { "id": "c1", "type": "function",
                      "function": { "name": "add", "arguments": "{\"a\":1}" } },
                    { "id": "c2", "type": "function",
                      "function": { "name": "now", "arguments": "" } },
                ]},
            }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 5,
                       "prompt_tokens_details": { "cached_tokens": 4 } },
        }),
        ModelApi::OpenAiResponses => json!({
            "status": "completed",
            "output": [
                { "type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "gAAA" },
                { "type": "message", "role": "assistant", "content": [
                    { "type": "output_text", "text": "Let me see.", "annotations": [] },
                ]},
                { "type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"a\":1}" },
                { "type": "function_call", "call_id": "c2", "name": "now", "arguments": "{}" },
            ],
            "usage": { "input_tokens": 10, "output_tokens": 5,
                       "input_tokens_details": { "cached_tokens": 4 } },
        }),
        ModelApi::Anthropic => json!({
            "stop_reason": "tool_use",
            "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "sig" },
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "c1", "name": "add", "input": { "a": 1 } },
                { "type": "tool_use", "id": "c2", "name": "now", "input": {} },
            ],
            "usage": { "input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 5 },
        }),
        ModelApi::Gemini => json!({
            "status": "requires_action",
            "steps": [
                { "type": "user_input", "content": [{ "type": "text", "text": "hi" }] },
                { "type": "thought", "signature": "sig" },
                { "type": "model_output", "content": [{ "type": "text", "text": "Let me see." }] },
                { "type": "function_call", "id": "c1", "name": "add", "arguments": { "a": 1 } },
                { "type": "function_call", "id": "c2", "name": "now", "arguments": {} },
            ],
            "usage": { "total_input_tokens": 10, "total_cached_tokens": 4,
                       "total_output_tokens": 5 },
        }),
        ModelApi::GeminiGenerate => json!({
            "candidates": [{ "finishReason": "STOP", "content": { "role": "model", "parts": [
                { "text": "Let me see." },
                { "functionCall": { "id": "c1", "name": "add", "args": { "a": 1 } },
                  "thoughtSignature": "sig" },
                { "functionCall": { "id": "c2", "name": "now", "args": {} } },
            ]}}],
            "usageMetadata": { "promptTokenCount": 10, "cachedContentTokenCount": 4,
                               "candidatesTokenCount": 5 },
        }),
    }
}

/// The events by which each API streams [`response`].
fn events(api: ModelApi) -> Vec<Value> {
    match api {
        ModelApi::OpenAiChat => {
            let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
            let call = |at: u64, id: Value, name: Value, arguments: &str| {
                let function = json!({ "name": name, "arguments": arguments });
                delta(json!({ "tool_calls": [{ "index": at, "id": id, "function": function }] }))
            };
            vec![
                delta(json!({ "role": "assistant", "content": "" })),
                delta(json!({ "content": "Let me " })),
                delta(json!({ "content": "see." })),
                call(0, "c1".into(), "add".into(), ""),
                call(0, Value::Null, Value::Null, "{\"a\""),
                call(0, Value::Null, Value::Null, ":1}"),
                call(1, "c2".into(), "now".into(), ""),
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }),
                json!({ "choices": [], "usage": response(api)["usage"] }),
            ]
        }
        ModelApi::OpenAiResponses => {
            let whole = response(api);
            let mut events = vec![json!({ "type": "response.created", "response": {} })];
            for (at, item) in elements(&whole, "output").iter().enumerate() {
                let mut started = item.clone();
                if started["type"] == "function_call" {
                    started["arguments"] = "".into();
                } else if started["type"] == "message" {
                    started["content"] = json!([]);
                }
                events.push(json!({
                    "type": "response.output_item.added", "output_index": at, "item": started,
                }));
                if item["type"] == "message" {
                    for delta in ["Let me ", "see."] {
                        events.push(json!({
                            "type": "response.output_text.delta", "output_index": at, "delta": delta,
                        }));
                    }
                }
                events.push(json!({
                    "type": "response.output_item.done", "output_index": at, "item": item,
                }));
            }
            events.push(json!({ "type": "response.completed", "response": whole }));
            events
        }
        ModelApi::Anthropic => {
            let block = |at: u64, block: Value| json!({ "type": "content_block_start", "index": at, "content_block": block });
            let delta = |at: u64, delta: Value| json!({ "type": "content_block_delta", "index": at, "delta": delta });
            let call = |id: &str, name: &str| json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
            vec![
                json!({ "type": "message_start", "message": { "usage": {
                    "input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 1,
                }}}),
                block(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
                delta(0, json!({ "type": "thinking_delta", "thinking": "Hm." })),
                delta(0, json!({ "type": "signature_delta", "signature": "sig" })),
                json!({ "type": "content_block_stop", "index": 0 }),
                block(1, json!({ "type": "text", "text": "" })),
                json!({ "type": "ping" }),
                delta(1, json!({ "type": "text_delta", "text": "Let me " })),
                delta(1, json!({ "type": "text_delta", "text": "see." })),
                json!({ "type": "content_block_stop", "index": 1 }),
                block(2, call("c1", "add")),
                delta(2, json!({ "type": "input_json_delta", "partial_json": "{\"a\"" })),
                delta(2, json!({ "type": "input_json_delta", "partial_json": ": 1}" })),
                json!({ "type": "content_block_stop", "index": 2 }),
                block(3, call("c2", "now")),
                json!({ "type": "content_block_stop", "index": 3 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" },
                        "usage": { "output_tokens": 5 } }),
                json!({ "type": "message_stop" }),
            ]
        }
        ModelApi::Gemini => {
            let start = |at: u64, step: Value| json!({ "event_type": "step.start", "index": at, "step": step });
            let delta = |at: u64, delta: Value| json!({ "event_type": "step.delta", "index": at, "delta": delta });
            let call = |id: &str, name: &str| json!({ "type": "function_call", "id": id, "name": name, "arguments": {} });
            vec![
                json!({ "event_type": "interaction.created",
                        "interaction": { "id": "i", "status": "in_progress" } }),
                start(0, json!({ "type": "thought" })),
                delta(0, json!({ "type": "thought_signature", "signature": "sig" })),
                start(1, json!({ "type": "model_output" })),
                delta(1, json!({ "type": "text", "text": "Let me " })),
                delta(1, json!({ "type": "text", "text": "see." })),
                json!({ "event_type": "step.stop", "index": 1 }),
                start(2, call("c1", "add")),
                delta(2, json!({ "type": "arguments_delta", "arguments": "{\"a\"" })),
                delta(2, json!({ "type": "arguments_delta", "arguments": ":1}" })),
                start(3, call("c2", "now")),
                json!({ "event_type": "interaction.completed", "interaction": {
                    "id": "i", "status": "requires_action", "usage": response(api)["usage"],
                }}),
            ]
        }
        ModelApi::GeminiGenerate => {
            let part = |part: Value| json!({ "candidates": [{ "content": { "parts": [part] } }] });
            let whole = response(api);
            let parts = &whole["candidates"][0]["content"]["parts"];
            vec![
                part(json!({ "text": "Let me " })),
                part(json!({ "text": "see." })),
                part(parts[1].clone()),
                part(parts[2].clone()),
                json!({ "candidates": [{ "finishReason": "STOP" }],
                        "usageMetadata": whole["usageMetadata"] }),
            ]
        }
    }
}

fn assemble(api: ModelApi, events: &[Value]) -> (ModelMessage, Vec<MessageDelta>) {
    let mut message = MessageAccumulator::new(api);
    let deltas = events.iter().flat_map(|event| message.push(event).unwrap()).collect();
    (message.finish(), deltas)
}

/// Id, name and argument text of each call.
fn calls(message: &ModelMessage) -> Vec<(String, String, String)> {
    let call = |call: crate::call::Call<'static>| {
        let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
        (id, call.name.to_string(), call.arguments.text().replace(' ', ""))
    };
    message.calls().into_iter().map(call).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

// F196: the calls of each API, streamed and not.
#[test]
fn a_message_is_the_same_streamed_and_not() {
    for api in ModelApi::ALL {
        let whole = ModelMessage::from_response(&response(api), api).unwrap();
        let (streamed, deltas) = assemble(api, &events(api));
        for message in [&whole, &streamed] {
            assert_eq!(message.text(), "Let me see.", "{api}");
            assert_eq!(
                calls(message),
                [call("c1", "add", r#"{"a":1}"#), call("c2", "now", "{}")],
                "{api}"
            );
            assert_eq!(message.stop, StopReason::ToolCalls, "{api}");
            let usage = TokenUsage { input: 10, cached_input: 4, output: 5 };
            assert_eq!(message.usage, usage, "{api}");
            assert!(message.cut_off_error().is_none(), "{api}");
        }
        // What goes back has the signatures of what came.
        assert_eq!(whole.encode(api).len(), streamed.encode(api).len(), "{api}");
        if api != ModelApi::OpenAiChat {
            assert_eq!(whole.raw, streamed.raw, "{api}");
        }
        let texts: Vec<MessageDelta> =
            deltas.into_iter().filter(|it| !matches!(it, MessageDelta::Reasoning(_))).collect();
        let text = |text: &str| MessageDelta::Text(text.to_owned());
        let begun = |name: &str| MessageDelta::Call(name.to_owned());
        assert_eq!(texts, [text("Let me "), text("see."), begun("add"), begun("now")], "{api}");
    }
}

// F196: wherever a stream is cut, no call of it may run, and the rest is a message that can be sent
// back with an answer for each call.
#[test]
fn a_stream_that_is_cut_runs_no_call() {
    for api in ModelApi::ALL {
        let events = events(api);
        let until_end = events.len() - 1 - usize::from(matches!(api, ModelApi::OpenAiChat));
        let last = if api == ModelApi::Anthropic { until_end - 1 } else { until_end };
        for end in 0..=last {
            let (message, _) = assemble(api, &events[..end]);
            assert_eq!(message.stop, StopReason::CutOff, "{api} {end}");
            assert!(message.cut_off_error().is_some(), "{api} {end}");
            let (sent, calls) = (message.encode(api), calls(&message));
            assert!(calls.iter().all(|(id, _, _)| !id.is_empty()), "{api} {end}: {sent:?}");
            // Also to another API.
            ModelApi::ALL.into_iter().for_each(|other| drop(message.encode(other)));
        }
    }
}

// F196: arguments that are no JSON reach the pipeline as they were written.
#[test]
fn malformed_arguments_are_kept_for_their_answer() {
    let broken = |api: ModelApi| -> Vec<Value> {
        let text = serde_json::to_string(&events(api)).unwrap();
        serde_json::from_str(&text.replace(r#":1}""#, r#":1""#).replace(r#": 1}""#, r#":1""#))
            .unwrap()
    };
    for api in [ModelApi::OpenAiChat, ModelApi::Anthropic, ModelApi::Gemini] {
        let (message, _) = assemble(api, &broken(api));
        assert_eq!(calls(&message)[0], call("c1", "add", r#"{"a":1"#), "{api}");
        assert_eq!(calls(&message)[1], call("c2", "now", "{}"), "{api}");
        // An API with objects gets an empty one back, and the whole survives a store.
        let stored = serde_json::to_string(&message).unwrap();
        let restored: ModelMessage = serde_json::from_str(&stored).unwrap();
        assert_eq!(calls(&restored), calls(&message), "{api}");
        assert_eq!(restored.encode(api), message.encode(api), "{api}");
    }
    assert_eq!(
        assemble(ModelApi::Anthropic, &broken(ModelApi::Anthropic)).0.raw[2]["input"],
        json!({})
    );
}

// F196: a call without an id gets one that its answer can name.
#[test]
fn a_call_without_an_id_gets_one() {
    for api in ModelApi::ALL {
        let text = response(api).to_string();
        let nameless: Value =
            serde_json::from_str(&text.replace(r#""id":"c1","#, "").replace(r#""c1""#, r#""""#))
                .unwrap();
        let message = ModelMessage::from_response(&nameless, api).unwrap();
        let id = calls(&message)[0].0.clone();
        assert!(id.starts_with("call_") && id != calls(&message)[1].0, "{api}: {id}");
        assert!(json!(message.encode(api)).to_string().contains(&id), "{api}");
    }
}

/// An answer with an image, and one of a call that failed.
fn answers() -> [CallAnswer; 2] {
    let image = Attachment::bytes("image/png", vec![1]);
    let seen = Outcome::new(CallId::from_external("c1"), Ok(Output::text("seen").attach(image)));
    let failed = ToolError::not_found("there is no clock").hint("ask the user");
    let failed = Outcome::new(CallId::from_external("c2"), Err(failed));
    [CallAnswer::from_outcome("add", &seen), CallAnswer::from_outcome("now", &failed)]
}

// F131, F196: results and errors, with images, for each API.
#[test]
fn answers_follow_the_calls() {
    let error = json!({
        "error": "there is no clock", "category": "not_found", "tool": "now",
        "suggestion": "ask the user",
    });
    let error = error.to_string();
    let url = "data:image/png;base64,AQ==";
    let expected = |api: ModelApi| match api {
        ModelApi::OpenAiChat => json!([
            { "role": "tool", "tool_call_id": "c1", "content": "seen" },
            { "role": "tool", "tool_call_id": "c2", "content": error },
            { "role": "user", "content": [
                { "type": "text", "text": "Attachments of the result of `add`:" },
                { "type": "image_url", "image_url": { "url": url } },
            ]},
        ]),
        ModelApi::OpenAiResponses => json!([
            { "type": "function_call_output", "call_id": "c1", "output": [
                { "type": "input_text", "text": "seen" },
                { "type": "input_image", "image_url": url, "detail": "auto" },
            ]},
            { "type": "function_call_output", "call_id": "c2", "output": error },
        ]),
        ModelApi::Anthropic => json!([{ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c1", "content": [
                { "type": "text", "text": "seen" },
                { "type": "image", "source": {
                    "type": "base64", "media_type": "image/png", "data": "AQ==",
                }},
            ]},
            { "type": "tool_result", "tool_use_id": "c2", "is_error": true, "content": [
                { "type": "text", "text": error },
            ]},
        ]}]),
        ModelApi::Gemini => json!([
            { "type": "function_result", "call_id": "c1", "name": "add", "is_error": false,
              "result": [
                { "type": "text", "text": "seen" },
                { "type": "image", "data": "AQ==", "mime_type": "image/png" },
            ]},
            { "type": "function_result", "call_id": "c2", "name": "now", "is_error": true,
              "result": error },
        ]),
        ModelApi::GeminiGenerate => json!([{ "role": "user", "parts": [
            { "functionResponse": { "id": "c1", "name": "add", "response": { "output": "seen" } } },
            { "functionResponse": { "id": "c2", "name": "now", "response": { "error": error } } },
            { "inlineData": { "mimeType": "image/png", "data": "AQ==" } },
        ]}]),
    };
    for api in ModelApi::ALL {
        assert_eq!(json!(encode_answers(&answers(), api)), expected(api), "{api}");
        assert_eq!(encode_answers(&[], api), [] as [Value; 0], "{api}");
    }
}

// F196: a conversation goes on with a model of another provider.
#[test]
fn a_message_can_be_sent_to_another_api() {
    for from in ModelApi::ALL {
        let message = ModelMessage::from_response(&response(from), from).unwrap();
        for to in ModelApi::ALL.into_iter().filter(|to| *to != from) {
            let sent = json!(message.encode(to)).to_string();
            assert!(!sent.contains("sig") && !sent.contains("gAAA"), "{from} {to}: {sent}");
            for part in ["Let me see.", "c1", "c2", "add", "now"] {
                assert!(sent.contains(part), "{from} {to}: {sent}");
            }
        }
    }
}

#[test]
fn failures_within_a_stream_are_told() {
    for (api, event, code) in [
        (
            ModelApi::Anthropic,
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Busy" } }),
            "overloaded_error",
        ),
        (
            ModelApi::OpenAiChat,
            json!({ "error": { "code": "server_error", "message": "Busy" } }),
            "server_error",
        ),
        (
            ModelApi::OpenAiResponses,
            json!({ "type": "response.failed", "response": { "error": {
                "code": "server_error", "message": "Busy",
            }}}),
            "server_error",
        ),
        (
            ModelApi::Gemini,
            json!({ "event_type": "error", "error": { "code": "unavailable", "message": "Busy" } }),
            "unavailable",
        ),
    ] {
        let failure = MessageAccumulator::new(api).push(&event).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.to_string().as_str()), (code, "Busy"), "{api}");
    }
}

#[test]
fn what_is_no_message_is_an_error() {
    for api in ModelApi::ALL {
        for response in [json!({}), json!([]), json!({ "error": { "message": "no" } })] {
            let error = ModelMessage::from_response(&response, api).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the response is not a message of the API {api}")
            );
        }
    }
}
