//! Puts a message together from the events of a stream.

use serde_json::Value;

use super::{MessageAssembly, ModelApi, ModelMessage};

/// A message that arrives in parts.
///
/// It takes the JSON of each server-sent event in turn. A stream that ends early leaves a message
/// with [`StopReason::CutOff`](super::StopReason::CutOff), whose unfinished calls must not run.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::provider::{MessageAccumulator, MessageDelta, ModelApi, StopReason};
///
/// let mut message = MessageAccumulator::new(ModelApi::OpenAiChat);
/// let deltas = message.push(&json!({"choices": [{"delta": {"content": "Hel"}}]}))?;
/// assert_eq!(deltas, [MessageDelta::Text("Hel".to_owned())]);
/// message.push(&json!({"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]}))?;
///
/// let message = message.finish();
/// assert_eq!((message.text().as_str(), message.stop), ("Hello", StopReason::EndTurn));
/// # Ok::<(), tool_sdk::provider::StreamFailure>(())
/// ```
pub struct MessageAccumulator {
    api: ModelApi,
    assembly: Box<dyn MessageAssembly>,
}

/// What users see of a message while it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageDelta {
    /// More text.
    Text(String),
    /// More of the model's reasoning, as far as the provider shows it.
    Reasoning(String),
    /// A call of this tool begins; its arguments follow.
    Call(String),
}

/// A failure that the provider reports within a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct StreamFailure {
    /// The provider's word for the failure, such as `overloaded_error`; empty without one.
    pub code: String,
    /// The provider's explanation.
    pub message: String,
}

impl std::fmt::Debug for MessageAccumulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageAccumulator").field("api", &self.api).finish_non_exhaustive()
    }
}

impl MessageAccumulator {
    /// Creates an empty message of `api`.
    #[must_use]
    pub fn new(api: ModelApi) -> Self {
        Self { api, assembly: api.format().assembly() }
    }

    /// Adds one event, and returns what users see of it. Unknown events are ignored.
    ///
    /// # Errors
    ///
    /// Fails for an event that reports a failure; what arrived before it is kept.
    pub fn push(&mut self, event: &Value) -> Result<Vec<MessageDelta>, StreamFailure> {
        let mut deltas = Vec::new();
        self.assembly.push(event, &mut deltas)?;
        Ok(deltas)
    }

    /// Ends the message with what has arrived.
    #[must_use]
    pub fn finish(self) -> ModelMessage {
        ModelMessage::from_assembled(self.assembly.finish(), self.api)
    }
}

impl StreamFailure {
    /// Decodes `{"type" | "code": .., "message": ..}`.
    pub(super) fn from_error(error: &Value) -> Self {
        let string = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
        let code = string("code").or_else(|| string("type")).unwrap_or_default();
        let message = string("message").unwrap_or_else(|| error.to_string());
        Self { code, message }
    }
}
