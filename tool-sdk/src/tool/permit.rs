//! The proof that a call may run.
//!
//! **Invariant:** only the pipeline makes one, so nothing else runs a tool.

use std::fmt;

use crate::context::Context;

/// The proof that a call passed every stage of a pipeline, and the context in which it runs.
///
/// It does not hold the call, because the approved call is the [`PreparedCall`](crate::PreparedCall)
/// itself: the pipeline owns it from decoding on, only lends it to be looked at, and
/// [`run`](crate::PreparedCall::run) consumes it. So what was judged and shown is what runs, once.
pub struct ExecutionPermit {
    context: Context,
}

impl ExecutionPermit {
    pub(crate) fn issue(context: Context) -> Self {
        Self { context }
    }

    /// Returns what the tool may know and do.
    #[must_use]
    pub fn context(self) -> Context {
        self.context
    }
}

impl fmt::Debug for ExecutionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionPermit").field("call", self.context.call()).finish_non_exhaustive()
    }
}
