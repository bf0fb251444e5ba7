//! What a host adds to every call: one trait with a before and an after.
//!
//! Before-hooks run in the order of their priority, each on the arguments that the one
//! before left. They may rewrite arguments (which are prepared and judged again), and their
//! opinions only tighten what the rules say, unless the host trusts a hook to allow. A hook may
//! stand in front of whoever is asked.
//! After-hooks see the whole result, also of a failed call. Definition hooks change what
//! models are told of a tool.
//!
//! **Invariant:** a failing hook never turns into an allow.

mod context;
mod decision;
mod dyn_hook;
#[cfg(feature = "hooks")]
pub(crate) mod external;
mod registered_hook;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::context::HookCallView;
pub use self::context::{HookContext, HookRun};
pub use self::decision::HookDecision;
pub(crate) use self::decision::{DecisionDetails, HookVerdict};
pub(crate) use self::dyn_hook::DynHook;
pub(crate) use self::registered_hook::RegisteredHook;
use crate::call::Outcome;
use crate::content::Output;
use crate::context::Session;
use crate::error::ToolError;
use crate::permission::Approver;
use crate::tool::Definition;

/// Something that a host adds to every call.
///
/// Each method does nothing by default. What a hook says of itself (its name, what an error means,
/// how long it may take, whether it may allow) is asked once, when it is added; one that panics
/// then counts as the strictest: it denies when it fails, has the usual time, and allows nothing.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Hook, HookContext, HookDecision, ToolError};
///
/// /// Lets nobody touch what is being released.
/// struct ReleaseFreeze;
///
/// impl Hook for ReleaseFreeze {
///     async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
///         Ok(match call.arguments().contains("release/") {
///             true => HookDecision::deny("a release is being made; wait until it is out"),
///             false => HookDecision::none(),
///         })
///     }
/// }
/// ```
pub trait Hook: Send + Sync + 'static {
    /// A name for events, logs and denials; the type's name by default.
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(short_type_name(std::any::type_name::<Self>()))
    }

    /// Changes what models are told of a tool; `false` takes it out of the list.
    fn edit_definition(&self, definition: &mut Definition, session: &Session) -> bool {
        let _ = (definition, session);
        true
    }

    /// Sees a call before it is authorized.
    fn before(
        &self,
        call: &HookContext<'_>,
    ) -> impl Future<Output = Result<HookDecision, ToolError>> + Send {
        let _ = call;
        async { Ok(HookDecision::none()) }
    }

    /// Stands in front of whoever is asked about a call: its approver answers first, and leaves
    /// to `inner` what it does not answer.
    ///
    /// That holds for the approver of a session as for that of the pipeline, and where there is
    /// none, nobody is asked at all. Of several hooks the one with the lowest priority comes first.
    fn wrap_approver(self: Arc<Self>, inner: Arc<dyn Approver>) -> Arc<dyn Approver> {
        inner
    }

    /// Looks at the result of a call that ran, before it is cut, and may change it.
    ///
    /// When it fails, nothing counts of what it has changed so far:
    /// [`on_error`](Self::on_error) says whether the result is shown at all.
    fn after(
        &self,
        call: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> impl Future<Output = Result<(), ToolError>> + Send {
        let _ = (call, result);
        async { Ok(()) }
    }

    /// Observes how a call ended, read-only: also a call that was denied, whose arguments were
    /// invalid, or whose tool is unknown. Runs after the output was truncated, before the
    /// terminal event is emitted.
    ///
    /// It must not block. A panic in it changes nothing for the call.
    fn observe(&self, call: &HookContext<'_>, outcome: &Outcome) {
        let _ = (call, outcome);
    }

    /// Waits for work that the hook still does, once the calls are over.
    ///
    /// For work that no call waits for; a hook ends here what takes too long.
    fn finish(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// What becomes of a call when `before` or `after` fails, panics or takes too long: it is
    /// denied by default, and a result that `after` should have looked at is not shown.
    ///
    /// A hook that only looks on says [`OnError::Ignore`]; then the call goes on, and the
    /// result stands as it was.
    fn on_error(&self) -> OnError {
        OnError::Deny
    }

    /// The time limit of `before` and of `after`: ten seconds by default, and `None` for a hook
    /// that enforces its own.
    ///
    /// A callback that exceeds it is dropped and has failed.
    fn time_limit(&self) -> Option<Duration> {
        Some(registered_hook::DEFAULT_TIME_LIMIT)
    }

    /// Whether the host trusts it to allow what would otherwise be asked; it lifts no
    /// more than the mode `bypass` does, and never a denial.
    fn may_allow(&self) -> bool {
        false
    }
}

/// The name of a type without its modules, without the types that it is made of, and without
/// the closure that it may be: that has the name of the function around it.
fn short_type_name(name: &str) -> &str {
    let whole = name.split('<').next().unwrap_or(name);
    let mut parts = whole.rsplit("::").filter(|part| !part.starts_with('{'));
    parts.next().filter(|part| !part.is_empty()).unwrap_or(name)
}

/// What becomes of a call whose hook failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a call goes on or it does not")]
pub enum OnError {
    /// It is denied; after the call, the result is not shown.
    #[default]
    Deny,
    /// It goes on, and an event tells of the failure.
    Ignore,
}

/// When a hook runs; lower numbers first, and equal ones in the order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "any number is a priority")]
pub struct HookPriority(pub i32);

// F70
impl HookPriority {
    /// What must see a call first: scans, bans.
    pub const SECURITY: Self = Self(10);
    /// What checks or repairs arguments.
    pub const VALIDATION: Self = Self(50);
    /// Everything else.
    pub const DEFAULT: Self = Self(100);
    /// What only watches.
    pub const LOGGING: Self = Self(200);
    /// What tidies up.
    pub const CLEANUP: Self = Self(500);
}

impl Default for HookPriority {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_called_by_the_last_name_of_its_type() {
        for (name, expected) in [
            ("Titles", "Titles"),
            ("app::hooks::Titles", "Titles"),
            ("app::Guard<app::main::{{closure}}>", "Guard"),
            ("app::Both<alloc::string::String, app::Other<u8>>", "Both"),
            ("app::guard::{{closure}}", "guard"),
            ("<app::Odd as app::Trait>::Type", "<app::Odd as app::Trait>::Type"),
        ] {
            assert_eq!(short_type_name(name), expected);
        }
    }
}
