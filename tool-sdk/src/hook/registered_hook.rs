//! A hook in its place: which tools it looks at, when, and what it says of itself.
//!
//! **Invariant:** what a hook says of itself is asked once, when it is added. One that panics then
//! is as strict as a hook can be, and panics in no call.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{DynHook, Hook, HookPriority, OnError};
use crate::context::Session;
use crate::name::matches_glob_ignore_case;
use crate::tool::Definition;

/// The limit of a hook that does not say.
pub(super) const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(10);

/// A hook with where and when it runs.
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
    /// Puts `hook` in its place, and asks it about itself.
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

    /// Whether it is the same hook for the same tools.
    pub(crate) fn is_same_hook(&self, other: &Self) -> bool {
        self.pattern == other.pattern && Arc::ptr_eq(&self.hook, &other.hook)
    }

    /// What models are told of a tool; nothing where the hook takes it out, or fails.
    pub(crate) fn edit_definition(
        &self,
        mut told: Definition,
        session: &Session,
    ) -> Option<Definition> {
        let define = AssertUnwindSafe(|| self.hook.edit_definition(&mut told, session));
        let stays = catch_unwind(define).unwrap_or(false);
        stays.then_some(told)
    }

    /// Whether it looks at calls of this tool, by whichever name that is known.
    #[inline]
    pub(crate) fn applies_to(&self, definition: &Definition) -> bool {
        self.pattern == "*"
            || definition
                .forbidden_names()
                .any(|name| matches_glob_ignore_case(&self.pattern, name))
    }

    /// Whether it may allow calls of this tool: it may, and speaks of a name that the tool has.
    pub(crate) fn may_allow(&self, definition: &Definition) -> bool {
        let has = |name| matches_glob_ignore_case(&self.pattern, name);
        self.may_allow && (self.pattern == "*" || definition.names().any(has))
    }
}

/// What a hook says of itself; where it panics instead, the strictest.
fn query_hook<T>(ask: impl FnOnce() -> T, strictest: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| strictest())
}

impl fmt::Debug for RegisteredHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}, {})", self.name, self.pattern, self.priority.0)
    }
}
