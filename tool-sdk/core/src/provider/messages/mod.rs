//! Messages of models: decoded from responses and streams, and encoded with the results of their
//! calls for the next request.
//!
//! Each API has a [`MessageFormat`]; everything else here works on any of them.
//!
//! **Invariant:** what a provider sent goes back to it unchanged, because it holds signatures and
//! encrypted reasoning that only the provider can read.

mod answer;
mod anthropic;
mod gemini_generate;
mod gemini_interactions;
mod model_message;
mod openai_chat;
mod openai_responses;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use self::answer::{CallAnswer, encode_error};
pub use self::model_message::{ModelMessage, StopReason, TokenUsage, UnreadableResponse};
pub use self::stream::{MessageAccumulator, MessageDelta, StreamFailure};
use super::Dialect;
use super::content::attachment_parts;
use crate::content::Attachment;

/// The API of a model provider: how messages, calls and results are exchanged.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::{Dialect, ModelApi};
///
/// let api: ModelApi = "anthropic".parse()?;
/// assert_eq!(api.tool_dialect(), Dialect::Anthropic);
/// # Ok::<(), tool_sdk::provider::UnknownModelApi>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a model client handles every variant")]
pub enum ModelApi {
    /// Chat completions of OpenAI, and of everything that is compatible with them.
    OpenAiChat,
    /// The Responses API of OpenAI.
    OpenAiResponses,
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Interactions API of Gemini.
    Gemini,
    /// `generateContent` of Gemini, for older models.
    GeminiGenerate,
}

impl ModelApi {
    /// All APIs, in the order of their declaration.
    pub const ALL: [Self; 5] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiGenerate,
    ];

    /// Returns the name, as in configuration files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::GeminiGenerate => "gemini-generate",
        }
    }

    /// Returns the format in which requests to this API list the tools.
    #[must_use]
    pub const fn tool_dialect(self) -> Dialect {
        match self {
            Self::OpenAiChat => Dialect::OpenAi,
            Self::OpenAiResponses => Dialect::OpenAiResponses,
            Self::Anthropic => Dialect::Anthropic,
            Self::Gemini => Dialect::Gemini,
            Self::GeminiGenerate => Dialect::GeminiGenerate,
        }
    }

    fn format(self) -> &'static dyn MessageFormat {
        match self {
            Self::OpenAiChat => &openai_chat::ChatFormat,
            Self::OpenAiResponses => &openai_responses::ResponsesFormat,
            Self::Anthropic => &anthropic::MessagesFormat,
            Self::Gemini => &gemini_interactions::InteractionsFormat,
            Self::GeminiGenerate => &gemini_generate::GenerateFormat,
        }
    }
}

impl fmt::Display for ModelApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ModelApi {
    type Err = UnknownModelApi;

    fn from_str(name: &str) -> Result<Self, UnknownModelApi> {
        let found = Self::ALL.into_iter().find(|api| api.as_str() == name);
        found.ok_or_else(|| UnknownModelApi { name: name.chars().take(80).collect() })
    }
}

impl Serialize for ModelApi {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ModelApi {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The error for an unknown name of an API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown API `{name}`; expected one of {}", ModelApi::ALL.map(ModelApi::as_str).join(", "))]
pub struct UnknownModelApi {
    name: String,
}

/// Encodes a message of the user: its text, then its attachments. Content that the API does not
/// support is named in the text.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::{self, ModelApi};
///
/// let message = provider::encode_user_message("Hi", &[], ModelApi::OpenAiChat);
/// assert_eq!(message["role"], "user");
/// ```
#[must_use]
pub fn encode_user_message(text: &str, attachments: &[Attachment], api: ModelApi) -> Value {
    api.format().encode_user(text, attachments)
}

/// Encodes the results of a message's calls, as the messages or items that follow it in the next
/// request.
///
/// Every call of the message needs an answer: providers refuse a request without one. Images and
/// documents are sent in the result where the API takes them there, else in a user message behind
/// the results.
///
/// # Examples
///
/// ```
/// use tool_sdk::provider::{self, CallAnswer, ModelApi};
///
/// let answer = CallAnswer::text("call_1", "add", "3");
/// let messages = provider::encode_answers(&[answer], ModelApi::Anthropic);
/// assert_eq!(messages[0]["content"][0]["tool_use_id"], "call_1");
/// ```
#[must_use]
pub fn encode_answers(answers: &[CallAnswer], api: ModelApi) -> Vec<Value> {
    if answers.is_empty() { Vec::new() } else { api.format().encode_answers(answers) }
}

/// The messages of one API.
trait MessageFormat: Sync {
    /// Returns the message of a response that was not streamed, in the form in which it is sent
    /// back, with its stop reason and usage.
    fn decode_response(&self, response: &Value) -> Option<DecodedResponse>;

    /// Returns the text of a message.
    fn text(&self, message: &Value) -> String;

    /// Returns the calls of a message.
    fn calls(&self, message: &Value) -> Vec<MessageCall>;

    /// Calls `set` with each call of the message that has no id, so that one can be inserted.
    fn for_each_call_id(&self, message: &mut Value, set: &mut dyn FnMut(&mut Value));

    /// Returns the messages or items of a request that stand for a message of this API.
    fn encode_own(&self, message: &Value) -> Vec<Value>;

    /// Encodes a message that came from another API.
    fn encode_foreign(&self, text: &str, calls: &[MessageCall]) -> Vec<Value>;

    /// Returns the message that [`encode_own`](Self::encode_own) sends as `encoded`.
    fn own_message(&self, encoded: Value) -> Value;

    fn encode_user(&self, text: &str, attachments: &[Attachment]) -> Value;

    fn encode_answers(&self, answers: &[CallAnswer]) -> Vec<Value>;

    /// Returns an empty message that is put together from the events of a stream.
    fn assembly(&self) -> Box<dyn MessageAssembly>;
}

/// A message that is put together from the events of a stream.
trait MessageAssembly: Send {
    /// Adds one event, and appends what users see of it to `deltas`.
    fn push(&mut self, event: &Value, deltas: &mut Vec<MessageDelta>) -> Result<(), StreamFailure>;

    /// Returns what was received.
    fn finish(self: Box<Self>) -> AssembledMessage;
}

/// A response: the message in the form in which it is sent back, and what the provider says of it.
#[derive(Debug, Default)]
struct DecodedResponse {
    message: Value,
    stop: StopReason,
    usage: TokenUsage,
}

/// The end of a stream.
#[derive(Debug, Default)]
struct AssembledMessage {
    response: DecodedResponse,
    /// The argument text of calls whose arguments are no JSON object, by the call's position.
    malformed: Vec<(usize, String)>,
}

/// A call as it stands in a message.
#[derive(Clone, Debug, PartialEq)]
struct MessageCall {
    id: String,
    name: String,
    /// JSON text.
    arguments: String,
}

/// Returns the string at `key`; an empty one without it.
fn string_at(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the number at `pointer`; 0 without it.
fn number_at(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// Returns the elements of the array at `key`.
fn elements<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Appends the string at `key` of `from` to the string at the same key of `to`.
fn append_string(to: &mut Value, from: &Value, key: &str) {
    let Some(more) = from.get(key).and_then(Value::as_str) else { return };
    match to.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => to[key] = more.into(),
    }
}

/// Inserts an id where there is none.
fn set_missing_id(call: &mut Value, key: &str, set: &mut dyn FnMut(&mut Value)) {
    let is_missing = call.get(key).and_then(Value::as_str).is_none_or(str::is_empty);
    if is_missing && call.is_object() {
        set(&mut call[key]);
    }
}

/// Parses arguments for an API that wants them as an object. What is not an object is replaced by an
/// empty one; the answer of that call says what was wrong.
fn arguments_object(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(arguments @ Value::Object(_)) => arguments,
        _ => Value::Object(serde_json::Map::new()),
    }
}
