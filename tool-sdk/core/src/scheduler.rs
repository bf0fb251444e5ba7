//! When an authorized call may run beside other calls: the port that a batch implements.
//!
//! The pipeline waits here twice: before it asks about a call, so that prompts come in the
//! order of the calls, and between authorizing a call and running it.
//!
//! **Invariant:** a call that did not get its [`RunSlot`] does not run.

use std::any::Any;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::ToolError;
use crate::permission::DecisionSource;
use crate::tool::Parallel;

/// Beside which other calls a call may run.
pub(crate) struct ConcurrencyKey {
    pub(crate) parallel: Parallel,
    /// The resource by which calls of the tool are serialised.
    pub(crate) resource: Option<String>,
}

/// Held while a call runs.
pub(crate) type RunSlot = Box<dyn Any + Send>;

/// Decides when calls run.
pub(crate) trait Scheduler: Send + Sync {
    /// Waits until each call before this one is decided, or waits for an approval.
    fn wait_for_earlier_decisions(&self) -> BoxFuture<'_, ()>;

    /// Releases the calls behind this one, because it now waits for an approval.
    fn mark_waiting_for_approval(&self);

    /// Returns the position of this call's prompt among those of the other calls.
    fn prompt_order(&self) -> Arc<dyn PromptOrder>;

    /// Waits until the call may run.
    fn wait_for_slot(&self, key: &ConcurrencyKey) -> BoxFuture<'_, Result<RunSlot, ToolError>>;

    /// Lets no further call start. The first reason is kept.
    fn stop(&self, reason: BatchStopReason);

    /// Returns why no further call starts.
    fn stop_reason(&self) -> Option<BatchStopReason>;
}

/// The order in which the prompts of several calls are shown: the order of the calls.
pub(crate) trait PromptOrder: Send + Sync {
    /// Waits until each call before this one is decided, or its prompt was shown.
    fn wait_for_turn(self: Arc<Self>) -> BoxFuture<'static, ()>;

    /// Releases the prompts behind this one: it is shown, or will never be.
    fn mark_prompt_shown(&self);
}

/// Why calls that have not started do not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchStopReason {
    /// The user rejected another call without feedback.
    Rejected,
    /// A hook ended the model's turn with another call.
    Halted,
}

impl BatchStopReason {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "the user rejected another call of the batch",
            Self::Halted => "a hook ended the turn with another call of the batch",
        }
    }

    pub(crate) const fn decided_by(self) -> DecisionSource {
        match self {
            Self::Rejected => DecisionSource::Reply,
            Self::Halted => DecisionSource::Hook,
        }
    }
}
