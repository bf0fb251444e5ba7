//! Hooks: the middleware of tool calls, which a host runs before and after every call.
//!
//! A rate limit or a cost limit is a before-hook that denies; a log is an observer.
//!
//! Before-hooks run in the order of their priority, each on the arguments that the previous one
//! left. They may rewrite arguments, which are then parsed and authorized again. Their decisions
//! can only tighten the rules, unless the host trusts a hook to allow. A hook may also wrap the
//! approver. After-hooks see the whole result, also of a failed call. Definition hooks change the
//! definitions that models see.
//!
//! **Invariant:** a failing hook never turns into an allow.

mod context;
mod decision;
mod dyn_hook;
mod registered_hook;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

pub use self::context::HookCallView;
pub use self::context::{HookContext, HookRun};
pub use self::decision::HookDecision;
pub use self::decision::{DecisionDetails, HookVerdict};
pub(crate) use self::dyn_hook::DynHook;
pub(crate) use self::registered_hook::RegisteredHook;
use crate::call::Outcome;
use crate::content::Output;
use crate::context::Session;
use crate::error::ToolError;
use crate::permission::Approver;
use crate::tool::Definition;

/// Code that a host runs before and after every call.
///
/// Each method does nothing by default. The properties of a hook (its name, its error policy, its
/// time limit, and whether it may allow) are read once, when it is added. If reading one panics,
/// the strictest value is used: the hook denies when it fails, has the default time limit, and
/// may not allow.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Hook, HookContext, HookDecision, ToolError};
///
/// /// Denies changes to files that are being released.
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
    /// Returns the name for events, logs and denials; the type's name by default.
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(short_type_name(std::any::type_name::<Self>()))
    }

    /// Changes the definition that models see; `false` removes the tool from the list.
    fn edit_definition(&self, definition: &mut Definition, session: &Session) -> bool {
        let _ = (definition, session);
        true
    }

    /// Runs before a call is authorized.
    fn before(
        &self,
        call: &HookContext<'_>,
    ) -> impl Future<Output = Result<HookDecision, ToolError>> + Send {
        let _ = call;
        async { Ok(HookDecision::none()) }
    }

    /// Wraps the approver: the returned approver answers first, and passes to `inner` what it
    /// does not answer.
    ///
    /// It wraps the approver of a session as well as that of the pipeline. Without an approver,
    /// it is not called. Of several hooks, the one with the lowest priority answers first.
    fn wrap_approver(self: Arc<Self>, inner: Arc<dyn Approver>) -> Arc<dyn Approver> {
        inner
    }

    /// Runs after a call, before its result is truncated, and may change the result.
    ///
    /// If it fails, its changes are discarded, and [`on_error`](Self::on_error) decides whether
    /// the result is shown.
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

    /// Waits for the hook's background work, after the last call.
    ///
    /// The hook must itself end work that takes too long.
    fn finish(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// What happens to a call when `before` or `after` fails, panics or exceeds the time limit.
    /// By default the call is denied, or its result is not shown when `after` failed.
    ///
    /// A hook that only observes returns [`OnError::Ignore`]; then the call continues, and the
    /// result is unchanged.
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

    /// Whether the host trusts the hook to allow calls that would otherwise need approval. It
    /// allows no more than the mode `bypass`, and never overrides a denial.
    fn may_allow(&self) -> bool {
        false
    }
}

/// Returns the name of a type without its modules and type parameters. A closure has the name of
/// the function around it.
fn short_type_name(name: &str) -> &str {
    let whole = name.split('<').next().unwrap_or(name);
    let mut parts = whole.rsplit("::").filter(|part| !part.starts_with('{'));
    parts.next().filter(|part| !part.is_empty()).unwrap_or(name)
}

/// What happens to a call whose hook failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a call goes on or it does not")]
pub enum OnError {
    /// The call is denied; after the call, the result is not shown.
    #[default]
    Deny,
    /// The call continues, and an event reports the failure.
    Ignore,
}

/// The order of hooks: lower numbers run first, and equal ones in the order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "any number is a priority")]
pub struct HookPriority(pub i32);

// F70
impl HookPriority {
    /// Hooks that must see a call first, such as scanners and bans.
    pub const SECURITY: Self = Self(10);
    /// Hooks that check or repair arguments.
    pub const VALIDATION: Self = Self(50);
    /// All other hooks.
    pub const DEFAULT: Self = Self(100);
    /// Hooks that only observe.
    pub const LOGGING: Self = Self(200);
    /// Hooks that clean up.
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
