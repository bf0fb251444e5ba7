//! Messages of the Interactions API: lists of steps.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    AssembledMessage, CallAnswer, DecodedResponse, MessageAssembly, MessageCall, MessageDelta,
    MessageFormat, ModelApi, StopReason, StreamFailure, TokenUsage, append_string,
    arguments_object, attachment_parts, elements, number_at, set_missing_id, string_at,
};
use crate::content::Attachment;

/// The message is the array `steps`.
pub(super) struct InteractionsFormat;

impl MessageFormat for InteractionsFormat {
    fn decode_response(&self, response: &Value) -> Option<DecodedResponse> {
        let message = own_steps(response.get("steps").filter(|steps| steps.is_array())?);
        let status = response.get("status").and_then(Value::as_str).unwrap_or("completed");
        let stop = decode_status(status)?;
        Some(DecodedResponse { message, stop, usage: decode_usage(&response["usage"]) })
    }

    fn text(&self, message: &Value) -> String {
        let output = steps(message).filter(|step| step["type"] == "model_output");
        output.flat_map(|step| elements(step, "content")).map(|it| string_at(it, "text")).collect()
    }

    fn calls(&self, message: &Value) -> Vec<MessageCall> {
        let call = |step: &Value| MessageCall {
            id: string_at(step, "id"),
            name: string_at(step, "name"),
            arguments: step.get("arguments").map_or_else(|| "{}".to_owned(), Value::to_string),
        };
        steps(message).filter(|step| is_call(step)).map(call).collect()
    }

    fn for_each_call_id(&self, message: &mut Value, set: &mut dyn FnMut(&mut Value)) {
        let calls = message.as_array_mut().into_iter().flatten().filter(|step| is_call(step));
        calls.for_each(|call| set_missing_id(call, "id", set));
    }

    fn encode_own(&self, message: &Value) -> Vec<Value> {
        steps(message).cloned().collect()
    }

    fn encode_foreign(&self, text: &str, calls: &[MessageCall]) -> Vec<Value> {
        let said = (!text.is_empty()).then(
            || json!({ "type": "model_output", "content": [{ "type": "text", "text": text }] }),
        );
        let call = |call: &MessageCall| {
            json!({
                "type": "function_call",
                "id": call.id,
                "name": call.name,
                "arguments": arguments_object(&call.arguments),
            })
        };
        said.into_iter().chain(calls.iter().map(call)).collect()
    }

    fn own_message(&self, encoded: Value) -> Value {
        Value::Array(vec![encoded])
    }

    fn encode_user(&self, text: &str, attachments: &[Attachment]) -> Value {
        json!({ "type": "user_input", "content": parts(text, attachments) })
    }

    fn encode_answers(&self, answers: &[CallAnswer]) -> Vec<Value> {
        let answer = |answer: &CallAnswer| {
            let result = match &*answer.attachments {
                [] => Value::from(answer.text.as_str()),
                attachments => parts(&answer.text, attachments).into(),
            };
            json!({
                "type": "function_result",
                "call_id": answer.id,
                "name": answer.name,
                "is_error": answer.is_error,
                "result": result,
            })
        };
        answers.iter().map(answer).collect()
    }

    fn assembly(&self) -> Box<dyn MessageAssembly> {
        Box::new(InteractionsAssembly::default())
    }
}

fn steps(message: &Value) -> impl Iterator<Item = &Value> {
    message.as_array().into_iter().flatten()
}

/// Returns the steps without those that the request sent.
fn own_steps(all: &Value) -> Value {
    let is_sent = |step: &&Value| step["type"] == "user_input" || step["type"] == "function_result";
    steps(all).filter(|step| !is_sent(step)).cloned().collect()
}

fn is_call(step: &Value) -> bool {
    step["type"] == "function_call"
}

fn parts(text: &str, attachments: &[Attachment]) -> Vec<Value> {
    let said = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    let dialect = ModelApi::Gemini.tool_dialect();
    said.into_iter().chain(attachment_parts(attachments, dialect)).collect()
}

/// Decodes the status of an interaction; `None` for one that failed.
fn decode_status(status: &str) -> Option<StopReason> {
    match status {
        "completed" => Some(StopReason::EndTurn),
        "requires_action" => Some(StopReason::ToolCalls),
        "incomplete" | "budget_exceeded" => Some(StopReason::MaxTokens),
        "in_progress" => Some(StopReason::CutOff),
        "failed" | "cancelled" => None,
        other => Some(StopReason::Other(other.to_owned())),
    }
}

fn decode_usage(usage: &Value) -> TokenUsage {
    let thoughts = number_at(usage, "/total_thought_tokens");
    let tool_use = number_at(usage, "/total_tool_use_tokens");
    TokenUsage {
        input: number_at(usage, "/total_input_tokens") + tool_use,
        cached_input: number_at(usage, "/total_cached_tokens"),
        output: number_at(usage, "/total_output_tokens") + thoughts,
    }
}

#[derive(Default)]
struct InteractionsAssembly {
    steps: BTreeMap<u64, Value>,
    /// The argument text of each call, by the index of its step.
    arguments: BTreeMap<u64, String>,
    stop: StopReason,
    usage: TokenUsage,
}

impl MessageAssembly for InteractionsAssembly {
    fn push(&mut self, event: &Value, deltas: &mut Vec<MessageDelta>) -> Result<(), StreamFailure> {
        let index = number_at(event, "/index");
        match event.get("event_type").and_then(Value::as_str).unwrap_or_default() {
            "step.start" => {
                let step = &event["step"];
                if is_call(step) {
                    deltas.push(MessageDelta::Call(string_at(step, "name")));
                    self.arguments.insert(index, String::new());
                }
                let text = elements(step, "content").iter().map(|it| string_at(it, "text"));
                let text: String = text.collect();
                if !text.is_empty() {
                    deltas.push(MessageDelta::Text(text));
                }
                self.steps.insert(index, step.clone());
            }
            "step.delta" => self.add_delta(index, &event["delta"], deltas),
            "interaction.status_update" => self.set_status(event)?,
            "interaction.completed" => self.set_status(&event["interaction"])?,
            "error" => return Err(StreamFailure::from_error(&event["error"])),
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> AssembledMessage {
        let Self { mut steps, arguments, stop, usage } = *self;
        let mut malformed = Vec::new();
        for (at, (index, text)) in arguments.iter().enumerate() {
            let Some(step) = steps.get_mut(index) else { continue };
            if text.trim().is_empty() {
                continue;
            }
            step["arguments"] = arguments_object(text);
            if !serde_json::from_str(text).is_ok_and(|arguments: Value| arguments.is_object()) {
                malformed.push((at, text.clone()));
            }
        }
        let message = own_steps(&steps.into_values().collect());
        let has_calls = message.as_array().is_some_and(|steps| steps.iter().any(is_call));
        let stop = match stop {
            StopReason::EndTurn if has_calls => StopReason::ToolCalls,
            stop => stop,
        };
        AssembledMessage { response: DecodedResponse { message, stop, usage }, malformed }
    }
}

impl InteractionsAssembly {
    fn add_delta(&mut self, index: u64, delta: &Value, deltas: &mut Vec<MessageDelta>) {
        let Some(step) = self.steps.get_mut(&index) else { return };
        match delta.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => {
                let mut content = elements(step, "content").to_vec();
                match content.last_mut().filter(|last| last["type"] == "text") {
                    Some(last) => append_string(last, delta, "text"),
                    None => content.push(json!({ "type": "text", "text": delta["text"] })),
                }
                step["content"] = content.into();
                deltas.push(MessageDelta::Text(string_at(delta, "text")));
            }
            "arguments_delta" => {
                if let Some(text) = self.arguments.get_mut(&index) {
                    text.push_str(&string_at(delta, "arguments"));
                }
            }
            "thought_signature" => append_string(step, delta, "signature"),
            "thought_summary" => {
                let mut summary = elements(step, "summary").to_vec();
                summary.push(delta["content"].clone());
                step["summary"] = summary.into();
                deltas.push(MessageDelta::Reasoning(string_at(&delta["content"], "text")));
            }
            _ => {}
        }
    }

    /// Takes status and usage, and the steps where the event repeats them.
    fn set_status(&mut self, about: &Value) -> Result<(), StreamFailure> {
        if about.get("usage").is_some_and(Value::is_object) {
            self.usage = decode_usage(&about["usage"]);
        }
        if let Some(all) = about.get("steps").and_then(Value::as_array).filter(|it| !it.is_empty())
        {
            self.steps = (0..).zip(all.iter().cloned()).collect();
            self.arguments.clear();
        }
        let Some(status) = about.get("status").and_then(Value::as_str) else { return Ok(()) };
        let Some(stop) = decode_status(status) else {
            let message = format!("the interaction ended with the status `{status}`");
            return Err(StreamFailure { code: status.to_owned(), message });
        };
        self.stop = stop;
        Ok(())
    }
}
