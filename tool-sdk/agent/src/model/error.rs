//! The error of a request to a model.

use std::time::Duration;

use tool_sdk_core::provider::{ModelMessage, StreamFailure};

/// The error of a request to a model.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ModelErrorKind,
    /// The explanation, mostly the provider's.
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// What had arrived of the message when the stream broke. Its calls must not run.
    pub partial: Option<Box<ModelMessage>>,
}

/// The kind of a [`ModelError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or may not use the model.
    Unauthorized,
    /// Too many requests or tokens in a time.
    RateLimited,
    /// The provider is overloaded or failed.
    Unavailable,
    /// The provider could not be reached, or the connection broke.
    Network,
    /// Nothing arrived for too long.
    Timeout,
    /// The conversation does not fit into the model's context.
    ContextFull,
    /// The provider refuses the request.
    InvalidRequest,
}

impl ModelErrorKind {
    /// Returns whether the same request may succeed later.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable | Self::Network | Self::Timeout)
    }
}

impl ModelError {
    /// Creates an error.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, partial: None }
    }

    /// Sets what had arrived of the message.
    #[must_use]
    pub fn with_partial(mut self, message: ModelMessage) -> Self {
        self.partial = Some(Box::new(message));
        self
    }

    /// Converts a failure that the provider reported within a stream.
    pub(super) fn from_stream(failure: &StreamFailure) -> Self {
        let code = failure.code.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
        let kind = if has(&["context_length", "context_window"]) {
            ModelErrorKind::ContextFull
        } else if has(&["rate_limit", "resource_exhausted", "429"]) {
            ModelErrorKind::RateLimited
        } else if has(&["invalid", "refus"]) {
            ModelErrorKind::InvalidRequest
        } else {
            ModelErrorKind::Unavailable
        };
        Self::new(kind, failure.message.clone())
    }

    /// Converts the response to a request that the provider refused. `body` is its text.
    pub(super) fn from_status(status: u16, body: &str, retry_after: Option<Duration>) -> Self {
        let explanation = explain_error(body);
        let is_full = ["context_length", "context length", "context window", "too long"]
            .iter()
            .any(|words| explanation.to_ascii_lowercase().contains(words));
        let kind = match status {
            401 | 403 => ModelErrorKind::Unauthorized,
            408 => ModelErrorKind::Timeout,
            413 => ModelErrorKind::ContextFull,
            400 | 422 if is_full => ModelErrorKind::ContextFull,
            429 => ModelErrorKind::RateLimited,
            500.. => ModelErrorKind::Unavailable,
            _ => ModelErrorKind::InvalidRequest,
        };
        let mut error = Self::new(kind, format!("the provider answered {status}: {explanation}"));
        error.retry_after = retry_after;
        error
    }
}

/// Returns the message of an error body, or the beginning of the text.
fn explain_error(body: &str) -> String {
    const MAX_CHARS: usize = 500;
    let parsed: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(|body| {
        // Gemini's older API sends a list.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        error.as_str().or_else(|| error.get("message")?.as_str())
    });
    let text = message.unwrap_or(body).trim();
    if text.is_empty() {
        return "no explanation".to_owned();
    }
    text.chars().take(MAX_CHARS).collect()
}
