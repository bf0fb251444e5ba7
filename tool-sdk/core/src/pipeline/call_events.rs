//! Runs one call and streams its events.
//!
//! The call runs in a task of its own, so a reader that is slow never blocks the tool: the queue
//! of the subscription drops what does not fit, and counts it.

use std::fmt;

use tokio::task::JoinHandle;

use super::Pipeline;
use crate::call::{Call, CallId, Outcome};
use crate::context::Session;
use crate::error::ToolError;
use crate::event::{Subscription, ToolEvent};

/// The events of one running call, and its outcome; see [`Pipeline::call_with_events`].
///
/// Dropping it cancels the call.
pub struct CallEvents {
    id: CallId,
    events: Subscription,
    state: CallState,
}

enum CallState {
    Running(JoinHandle<Outcome>),
    /// The outcome is yielded after the events that are still queued.
    Ended(Option<Box<Outcome>>),
}

/// What [`CallEvents`] yields.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a call has events and one outcome, nothing else")]
pub enum CallUpdate {
    /// Something happened.
    Event(ToolEvent),
    /// The call ended. Nothing follows.
    Finished(Outcome),
}

impl CallEvents {
    /// Starts the call in a task of the current runtime.
    pub(super) fn start(pipeline: Pipeline, session: Session, mut call: Call<'static>) -> Self {
        let id = call.id.clone().unwrap_or_else(CallId::generate);
        call.id = Some(id.clone());
        let events = pipeline.subscribe_to_call(&id);
        let running = tokio::spawn(async move { pipeline.call(&session, call).await });
        Self { id, events, state: CallState::Running(running) }
    }

    /// Returns the id of the call.
    #[must_use]
    pub const fn id(&self) -> &CallId {
        &self.id
    }

    /// Returns the next event; after the last one the outcome, and then `None`.
    pub async fn next(&mut self) -> Option<CallUpdate> {
        if let CallState::Running(running) = &mut self.state {
            let ended = tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Some(CallUpdate::Event(event)),
                ended = running => ended,
            };
            let outcome = ended.unwrap_or_else(|_| lost_outcome(&self.id));
            self.state = CallState::Ended(Some(Box::new(outcome)));
        }
        // A call queues its events before it ends.
        if let Some(event) = self.events.try_recv() {
            return Some(CallUpdate::Event(event));
        }
        match &mut self.state {
            CallState::Ended(outcome) => outcome.take().map(|it| CallUpdate::Finished(*it)),
            CallState::Running(_) => None,
        }
    }
}

/// Returns the outcome of a call whose task ended without one.
fn lost_outcome(id: &CallId) -> Outcome {
    Outcome::new(id.clone(), Err(ToolError::aborted("the runtime of the call was shut down")))
}

impl Drop for CallEvents {
    fn drop(&mut self) {
        if let CallState::Running(running) = &self.state {
            running.abort();
        }
    }
}

impl fmt::Debug for CallEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEvents").field("id", &self.id).finish_non_exhaustive()
    }
}
