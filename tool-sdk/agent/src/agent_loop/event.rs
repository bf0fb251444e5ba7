//! What an agent reports while it runs.

use std::time::Duration;

use tool_sdk_core::provider::{CallAnswer, MessageDelta, ModelMessage};

/// One event of a running agent. The calls themselves are reported by the pipeline's events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A request to the model begins.
    RequestStarted,
    /// A part of the model's message arrived.
    Delta(&'a MessageDelta),
    /// The request failed, and is sent again after a delay.
    Retry {
        /// The delay.
        delay: Duration,
        /// Why it failed.
        reason: &'a str,
    },
    /// What arrived of the message is void: the connection broke, and the request is sent again.
    MessageDiscarded,
    /// The model's message is complete, and stands in the transcript.
    Message(&'a ModelMessage),
    /// The calls of the message are answered.
    Answers(&'a [CallAnswer]),
    /// A message was added in the user's name: a steering message, or the text of a hook.
    UserMessage(&'a str),
    /// The results of older calls were removed from what the model reads.
    Pruned {
        /// How many results.
        results: usize,
    },
    /// The beginning of the conversation was replaced by a summary.
    Compacted {
        /// The estimated tokens of the conversation before.
        tokens_before: u64,
        /// The estimated tokens of the conversation after.
        tokens_after: u64,
    },
    /// Something that the host should know, such as a cost limit without a price.
    Warning(&'a str),
}
