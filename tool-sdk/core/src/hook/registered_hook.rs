//! A registered hook: its tools, its priority, and its properties.
//!
//! **Invariant:** the properties of a hook are read once, when it is added. If reading one
//! panics, the strictest value is used, and no call panics.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{DynHook, Hook, HookPriority, OnError};
use crate::context::Session;
use crate::name::matches_glob_ignore_case;
use crate::tool::Definition;

/// The time limit of a hook that sets none.
pub(super) const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(10);

/// A hook with its tool pattern and priority.
#[derive(Clone)]
pub(crate) struct RegisteredHook {
    pub(crate) pattern: String,
    pub(crate) priority: HookPriority,
    pub(crate) hook: Arc<dyn DynHook>,
    /// Its name in events, logs and denials.
    pub(crate) name: Arc<str>,
    pub(crate) on_error: OnError,
    pub(crate) time_limit: Option<Duration>,
    may_allow: bool,
}

impl RegisteredHook {
    /// Registers `hook`, and reads its properties.
    pub(crate) fn new(
        pattern: impl Into<String>,
        priority: HookPriority,
        hook: Arc<impl Hook>,
    ) -> Self {
        Self {
            pattern: pattern.into(),
            priority,
            name: query_hook(|| Arc::from(&*hook.name()), || "nameless".into()),
            on_error: query_hook(|| hook.on_error(), || OnError::Deny),
            time_limit: query_hook(|| hook.time_limit(), || Some(DEFAULT_TIME_LIMIT)),
            may_allow: query_hook(|| hook.may_allow(), || false),
            hook,
        }
    }

    /// Returns the hook without the right to allow calls.
    pub(crate) fn without_allow(self) -> Self {
        Self { may_allow: false, ..self }
    }

    /// Returns whether it is the same hook for the same tools.
    pub(crate) fn is_same_hook(&self, other: &Self) -> bool {
        self.pattern == other.pattern && Arc::ptr_eq(&self.hook, &other.hook)
    }

    /// Returns the definition as the hook changes it; `None` when the hook removes the tool or
    /// panics.
    pub(crate) fn edit_definition(
        &self,
        mut told: Definition,
        session: &Session,
    ) -> Option<Definition> {
        let define = AssertUnwindSafe(|| self.hook.edit_definition(&mut told, session));
        let stays = catch_unwind(define).unwrap_or(false);
        stays.then_some(told)
    }

    /// Returns whether the hook runs for calls of this tool, by any of its names.
    #[inline]
    pub(crate) fn applies_to(&self, definition: &Definition) -> bool {
        self.pattern == "*"
            || definition
                .forbidden_names()
                .any(|name| matches_glob_ignore_case(&self.pattern, name))
    }

    /// Returns whether the hook may allow calls of this tool: it is trusted, and its pattern
    /// matches a name of the tool.
    pub(crate) fn may_allow(&self, definition: &Definition) -> bool {
        let has = |name| matches_glob_ignore_case(&self.pattern, name);
        self.may_allow && (self.pattern == "*" || definition.names().any(has))
    }
}

/// Reads a property of a hook; returns the strictest value when that panics.
fn query_hook<T>(ask: impl FnOnce() -> T, strictest: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| strictest())
}

impl fmt::Debug for RegisteredHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}, {})", self.name, self.pattern, self.priority.0)
    }
}
