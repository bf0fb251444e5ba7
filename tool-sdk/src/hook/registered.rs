//! A hook in its place: which tools it looks at, and when.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Hook, Priority};
use crate::context::Session;
use crate::name::matches_in_any_case;
use crate::tool::Definition;

/// A hook with where and when it runs.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) pattern: String,
    pub(crate) priority: Priority,
    pub(crate) hook: Arc<dyn Hook>,
}

impl Registered {
    /// Whether it is the same hook for the same tools.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.pattern == other.pattern && Arc::ptr_eq(&self.hook, &other.hook)
    }

    /// What models are told of a tool; nothing where the hook takes it out, or fails.
    pub(crate) fn defined(&self, mut told: Definition, session: &Session) -> Option<Definition> {
        let define = AssertUnwindSafe(|| self.hook.define(&mut told, session));
        let stays = catch_unwind(define).unwrap_or(false);
        stays.then_some(told)
    }

    /// Whether it looks at calls of this tool, by whichever name that is known.
    #[inline]
    pub(crate) fn sees(&self, definition: &Definition) -> bool {
        self.pattern == "*"
            || definition.forbidden_names().any(|name| matches_in_any_case(&self.pattern, name))
    }

    /// Whether it may allow calls of this tool: it may, and speaks of a name that the tool has.
    pub(crate) fn may_allow(&self, definition: &Definition) -> bool {
        let has = |name| matches_in_any_case(&self.pattern, name);
        self.hook.may_allow() && (self.pattern == "*" || definition.names().any(has))
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}, {})", self.hook.name(), self.pattern, self.priority.0)
    }
}
