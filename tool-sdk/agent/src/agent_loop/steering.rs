//! Messages to an agent while it works: of the user, or of the host.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A queue of messages to a running agent, which reads them before its next request. Clones share
/// the queue.
///
/// A message keeps an agent from stopping before it is answered. [Context](Self::push_context) does
/// not: an agent that stops leaves it in the queue for the next prompt.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::SteeringQueue;
///
/// let steering = SteeringQueue::default();
/// steering.clone().push("Leave the tests alone.");
/// steering.push_context("The build is green.");
/// assert_eq!(steering.take_all(), ["Leave the tests alone.", "The build is green."]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SteeringQueue(Arc<Mutex<VecDeque<SteeringText>>>);

/// A text for an agent.
#[derive(Clone, Debug)]
struct SteeringText {
    text: String,
    /// Whether the agent answers the text before it stops.
    is_message: bool,
}

impl SteeringQueue {
    /// Adds a message.
    pub fn push(&self, text: impl Into<String>) {
        self.texts().push_back(SteeringText { text: text.into(), is_message: true });
    }

    /// Adds a text that the agent reads with its next request, which it does not make for this text.
    pub fn push_context(&self, text: impl Into<String>) {
        self.texts().push_back(SteeringText { text: text.into(), is_message: false });
    }

    /// Returns how many texts wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts().len()
    }

    /// Returns whether no text waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts().is_empty()
    }

    /// Takes all texts, the oldest first. What an agent did not read when it stopped is still
    /// there.
    #[must_use]
    pub fn take_all(&self) -> Vec<String> {
        self.texts().drain(..).map(|queued| queued.text).collect()
    }

    /// Takes the messages, the oldest first, and leaves the context for the next prompt.
    #[must_use]
    pub fn take_messages(&self) -> Vec<String> {
        let mut texts = self.texts();
        let (messages, context) = texts.drain(..).partition(|queued| queued.is_message);
        *texts = context;
        let messages: VecDeque<SteeringText> = messages;
        messages.into_iter().map(|queued| queued.text).collect()
    }

    /// Whether a text waits that the agent answers before it stops.
    pub(crate) fn has_messages(&self) -> bool {
        self.texts().iter().any(|queued| queued.is_message)
    }

    fn texts(&self) -> std::sync::MutexGuard<'_, VecDeque<SteeringText>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
