//! The proof that a pipeline authorized a call.
//!
//! **Invariant:** only the pipeline makes one, so nothing else runs a tool.

use std::fmt;

use crate::context::Context;

/// The proof that a call passed every stage of a pipeline, with the context in which it runs.
///
/// It does not contain the call, because the authorized call is the
/// [`PreparedCall`](crate::PreparedCall) itself: the pipeline owns it from decoding on, and
/// [`run`](crate::PreparedCall::run) consumes it. So exactly the call that was authorized and
/// shown runs, once.
pub struct ExecutionPermit {
    context: Context,
    was_read: bool,
}

impl ExecutionPermit {
    pub(crate) fn issue(context: Context, was_read: bool) -> Self {
        Self { context, was_read }
    }

    /// Whether a person read the approval request of this call and approved it. A rule, a grant, a
    /// mode, a hook and an approver that answers by itself have read nothing.
    #[must_use]
    pub fn was_read(&self) -> bool {
        self.was_read
    }

    /// Returns the context of the call.
    #[must_use]
    pub fn context(self) -> Context {
        self.context
    }
}

impl fmt::Debug for ExecutionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionPermit")
            .field("call", self.context.call_id())
            .finish_non_exhaustive()
    }
}
