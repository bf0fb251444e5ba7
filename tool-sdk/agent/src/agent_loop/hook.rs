//! Callbacks before each request and before an agent stops.

use std::future::ready;

use futures_util::future::BoxFuture;

use crate::transcript::Transcript;

/// A callback of the host around the turns of an agent. A turn is one request and the calls of its
/// message.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{AgentHook, StopDecision, Transcript};
///
/// /// Asks for tests before the work counts as done.
/// struct TestReminder;
///
/// impl AgentHook for TestReminder {
///     async fn stop(&self, transcript: &Transcript) -> StopDecision {
///         match transcript.last_model_text() {
///             Some(text) if text.contains("tests pass") => StopDecision::Stop,
///             _ => StopDecision::Continue("Run the tests before you stop.".to_owned()),
///         }
///     }
/// }
/// ```
pub trait AgentHook: Send + Sync + 'static {
    /// Runs before each request. A returned text is added to the conversation in the user's name.
    fn turn_start(&self, transcript: &Transcript) -> impl Future<Output = Option<String>> + Send {
        let _ = transcript;
        ready(None)
    }

    /// Runs when the model has ended its turn. The agent stops, or goes on with a text in the user's
    /// name; after eight times in a row it stops anyway.
    fn stop(&self, transcript: &Transcript) -> impl Future<Output = StopDecision> + Send {
        let _ = transcript;
        ready(StopDecision::Stop)
    }
}

/// Whether an agent stops.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "hosts construct decisions")]
pub enum StopDecision {
    /// It stops.
    Stop,
    /// It goes on with this text.
    Continue(String),
}

/// The object-safe twin of [`AgentHook`].
pub(super) trait DynAgentHook: Send + Sync + 'static {
    fn turn_start<'a>(&'a self, transcript: &'a Transcript) -> BoxFuture<'a, Option<String>>;
    fn stop<'a>(&'a self, transcript: &'a Transcript) -> BoxFuture<'a, StopDecision>;
}

impl<H: AgentHook> DynAgentHook for H {
    fn turn_start<'a>(&'a self, transcript: &'a Transcript) -> BoxFuture<'a, Option<String>> {
        Box::pin(AgentHook::turn_start(self, transcript))
    }

    fn stop<'a>(&'a self, transcript: &'a Transcript) -> BoxFuture<'a, StopDecision> {
        Box::pin(AgentHook::stop(self, transcript))
    }
}
