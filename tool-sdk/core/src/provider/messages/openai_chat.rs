//! Messages of chat completions.

use serde_json::{Map, Value, json};

use super::{
    AssembledMessage, CallAnswer, DecodedResponse, MessageAssembly, MessageCall, MessageDelta,
    MessageFormat, ModelApi, StopReason, StreamFailure, TokenUsage, append_string,
    attachment_parts, elements, number_at, set_missing_id, string_at,
};
use crate::content::Attachment;

/// The message is the object at `choices[0].message`.
pub(super) struct ChatFormat;

impl MessageFormat for ChatFormat {
    fn decode_response(&self, response: &Value) -> Option<DecodedResponse> {
        let choice = response.pointer("/choices/0")?;
        let message = choice.get("message").filter(|message| message.is_object())?.clone();
        let stop = choice.get("finish_reason").and_then(Value::as_str).map_or(
            // Some compatible servers leave it out.
            StopReason::EndTurn,
            decode_stop,
        );
        Some(DecodedResponse { message, stop, usage: decode_usage(response) })
    }

    fn text(&self, message: &Value) -> String {
        match message.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().map(|part| string_at(part, "text")).collect(),
            _ => string_at(message, "refusal"),
        }
    }

    fn calls(&self, message: &Value) -> Vec<MessageCall> {
        let call = |call: &Value| {
            let function = &call["function"];
            MessageCall {
                id: string_at(call, "id"),
                name: string_at(function, "name"),
                arguments: or_empty_object(arguments_text(&function["arguments"])),
            }
        };
        elements(message, "tool_calls").iter().map(call).collect()
    }

    fn for_each_call_id(&self, message: &mut Value, set: &mut dyn FnMut(&mut Value)) {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        calls.into_iter().flatten().for_each(|call| set_missing_id(call, "id", set));
    }

    // A message without text and calls is refused by strict servers.
    fn encode_own(&self, message: &Value) -> Vec<Value> {
        let is_empty = self.text(message).is_empty() && elements(message, "tool_calls").is_empty();
        if is_empty { Vec::new() } else { vec![message.clone()] }
    }

    fn encode_foreign(&self, text: &str, calls: &[MessageCall]) -> Vec<Value> {
        let mut message = json!({ "role": "assistant", "content": text });
        if !calls.is_empty() {
            let call = |call: &MessageCall| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments },
                })
            };
            message["tool_calls"] = calls.iter().map(call).collect();
        }
        vec![message]
    }

    fn own_message(&self, encoded: Value) -> Value {
        encoded
    }

    fn encode_user(&self, text: &str, attachments: &[Attachment]) -> Value {
        if attachments.is_empty() {
            return json!({ "role": "user", "content": text });
        }
        let mut parts = vec![json!({ "type": "text", "text": text })];
        parts.extend(attachment_parts(attachments, ModelApi::OpenAiChat.tool_dialect()));
        json!({ "role": "user", "content": parts })
    }

    // A tool message takes text only, so images follow in a user message.
    fn encode_answers(&self, answers: &[CallAnswer]) -> Vec<Value> {
        let answer = |answer: &CallAnswer| json!({ "role": "tool", "tool_call_id": answer.id, "content": answer.text });
        let mut messages: Vec<Value> = answers.iter().map(answer).collect();
        for answer in answers.iter().filter(|answer| !answer.attachments.is_empty()) {
            let about = format!("Attachments of the result of `{}`:", answer.name);
            messages.push(self.encode_user(&about, &answer.attachments));
        }
        messages
    }

    fn assembly(&self) -> Box<dyn MessageAssembly> {
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        message.insert("content".to_owned(), Value::Null);
        Box::new(ChatAssembly { message: message.into(), stop: None, usage: TokenUsage::default() })
    }
}

/// Arguments are text; some compatible servers send them as an object.
fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A call without parameters is often sent without arguments.
pub(super) fn or_empty_object(arguments: String) -> String {
    if arguments.trim().is_empty() { "{}".to_owned() } else { arguments }
}

fn decode_stop(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolCalls,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

fn decode_usage(response: &Value) -> TokenUsage {
    TokenUsage {
        input: number_at(response, "/usage/prompt_tokens"),
        cached_input: number_at(response, "/usage/prompt_tokens_details/cached_tokens"),
        output: number_at(response, "/usage/completion_tokens"),
    }
}

struct ChatAssembly {
    message: Value,
    stop: Option<StopReason>,
    usage: TokenUsage,
}

impl MessageAssembly for ChatAssembly {
    fn push(&mut self, event: &Value, deltas: &mut Vec<MessageDelta>) -> Result<(), StreamFailure> {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(StreamFailure::from_error(error));
        }
        if event.get("usage").is_some_and(Value::is_object) {
            self.usage = decode_usage(event);
        }
        let Some(choice) = event.pointer("/choices/0") else { return Ok(()) };
        if let Some(delta) = choice.get("delta").and_then(Value::as_object) {
            self.add_delta(delta, deltas);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.stop = Some(decode_stop(reason));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> AssembledMessage {
        let (message, stop) = (self.message, self.stop.unwrap_or_default());
        let response = DecodedResponse { message, stop, usage: self.usage };
        AssembledMessage { response, malformed: Vec::new() }
    }
}

impl ChatAssembly {
    fn add_delta(&mut self, delta: &Map<String, Value>, deltas: &mut Vec<MessageDelta>) {
        for (key, value) in delta {
            match (key.as_str(), value) {
                (_, Value::Null) | ("role", _) => {}
                ("tool_calls", Value::Array(parts)) => {
                    parts.iter().for_each(|part| self.add_call_part(part, deltas));
                }
                (_, Value::String(text)) => {
                    let shown = match key.as_str() {
                        "content" | "refusal" => Some(MessageDelta::Text(text.clone())),
                        "reasoning_content" | "reasoning" => {
                            Some(MessageDelta::Reasoning(text.clone()))
                        }
                        _ => None,
                    };
                    deltas.extend(shown.filter(|_| !text.is_empty()));
                    append_string(&mut self.message, &Value::Object(delta.clone()), key);
                }
                // Details of reasoning, in parts that go back in their order.
                (_, Value::Array(parts)) => match &mut self.message[key] {
                    Value::Array(list) => list.extend(parts.iter().cloned()),
                    place => *place = value.clone(),
                },
                _ => self.message[key] = value.clone(),
            }
        }
    }

    /// Adds a part of a call. A part without an index and with an id begins a new call.
    fn add_call_part(&mut self, part: &Value, deltas: &mut Vec<MessageDelta>) {
        if !self.message["tool_calls"].is_array() {
            self.message["tool_calls"] = json!([]);
        }
        let Value::Array(calls) = &mut self.message["tool_calls"] else { return };
        let is_new = part.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty());
        let at = match part.get("index").and_then(Value::as_u64) {
            Some(index) => usize::try_from(index).unwrap_or(usize::MAX).min(calls.len()),
            None if is_new => calls.len(),
            None => calls.len().saturating_sub(1),
        };
        if at == calls.len() {
            let function = json!({ "name": "", "arguments": "" });
            calls.push(json!({ "id": "", "type": "function", "function": function }));
            deltas.push(MessageDelta::Call(string_at(&part["function"], "name")));
        }
        let call = &mut calls[at];
        for (key, value) in part.as_object().into_iter().flatten() {
            match key.as_str() {
                "index" | "type" => {}
                "function" => {
                    append_string(&mut call["function"], value, "name");
                    let arguments = json!({ "arguments": arguments_text(&value["arguments"]) });
                    append_string(&mut call["function"], &arguments, "arguments");
                }
                _ if value.is_null() => {}
                _ => call[key] = value.clone(),
            }
        }
    }
}
