//! What only a call that may run has.
//!
//! **Invariant:** nothing but the pipeline makes one, so nothing else runs a tool.

use std::fmt;

use crate::context::Context;

/// The proof that a call went through every gate, and the way to its context; only a
/// pipeline has it.
///
/// It does not hold the call, because the approved call is the [`Prepared`](crate::Prepared)
/// itself: the pipeline owns it from decoding on, hands it out to be looked at only, and
/// [`run`](crate::Prepared::run) consumes it. So what was judged and shown is what runs,
/// once.
pub struct Approved<'a>(&'a mut dyn FnMut() -> Context);

impl<'a> Approved<'a> {
    #[inline]
    pub(crate) fn by_pipeline(context: &'a mut dyn FnMut() -> Context) -> Self {
        Self(context)
    }

    /// What the tool may know and do, made for the tools that want it.
    #[must_use]
    pub fn context(self) -> Context {
        (self.0)()
    }
}

impl fmt::Debug for Approved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approved")
    }
}
