//! A model whose answers are written beforehand, for tests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tool_sdk_core::provider::{MessageDelta, ModelApi, ModelMessage};

use super::{ModelClient, ModelError, ModelEvent, ModelRequest};

/// A model that gives prepared answers in turn, and records what it was sent.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{ModelClient, ModelRequest, ScriptedModel, Transcript};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = ScriptedModel::new().says("Hello");
/// let transcript = Transcript::from_user("Hi");
/// let message = model.respond(&ModelRequest::new(&transcript), &mut |_| {}).await?;
/// assert_eq!(message.text(), "Hello");
/// # Ok::<(), tool_sdk::agent::ModelError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScriptedModel {
    answers: Arc<Mutex<VecDeque<Result<ModelMessage, ModelError>>>>,
    requests: Arc<Mutex<Vec<Vec<Value>>>>,
}

impl ScriptedModel {
    /// Creates a model without answers: a request without one fails the test.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer of text.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        self.answers(Ok(ModelMessage::from_text(ModelApi::OpenAiChat, text.to_owned())))
    }

    /// Adds an answer with calls: id, name and arguments of each.
    ///
    /// # Panics
    ///
    /// Never: the message is one of its API.
    #[must_use]
    pub fn calls(self, calls: &[(&str, &str, Value)]) -> Self {
        let call = |(id, name, arguments): &(&str, &str, Value)| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "id": id, "type": "function", "function": function })
        };
        let calls: Vec<Value> = calls.iter().map(call).collect();
        let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
        let response = json!({
            "choices": [{ "finish_reason": "tool_calls", "message": message }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 5 },
        });
        let message = ModelMessage::from_response(&response, ModelApi::OpenAiChat);
        self.answers(Ok(message.expect("it is a message of its API")))
    }

    /// Adds an answer: any message, or a failure.
    #[must_use]
    pub fn answers(self, answer: Result<ModelMessage, ModelError>) -> Self {
        lock_unpoisoned(&self.answers).push_back(answer);
        self
    }

    /// Returns the messages of each request so far, in the format of chat completions.
    #[must_use]
    pub fn requests(&self) -> Vec<Vec<Value>> {
        lock_unpoisoned(&self.requests).clone()
    }
}

impl ModelClient for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn respond(
        &self,
        request: &ModelRequest<'_>,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<ModelMessage, ModelError> {
        lock_unpoisoned(&self.requests).push(request.transcript.encode(ModelApi::OpenAiChat));
        // Requests to real models take time, in which other tasks run.
        tokio::task::yield_now().await;
        let answer = lock_unpoisoned(&self.answers).pop_front();
        let answer = answer.unwrap_or_else(|| {
            let kind = super::ModelErrorKind::InvalidRequest;
            Err(ModelError::new(kind, "the script has no further answer"))
        })?;
        let text = answer.text();
        if !text.is_empty() {
            events(ModelEvent::Delta(MessageDelta::Text(text)));
        }
        Ok(answer)
    }
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
