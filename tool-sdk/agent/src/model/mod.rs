//! The port to language models: a request goes out, a message comes back in parts.
//!
//! [`ModelClient`] is what the agent loop needs of a model. [`ProviderClient`] implements it for the
//! APIs of the providers, and [`ScriptedModel`] for tests.

mod api_key;
mod dyn_client;
mod error;
mod provider_client;
mod request_body;
mod retry;
mod scripted;

use std::sync::Arc;
use std::time::Duration;

use tool_sdk_core::ToolsetView;
use tool_sdk_core::provider::{MessageDelta, ModelMessage};

pub use self::api_key::{ApiKey, ApiKeyError};
pub(crate) use self::dyn_client::DynModelClient;
pub use self::error::{ModelError, ModelErrorKind};
pub use self::provider_client::{InvalidEndpoint, ProviderClient};
pub use self::retry::RetryPolicy;
pub use self::scripted::ScriptedModel;
use crate::transcript::Transcript;

/// A language model.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{ModelClient, ModelError, ModelEvent, ModelRequest};
/// use tool_sdk::provider::{MessageDelta, ModelApi, ModelMessage};
///
/// /// A model that repeats what it was told.
/// struct ParrotModel;
///
/// impl ModelClient for ParrotModel {
///     fn name(&self) -> &str {
///         "parrot"
///     }
///
///     async fn respond(
///         &self,
///         request: &ModelRequest<'_>,
///         events: &mut (dyn FnMut(ModelEvent) + Send),
///     ) -> Result<ModelMessage, ModelError> {
///         let text = request.transcript.last_user_text().unwrap_or_default().to_owned();
///         events(ModelEvent::Delta(MessageDelta::Text(text.clone())));
///         Ok(ModelMessage::from_text(ModelApi::OpenAiChat, text))
///     }
/// }
/// ```
pub trait ModelClient: Send + Sync + 'static {
    /// Returns the model's name, which selects the tools that it sees.
    fn name(&self) -> &str;

    /// Sends a request, passes what arrives to `events`, and returns the whole message.
    ///
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// Fails when the provider refuses the request, cannot be reached, or ends the message early.
    /// A client repeats requests that failed before anything of the message arrived, and no others.
    fn respond(
        &self,
        request: &ModelRequest<'_>,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> impl Future<Output = Result<ModelMessage, ModelError>> + Send;
}

/// What a model is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest<'a> {
    /// The system prompt; may be empty.
    pub system: &'a str,
    /// The conversation.
    pub transcript: &'a Transcript,
    /// The tools that the model may call; none for a plain answer.
    pub tools: Option<Arc<ToolsetView>>,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// The maximum number of tokens of the message.
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks before it answers; the provider's default without it.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The id of the conversation, by which providers find what they cached of it.
    pub cache_key: &'a str,
}

impl<'a> ModelRequest<'a> {
    /// Creates a request without system prompt and tools.
    #[must_use]
    pub fn new(transcript: &'a Transcript) -> Self {
        Self {
            system: "",
            transcript,
            tools: None,
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            reasoning_effort: None,
            cache_key: "",
        }
    }
}

/// Whether a model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a model client handles every variant")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model calls at least one tool.
    Required,
    /// The model calls none.
    None,
}

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a model client handles every variant")]
pub enum ReasoningEffort {
    /// Little.
    Low,
    /// As much as the provider finds usual.
    Medium,
    /// Much.
    High,
}

impl ReasoningEffort {
    /// Returns the word that every provider uses for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl std::str::FromStr for ReasoningEffort {
    type Err = InvalidReasoningEffort;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Low, Self::Medium, Self::High];
        all.into_iter().find(|effort| effort.as_str() == text).ok_or(InvalidReasoningEffort)
    }
}

/// A text is no [`ReasoningEffort`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be low, medium or high")]
#[non_exhaustive]
pub struct InvalidReasoningEffort;

/// What happens while a model responds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ModelEvent {
    /// A part of the message arrived.
    Delta(MessageDelta),
    /// The request failed and is sent again after a delay.
    Retry {
        /// The delay.
        delay: Duration,
        /// Why it failed.
        reason: String,
    },
}
