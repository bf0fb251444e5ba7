//! Messages of the Responses API: lists of output items.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::openai_chat::or_empty_object;
use super::{
    AssembledMessage, CallAnswer, DecodedResponse, MessageAssembly, MessageCall, MessageDelta,
    MessageFormat, ModelApi, StopReason, StreamFailure, TokenUsage, append_string,
    attachment_parts, elements, number_at, set_missing_id, string_at,
};
use crate::content::Attachment;

/// The message is the array `output`.
pub(super) struct ResponsesFormat;

impl MessageFormat for ResponsesFormat {
    fn decode_response(&self, response: &Value) -> Option<DecodedResponse> {
        let message = response.get("output").filter(|output| output.is_array())?.clone();
        let stop = decode_stop(response, &message)?;
        Some(DecodedResponse { message, stop, usage: decode_usage(response) })
    }

    fn text(&self, message: &Value) -> String {
        let parts = items(message).filter(|item| item["type"] == "message").flat_map(|item| {
            elements(item, "content").iter().map(|part| {
                let text = string_at(part, "text");
                if text.is_empty() { string_at(part, "refusal") } else { text }
            })
        });
        parts.collect()
    }

    fn calls(&self, message: &Value) -> Vec<MessageCall> {
        let call = |item: &Value| MessageCall {
            id: string_at(item, "call_id"),
            name: string_at(item, "name"),
            arguments: or_empty_object(string_at(item, "arguments")),
        };
        items(message).filter(|item| is_call(item)).map(call).collect()
    }

    fn for_each_call_id(&self, message: &mut Value, set: &mut dyn FnMut(&mut Value)) {
        let calls = message.as_array_mut().into_iter().flatten().filter(|item| is_call(item));
        calls.for_each(|call| set_missing_id(call, "call_id", set));
    }

    fn encode_own(&self, message: &Value) -> Vec<Value> {
        items(message).cloned().collect()
    }

    fn encode_foreign(&self, text: &str, calls: &[MessageCall]) -> Vec<Value> {
        let said = (!text.is_empty()).then(|| json!({ "role": "assistant", "content": text }));
        let call = |call: &MessageCall| {
            json!({
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            })
        };
        said.into_iter().chain(calls.iter().map(call)).collect()
    }

    fn own_message(&self, encoded: Value) -> Value {
        json!([{
            "type": "message",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": encoded["content"], "annotations": [] }],
        }])
    }

    fn encode_user(&self, text: &str, attachments: &[Attachment]) -> Value {
        json!({ "role": "user", "content": parts(text, attachments) })
    }

    fn encode_answers(&self, answers: &[CallAnswer]) -> Vec<Value> {
        let answer = |answer: &CallAnswer| {
            let output = match &*answer.attachments {
                [] => Value::from(answer.text.as_str()),
                attachments => parts(&answer.text, attachments).into(),
            };
            json!({ "type": "function_call_output", "call_id": answer.id, "output": output })
        };
        answers.iter().map(answer).collect()
    }

    fn assembly(&self) -> Box<dyn MessageAssembly> {
        Box::new(ResponsesAssembly::default())
    }
}

fn items(message: &Value) -> impl Iterator<Item = &Value> {
    message.as_array().into_iter().flatten()
}

fn is_call(item: &Value) -> bool {
    item["type"] == "function_call"
}

fn parts(text: &str, attachments: &[Attachment]) -> Vec<Value> {
    let said = (!text.is_empty()).then(|| json!({ "type": "input_text", "text": text }));
    let dialect = ModelApi::OpenAiResponses.tool_dialect();
    said.into_iter().chain(attachment_parts(attachments, dialect)).collect()
}

/// Decodes the status; `None` for a response that failed.
fn decode_stop(response: &Value, output: &Value) -> Option<StopReason> {
    let has_calls = items(output).any(is_call);
    match response.get("status").and_then(Value::as_str).unwrap_or("completed") {
        "completed" if has_calls => Some(StopReason::ToolCalls),
        "completed" => Some(StopReason::EndTurn),
        "incomplete" => {
            let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
            Some(match reason {
                Some("content_filter") => StopReason::Refusal,
                _ => StopReason::MaxTokens,
            })
        }
        _ => None,
    }
}

fn decode_usage(response: &Value) -> TokenUsage {
    TokenUsage {
        input: number_at(response, "/usage/input_tokens"),
        cached_input: number_at(response, "/usage/input_tokens_details/cached_tokens"),
        output: number_at(response, "/usage/output_tokens"),
    }
}

#[derive(Default)]
struct ResponsesAssembly {
    /// The items by their index. Streams send each whole at its end.
    items: BTreeMap<u64, Value>,
    /// The response of the last event, which is whole as well.
    ended: Option<DecodedResponse>,
}

impl MessageAssembly for ResponsesAssembly {
    fn push(&mut self, event: &Value, deltas: &mut Vec<MessageDelta>) -> Result<(), StreamFailure> {
        let index = number_at(event, "/output_index");
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "response.output_item.added" => {
                let item = &event["item"];
                if is_call(item) {
                    deltas.push(MessageDelta::Call(string_at(item, "name")));
                }
                self.items.insert(index, item.clone());
            }
            "response.output_item.done" => {
                self.items.insert(index, event["item"].clone());
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let text = string_at(event, "delta");
                self.add_text(index, &text);
                deltas.push(MessageDelta::Text(text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.push(MessageDelta::Reasoning(string_at(event, "delta")));
            }
            "response.function_call_arguments.delta" => {
                if let Some(item) = self.items.get_mut(&index) {
                    append_string(item, &json!({ "arguments": event["delta"] }), "arguments");
                }
            }
            "response.completed" | "response.incomplete" => self.end(&event["response"]),
            "response.failed" => {
                return Err(StreamFailure::from_error(&event["response"]["error"]));
            }
            "error" => {
                let error = event.get("error").filter(|error| error.is_object());
                return Err(StreamFailure::from_error(error.unwrap_or(event)));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> AssembledMessage {
        let items = self.items.into_values().collect();
        let cut_off = || DecodedResponse { message: Value::Array(items), ..Default::default() };
        AssembledMessage { response: self.ended.unwrap_or_else(cut_off), malformed: Vec::new() }
    }
}

impl ResponsesAssembly {
    /// Adds text to a message item, for a stream that ends before the item is sent whole.
    fn add_text(&mut self, index: u64, text: &str) {
        let Some(item) = self.items.get_mut(&index) else { return };
        if elements(item, "content").is_empty() {
            item["content"] = json!([{ "type": "output_text", "text": "", "annotations": [] }]);
        }
        append_string(&mut item["content"][0], &json!({ "text": text }), "text");
    }

    fn end(&mut self, response: &Value) {
        let mut message = response.get("output").cloned().unwrap_or_default();
        if items(&message).next().is_none() {
            message = self.items.values().cloned().collect();
        }
        let stop = decode_stop(response, &message).unwrap_or_default();
        self.ended = Some(DecodedResponse { message, stop, usage: decode_usage(response) });
    }
}
