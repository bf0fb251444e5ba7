//! Messages of `generateContent`: contents of parts.

use serde_json::{Value, json};

use super::{
    AssembledMessage, CallAnswer, DecodedResponse, MessageAssembly, MessageCall, MessageDelta,
    MessageFormat, ModelApi, StopReason, StreamFailure, TokenUsage, append_string,
    arguments_object, attachment_parts, elements, number_at, set_missing_id, string_at,
};
use crate::content::Attachment;

/// The message is the object at `candidates[0].content`.
pub(super) struct GenerateFormat;

impl MessageFormat for GenerateFormat {
    fn decode_response(&self, response: &Value) -> Option<DecodedResponse> {
        let mut assembly = GenerateAssembly::default();
        let is_message = response.get("candidates").is_some_and(Value::is_array)
            || response.get("promptFeedback").is_some();
        is_message.then_some(())?;
        assembly.push(response, &mut Vec::new()).ok()?;
        Some(Box::new(assembly).finish().response)
    }

    fn text(&self, message: &Value) -> String {
        let is_answer = |part: &&Value| part["thought"] != true;
        elements(message, "parts")
            .iter()
            .filter(is_answer)
            .map(|it| string_at(it, "text"))
            .collect()
    }

    fn calls(&self, message: &Value) -> Vec<MessageCall> {
        let call = |part: &Value| {
            let call = part.get("functionCall")?;
            Some(MessageCall {
                id: string_at(call, "id"),
                name: string_at(call, "name"),
                arguments: call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string),
            })
        };
        elements(message, "parts").iter().filter_map(call).collect()
    }

    fn for_each_call_id(&self, message: &mut Value, set: &mut dyn FnMut(&mut Value)) {
        let parts = message.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            if let Some(call) = part.get_mut("functionCall") {
                set_missing_id(call, "id", set);
            }
        }
    }

    // Contents without parts are refused.
    fn encode_own(&self, message: &Value) -> Vec<Value> {
        let is_empty = elements(message, "parts").is_empty();
        if is_empty { Vec::new() } else { vec![message.clone()] }
    }

    fn encode_foreign(&self, text: &str, calls: &[MessageCall]) -> Vec<Value> {
        let said = (!text.is_empty()).then(|| json!({ "text": text }));
        let call = |call: &MessageCall| {
            let args = arguments_object(&call.arguments);
            json!({ "functionCall": { "id": call.id, "name": call.name, "args": args } })
        };
        let parts: Vec<Value> = said.into_iter().chain(calls.iter().map(call)).collect();
        self.encode_own(&json!({ "role": "model", "parts": parts }))
    }

    fn own_message(&self, encoded: Value) -> Value {
        encoded
    }

    fn encode_user(&self, text: &str, attachments: &[Attachment]) -> Value {
        let said = (!text.is_empty()).then(|| json!({ "text": text }));
        let shown = attachment_parts(attachments, ModelApi::GeminiGenerate.tool_dialect());
        let parts: Vec<Value> = said.into_iter().chain(shown).collect();
        json!({ "role": "user", "parts": parts })
    }

    // Images and documents follow the results as parts of the same content.
    fn encode_answers(&self, answers: &[CallAnswer]) -> Vec<Value> {
        let answer = |answer: &CallAnswer| {
            let key = if answer.is_error { "error" } else { "output" };
            json!({ "functionResponse": {
                "id": answer.id,
                "name": answer.name,
                "response": { key: answer.text },
            }})
        };
        let dialect = ModelApi::GeminiGenerate.tool_dialect();
        let shown = answers.iter().flat_map(|it| attachment_parts(&it.attachments, dialect));
        let parts: Vec<Value> = answers.iter().map(answer).chain(shown).collect();
        vec![json!({ "role": "user", "parts": parts })]
    }

    fn assembly(&self) -> Box<dyn MessageAssembly> {
        Box::new(GenerateAssembly::default())
    }
}

fn decode_stop(reason: &str) -> StopReason {
    match reason {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
            StopReason::Refusal
        }
        other => StopReason::Other(other.to_owned()),
    }
}

#[derive(Default)]
struct GenerateAssembly {
    parts: Vec<Value>,
    stop: StopReason,
    usage: TokenUsage,
}

impl MessageAssembly for GenerateAssembly {
    fn push(&mut self, event: &Value, deltas: &mut Vec<MessageDelta>) -> Result<(), StreamFailure> {
        if let Some(error) = event.get("error") {
            return Err(StreamFailure::from_error(error));
        }
        if event.get("usageMetadata").is_some() {
            self.usage = TokenUsage {
                input: number_at(event, "/usageMetadata/promptTokenCount"),
                cached_input: number_at(event, "/usageMetadata/cachedContentTokenCount"),
                output: number_at(event, "/usageMetadata/candidatesTokenCount")
                    + number_at(event, "/usageMetadata/thoughtsTokenCount"),
            };
        }
        if event.pointer("/promptFeedback/blockReason").is_some() {
            self.stop = StopReason::Refusal;
        }
        let candidate = event.pointer("/candidates/0");
        let content = candidate.and_then(|candidate| candidate.get("content"));
        for part in content.map_or(&[][..], |content| elements(content, "parts")) {
            self.add_part(part, deltas);
        }
        let reason = candidate.and_then(|it| it.get("finishReason")).and_then(Value::as_str);
        if let Some(reason) = reason {
            self.stop = decode_stop(reason);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> AssembledMessage {
        let has_calls = self.parts.iter().any(|part| part.get("functionCall").is_some());
        let stop = match self.stop {
            StopReason::EndTurn if has_calls => StopReason::ToolCalls,
            stop => stop,
        };
        let message = json!({ "role": "model", "parts": self.parts });
        AssembledMessage {
            response: DecodedResponse { message, stop, usage: self.usage },
            malformed: Vec::new(),
        }
    }
}

impl GenerateAssembly {
    /// Adds a part. Text continues the text before it, unless a signature stands between them.
    fn add_part(&mut self, part: &Value, deltas: &mut Vec<MessageDelta>) {
        if let Some(call) = part.get("functionCall") {
            deltas.push(MessageDelta::Call(string_at(call, "name")));
        }
        let text = string_at(part, "text");
        let is_thought = part["thought"] == true;
        if !text.is_empty() {
            deltas.push(match is_thought {
                true => MessageDelta::Reasoning(text),
                false => MessageDelta::Text(text),
            });
        }
        let continues = |last: &&mut Value| {
            let is_text = part.get("text").is_some() && last.get("text").is_some();
            is_text
                && (last["thought"] == true) == is_thought
                && last.get("thoughtSignature").is_none()
        };
        match self.parts.last_mut().filter(continues) {
            Some(last) => {
                append_string(last, part, "text");
                append_string(last, part, "thoughtSignature");
            }
            None => self.parts.push(part.clone()),
        }
    }
}
