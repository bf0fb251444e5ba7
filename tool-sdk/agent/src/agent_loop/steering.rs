//! Messages of the user while an agent works.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A queue of messages to a running agent, which reads them before its next request. Clones share
/// the queue.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::SteeringQueue;
///
/// let steering = SteeringQueue::default();
/// steering.clone().push("Leave the tests alone.");
/// assert_eq!(steering.take_all(), ["Leave the tests alone."]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SteeringQueue(Arc<Mutex<VecDeque<String>>>);

impl SteeringQueue {
    /// Adds a message.
    pub fn push(&self, text: impl Into<String>) {
        self.messages().push_back(text.into());
    }

    /// Takes all messages, the oldest first. What an agent did not read when it stopped is still
    /// there.
    #[must_use]
    pub fn take_all(&self) -> Vec<String> {
        self.messages().drain(..).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages().is_empty()
    }

    fn messages(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
