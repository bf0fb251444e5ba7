//! A message of a model, with its calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AssembledMessage, DecodedResponse, MessageCall, ModelApi};
use crate::call::{Call, Leniency, RawArgs};
use crate::error::ToolError;

/// A message of a model, as its provider sent it.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::provider::{ModelApi, ModelMessage, StopReason};
///
/// let response = json!({"choices": [{
///     "finish_reason": "tool_calls",
///     "message": {"role": "assistant", "content": null, "tool_calls": [{
///         "id": "call_1", "type": "function",
///         "function": {"name": "add", "arguments": "{\"a\": 1, \"b\": 2}"},
///     }]},
/// }]});
/// let message = ModelMessage::from_response(&response, ModelApi::OpenAiChat)?;
/// assert_eq!(message.stop, StopReason::ToolCalls);
///
/// let call = &message.calls()[0];
/// assert_eq!((&*call.name, call.arguments.text()), ("add", r#"{"a": 1, "b": 2}"#));
/// # Ok::<(), tool_sdk::provider::UnreadableResponse>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelMessage {
    /// The API that it came from.
    pub api: ModelApi,
    /// The message in the API's own format, which goes back unchanged.
    pub raw: Value,
    /// Why the model stopped.
    pub stop: StopReason,
    /// The tokens of the request and of the message.
    pub usage: TokenUsage,
    /// The argument text of calls whose arguments are no JSON object, by call id. APIs that take
    /// arguments as an object cannot hold it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    malformed: BTreeMap<String, String>,
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// Its turn is over.
    EndTurn,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The message reached the limit on its tokens.
    MaxTokens,
    /// It refused, or a filter of the provider did.
    Refusal,
    /// The provider paused a long turn; the message is sent back to go on.
    Paused,
    /// The conversation does not fit into the model's context.
    ContextFull,
    /// The stream ended before the provider said why.
    #[default]
    CutOff,
    /// Another reason, in the provider's word.
    Other(String),
}

/// The tokens of one request, as the provider counts them; 0 where the provider says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Tokens of the request, with those that were read from a cache or written to one.
    pub input: u64,
    /// Tokens of the request that were read from a cache.
    pub cached_input: u64,
    /// Tokens of the message, with those of its reasoning.
    pub output: u64,
}

impl TokenUsage {
    /// Returns the tokens of request and message together.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// The error for a response that is not a message of its API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response is not a message of the API {api}")]
pub struct UnreadableResponse {
    api: ModelApi,
}

impl ModelMessage {
    /// Decodes a response that was not streamed.
    ///
    /// # Errors
    ///
    /// Fails for a response without a message, such as the description of an error.
    pub fn from_response(response: &Value, api: ModelApi) -> Result<Self, UnreadableResponse> {
        let decoded = api.format().decode_response(response).ok_or(UnreadableResponse { api })?;
        Ok(Self::from_decoded(decoded, api))
    }

    /// Creates a message of text alone, such as what had arrived before an interruption.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::provider::{ModelApi, ModelMessage};
    ///
    /// let message = ModelMessage::from_text(ModelApi::Anthropic, "Hello");
    /// assert_eq!(message.text(), "Hello");
    /// ```
    #[must_use]
    pub fn from_text(api: ModelApi, text: impl Into<String>) -> Self {
        let mut encoded = api.format().encode_foreign(&text.into(), &[]);
        let first = if encoded.is_empty() { Value::Null } else { encoded.swap_remove(0) };
        let raw = api.format().own_message(first);
        let stop = StopReason::EndTurn;
        Self { api, raw, stop, usage: TokenUsage::default(), malformed: BTreeMap::new() }
    }

    fn from_decoded(decoded: DecodedResponse, api: ModelApi) -> Self {
        let DecodedResponse { message: mut raw, stop, usage } = decoded;
        api.format().for_each_call_id(&mut raw, &mut |id| *id = generate_id().into());
        Self { api, raw, stop, usage, malformed: BTreeMap::new() }
    }

    pub(super) fn from_assembled(assembled: AssembledMessage, api: ModelApi) -> Self {
        let AssembledMessage { response, malformed } = assembled;
        let mut message = Self::from_decoded(response, api);
        let ids: Vec<String> = message.message_calls().into_iter().map(|call| call.id).collect();
        let by_id = |(at, text): (usize, String)| Some((ids.get(at)?.clone(), text));
        message.malformed = malformed.into_iter().filter_map(by_id).collect();
        message
    }

    /// Returns the text for the user.
    #[must_use]
    pub fn text(&self) -> String {
        self.api.format().text(&self.raw)
    }

    /// Returns the calls, in their order, with the ids by which they are answered.
    ///
    /// Arguments are passed on as the model wrote them: the pipeline answers what is no JSON and
    /// what does not fit the tool. `null` for an optional argument counts as absent, and an object
    /// or array may be sent as JSON text, as in OpenAI's strict mode. The calls of a message that
    /// was cut off must not run; see [`cut_off_error`](Self::cut_off_error).
    #[must_use]
    pub fn calls(&self) -> Vec<Call<'static>> {
        let lenient = Leniency::default().null_is_absent().stringified();
        self.message_calls()
            .into_iter()
            .map(|call| {
                let arguments = RawArgs::from(call.arguments).lenient(lenient);
                Call::new(call.name, arguments).id(&call.id)
            })
            .collect()
    }

    /// Returns why the calls must not run, if the stream ended before the message was complete:
    /// their arguments may lack their end, and more calls may have followed.
    #[must_use]
    pub fn cut_off_error(&self) -> Option<ToolError> {
        (self.stop == StopReason::CutOff).then(|| {
            ToolError::aborted("the connection ended within this message, so the call did not run")
                .hint("send the call again")
        })
    }

    /// Encodes the message for the next request to `api`, as its messages or items.
    ///
    /// It is sent unchanged to the API that it came from. Another one gets its text and calls.
    #[must_use]
    pub fn encode(&self, api: ModelApi) -> Vec<Value> {
        if api == self.api {
            return api.format().encode_own(&self.raw);
        }
        api.format().encode_foreign(&self.text(), &self.message_calls())
    }

    fn message_calls(&self) -> Vec<MessageCall> {
        let mut calls = self.api.format().calls(&self.raw);
        for call in &mut calls {
            if let Some(text) = self.malformed.get(&call.id) {
                call.arguments.clone_from(text);
            }
        }
        calls
    }
}

/// Generates the id of a call for which the provider sent none; unique over all conversations.
fn generate_id() -> String {
    let mut bytes = [0; 8];
    // Without random numbers ids are unique in this process only.
    if getrandom::fill(&mut bytes).is_err() {
        return crate::call::CallId::generate().to_string();
    }
    format!("call_{:016x}", u64::from_le_bytes(bytes))
}
