//! Which call something is about, and where the call comes from.
//!
//! **Invariant:** only a running call can be the parent of another one, because only its
//! [`Context`](crate::Context) makes nested calls.

use std::sync::Arc;

use super::CallId;

/// How deep calls may be nested: a tool that calls itself ends here.
const MAX_DEPTH: usize = 8;

/// A call, the message that holds it, and the call that made it.
#[derive(Clone, Debug)]
pub(crate) struct CallOrigin {
    /// The call.
    pub(crate) id: CallId,
    /// The message that holds the call.
    pub(crate) message: Option<Arc<str>>,
    /// The running call that made this one.
    pub(crate) parent: Option<Arc<CallOrigin>>,
}

impl CallOrigin {
    /// Creates the origin of a call that no other call made.
    pub(crate) fn new(id: CallId) -> Self {
        Self { id, message: None, parent: None }
    }

    /// Returns the id of the call that made this one.
    pub(crate) fn parent_id(&self) -> Option<&CallId> {
        self.parent.as_deref().map(|parent| &parent.id)
    }

    /// Returns the calls around this one, the innermost first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.parent.as_deref(), |call| call.parent.as_deref())
    }

    /// Whether the call is nested deeper than calls may be.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.ancestors().count() > MAX_DEPTH
    }
}
