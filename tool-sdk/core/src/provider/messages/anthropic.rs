//! Messages of the Messages API: lists of content blocks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    AssembledMessage, CallAnswer, DecodedResponse, MessageAssembly, MessageCall, MessageDelta,
    MessageFormat, ModelApi, StopReason, StreamFailure, TokenUsage, append_string,
    arguments_object, attachment_parts, elements, number_at, set_missing_id, string_at,
};
use crate::content::Attachment;

/// The message is the array `content`.
pub(super) struct MessagesFormat;

impl MessageFormat for MessagesFormat {
    fn decode_response(&self, response: &Value) -> Option<DecodedResponse> {
        let message = response.get("content").filter(|content| content.is_array())?.clone();
        let stop = response.get("stop_reason").and_then(Value::as_str).map(decode_stop);
        let usage = decode_usage(&response["usage"]);
        Some(DecodedResponse { message, stop: stop.unwrap_or_default(), usage })
    }

    fn text(&self, message: &Value) -> String {
        blocks(message).filter(|it| it["type"] == "text").map(|it| string_at(it, "text")).collect()
    }

    fn calls(&self, message: &Value) -> Vec<MessageCall> {
        let call = |block: &Value| MessageCall {
            id: string_at(block, "id"),
            name: string_at(block, "name"),
            arguments: block.get("input").map_or_else(|| "{}".to_owned(), Value::to_string),
        };
        blocks(message).filter(|block| is_call(block)).map(call).collect()
    }

    fn for_each_call_id(&self, message: &mut Value, set: &mut dyn FnMut(&mut Value)) {
        let calls = message.as_array_mut().into_iter().flatten().filter(|block| is_call(block));
        calls.for_each(|call| set_missing_id(call, "id", set));
    }

    // Empty texts, and messages without content, are refused.
    fn encode_own(&self, message: &Value) -> Vec<Value> {
        let is_empty =
            |block: &Value| block["type"] == "text" && string_at(block, "text").is_empty();
        let content: Vec<Value> = blocks(message).filter(|it| !is_empty(it)).cloned().collect();
        if content.is_empty() {
            return Vec::new();
        }
        vec![json!({ "role": "assistant", "content": content })]
    }

    fn encode_foreign(&self, text: &str, calls: &[MessageCall]) -> Vec<Value> {
        let said = json!({ "type": "text", "text": text });
        let call = |call: &MessageCall| {
            json!({
                "type": "tool_use",
                "id": call.id,
                "name": call.name,
                "input": arguments_object(&call.arguments),
            })
        };
        let content: Value = std::iter::once(said).chain(calls.iter().map(call)).collect();
        self.encode_own(&content)
    }

    fn own_message(&self, encoded: Value) -> Value {
        encoded["content"].clone()
    }

    fn encode_user(&self, text: &str, attachments: &[Attachment]) -> Value {
        json!({ "role": "user", "content": parts(text, attachments) })
    }

    // All results of a message are in the one user message that follows it.
    fn encode_answers(&self, answers: &[CallAnswer]) -> Vec<Value> {
        let answer = |answer: &CallAnswer| {
            let mut block = json!({
                "type": "tool_result",
                "tool_use_id": answer.id,
                "content": parts(&answer.text, &answer.attachments),
            });
            if answer.is_error {
                block["is_error"] = true.into();
            }
            block
        };
        let content: Vec<Value> = answers.iter().map(answer).collect();
        vec![json!({ "role": "user", "content": content })]
    }

    fn assembly(&self) -> Box<dyn MessageAssembly> {
        Box::new(MessagesAssembly::default())
    }
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message.as_array().into_iter().flatten()
}

fn is_call(block: &Value) -> bool {
    block["type"] == "tool_use"
}

fn parts(text: &str, attachments: &[Attachment]) -> Vec<Value> {
    let said = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    let dialect = ModelApi::Anthropic.tool_dialect();
    said.into_iter().chain(attachment_parts(attachments, dialect)).collect()
}

fn decode_stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" => StopReason::MaxTokens,
        "pause_turn" => StopReason::Paused,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextFull,
        other => StopReason::Other(other.to_owned()),
    }
}

fn decode_usage(usage: &Value) -> TokenUsage {
    let cached_input = number_at(usage, "/cache_read_input_tokens");
    let written = number_at(usage, "/cache_creation_input_tokens");
    TokenUsage {
        input: number_at(usage, "/input_tokens") + cached_input + written,
        cached_input,
        output: number_at(usage, "/output_tokens"),
    }
}

#[derive(Default)]
struct MessagesAssembly {
    blocks: BTreeMap<u64, Value>,
    /// The argument text of each call, by the index of its block.
    arguments: BTreeMap<u64, String>,
    stop: Option<StopReason>,
    /// The object `usage`; later events replace what they count again.
    usage: Value,
}

impl MessageAssembly for MessagesAssembly {
    fn push(&mut self, event: &Value, deltas: &mut Vec<MessageDelta>) -> Result<(), StreamFailure> {
        let index = number_at(event, "/index");
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => self.add_usage(&event["message"]["usage"]),
            "content_block_start" => {
                let block = &event["content_block"];
                if is_call(block) {
                    deltas.push(MessageDelta::Call(string_at(block, "name")));
                    self.arguments.insert(index, String::new());
                }
                self.blocks.insert(index, block.clone());
            }
            "content_block_delta" => self.add_delta(index, &event["delta"], deltas),
            "message_delta" => {
                if let Some(reason) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(decode_stop(reason));
                }
                self.add_usage(&event["usage"]);
            }
            "error" => return Err(StreamFailure::from_error(&event["error"])),
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> AssembledMessage {
        let mut malformed = Vec::new();
        for (at, (index, text)) in self.arguments.iter().enumerate() {
            let Some(block) = self.blocks.get_mut(index) else { continue };
            if text.trim().is_empty() {
                continue;
            }
            block["input"] = arguments_object(text);
            if !serde_json::from_str(text).is_ok_and(|arguments: Value| arguments.is_object()) {
                malformed.push((at, text.clone()));
            }
        }
        let response = DecodedResponse {
            message: self.blocks.into_values().collect(),
            stop: self.stop.unwrap_or_default(),
            usage: decode_usage(&self.usage),
        };
        AssembledMessage { response, malformed }
    }
}

impl MessagesAssembly {
    fn add_delta(&mut self, index: u64, delta: &Value, deltas: &mut Vec<MessageDelta>) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        match delta.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text_delta" => {
                append_string(block, delta, "text");
                deltas.push(MessageDelta::Text(string_at(delta, "text")));
            }
            "thinking_delta" => {
                append_string(block, delta, "thinking");
                deltas.push(MessageDelta::Reasoning(string_at(delta, "thinking")));
            }
            "signature_delta" => append_string(block, delta, "signature"),
            "input_json_delta" => {
                if let Some(text) = self.arguments.get_mut(&index) {
                    text.push_str(&string_at(delta, "partial_json"));
                }
            }
            "citations_delta" => {
                let citation = delta["citation"].clone();
                let mut citations = elements(block, "citations").to_vec();
                citations.push(citation);
                block["citations"] = citations.into();
            }
            _ => {}
        }
    }

    fn add_usage(&mut self, usage: &Value) {
        if !self.usage.is_object() {
            self.usage = json!({});
        }
        for (key, count) in usage.as_object().into_iter().flatten() {
            if !count.is_null() {
                self.usage[key] = count.clone();
            }
        }
    }
}
