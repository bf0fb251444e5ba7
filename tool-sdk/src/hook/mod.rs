//! What a host adds to every call: one trait with a before and an after.
//!
//! Before-hooks run in the order of their priority, each on the arguments that the one
//! before left. They may rewrite arguments (which are prepared and judged again), and their
//! opinions only tighten what the rules say, unless the host trusts a hook to allow. After-
//! hooks see the whole result, also of a failed call. Definition hooks change what models
//! are told of a tool.
//!
//! **Invariant:** a failing hook never turns into an allow.

#[cfg(feature = "hooks")]
pub(crate) mod external;

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::call::CallId;
use crate::content::Output;
use crate::context::Session;
use crate::error::ToolError;
use crate::name::matches_in_any_case;
use crate::tool::Definition;

/// Something that a host adds to every call.
///
/// Each method does nothing by default.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Hook, HookedCall, Opinion, Step, ToolError};
///
/// /// Lets nobody touch what is being released.
/// struct ReleaseFreeze;
///
/// impl Hook for ReleaseFreeze {
///     fn before<'a>(&'a self, call: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
///         let opinion = match call.arguments().contains("release/") {
///             true => Opinion::deny("a release is being made; wait until it is out"),
///             false => Opinion::none(),
///         };
///         Step::now(Ok(opinion))
///     }
/// }
/// ```
pub trait Hook: Send + Sync + 'static {
    /// A name for events, logs and denials; the type's name by default.
    fn name(&self) -> Cow<'_, str> {
        let name = std::any::type_name::<Self>();
        Cow::Borrowed(name.rsplit("::").next().unwrap_or(name))
    }

    /// Changes what models are told of a tool; `false` takes it out of the list.
    fn define(&self, definition: &mut Definition, session: &Session) -> bool {
        let _ = (definition, session);
        true
    }

    /// Looks at a call before it is judged.
    fn before<'a>(&'a self, call: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        let _ = call;
        Step::now(Ok(Opinion::none()))
    }

    /// Looks at the result of a call that ran, before it is cut, and may change it.
    fn after<'a>(
        &'a self,
        call: &'a HookedCall<'_>,
        result: &'a mut Result<Output, ToolError>,
    ) -> Step<'a, Result<(), ToolError>> {
        let _ = (call, result);
        Step::now(Ok(()))
    }

    /// Waits for what it still does, once the calls are over.
    ///
    /// For work that no call waits for; what takes too long is to be ended here.
    fn finish(&self) -> Step<'_, ()> {
        Step::now(())
    }

    /// What becomes of a call when `before` fails, panics or takes too long: it is denied by
    /// default.
    fn on_error(&self) -> OnError {
        OnError::Deny
    }

    /// How long a [`Step::later`] may take, before the call and after it: ten seconds by
    /// default, and `None` for a hook that sees to its end by itself.
    ///
    /// A step that is not done by then is dropped, and has failed.
    fn time_limit(&self) -> Option<Duration> {
        Some(Duration::from_secs(10))
    }

    /// Whether the host trusts it to allow what would otherwise be asked; it never lifts a
    /// denial.
    fn may_allow(&self) -> bool {
        false
    }
}

/// What becomes of a call whose hook failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a call goes on or it does not")]
pub enum OnError {
    /// It is denied.
    #[default]
    Deny,
    /// It goes on, and an event tells of the failure.
    Ignore,
}

/// The answer of a hook: at once, or later.
///
/// Most hooks have nothing to wait for, and those cost no allocation.
pub struct Step<'a, T>(Stepped<'a, T>);

enum Stepped<'a, T> {
    Now(T),
    Later(Later<'a, T>),
}

/// What gives an answer in time.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<'a, T> Step<'a, T> {
    /// The answer.
    #[must_use]
    pub const fn now(answer: T) -> Self {
        Self(Stepped::Now(answer))
    }

    /// An answer that takes time.
    #[must_use]
    pub fn later(answer: impl Future<Output = T> + Send + 'a) -> Self {
        Self(Stepped::Later(Box::pin(answer)))
    }

    /// The answer, or what gives it.
    #[inline]
    pub(crate) fn answer(self) -> Result<T, Later<'a, T>> {
        match self.0 {
            Stepped::Now(answer) => Ok(answer),
            Stepped::Later(later) => Err(later),
        }
    }

    /// Waits for the answer.
    pub async fn done(self) -> T {
        match self.0 {
            Stepped::Now(answer) => answer,
            Stepped::Later(answer) => answer.await,
        }
    }
}

impl<T> fmt::Debug for Step<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Stepped::Now(_) => "Step::now",
            Stepped::Later(_) => "Step::later",
        })
    }
}

/// When a hook runs; lower numbers first, and equal ones in the order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "any number is a priority")]
pub struct Priority(pub i32);

// F70
impl Priority {
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

impl Default for Priority {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a hook thinks of a call.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::Opinion;
///
/// let opinion = Opinion::ask("it is Friday").rewrite(&json!({ "path": "src/lib.rs" }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Opinion(Option<Box<Spoken>>);

/// What an opinion says; most hooks have none, and an empty one moves about cheaply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
    pub(crate) arguments: Option<String>,
    pub(crate) context: Vec<String>,
}

/// What a hook wants done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Nothing in particular.
    #[default]
    None,
    /// Nobody needs to be asked; only from hooks that may allow.
    Allow,
    /// Somebody is asked, whatever the rules say.
    Ask,
    /// The call does not run.
    Deny,
    /// The call does not run, and the model's turn ends.
    Halt,
}

impl Opinion {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self::saying(Spoken { verdict, reason: reason.into(), ..Spoken::default() })
    }

    /// No opinion.
    pub const fn none() -> Self {
        Self(None)
    }

    pub(crate) fn saying(spoken: Spoken) -> Self {
        Self((spoken != Spoken::default()).then(|| Box::new(spoken)))
    }

    /// Whether it says nothing.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// What it says, if anything.
    #[inline]
    pub(crate) fn spoken(self) -> Option<Box<Spoken>> {
        self.0
    }

    /// Nobody needs to be asked; counts only from a hook that [may allow](Hook::may_allow).
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Allow, reason)
    }

    /// Somebody must be asked, whatever rules, approvals and modes say.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Ask, reason)
    }

    /// The call must not run; the model reads why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Deny, reason)
    }

    /// The call must not run, and the model's turn ends.
    pub fn halt(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Halt, reason)
    }

    /// Replaces the arguments; they are prepared and judged like those of any call.
    pub fn rewrite(mut self, arguments: &Value) -> Self {
        self.0.get_or_insert_default().arguments = Some(arguments.to_string());
        self
    }

    /// Adds something that the model reads with the result.
    pub fn context(mut self, text: impl Into<String>) -> Self {
        self.0.get_or_insert_default().context.push(text.into());
        self
    }
}

impl fmt::Display for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(spoken) = &self.0 else { return f.write_str("none") };
        f.write_str(match spoken.verdict {
            Verdict::None => "none",
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
            Verdict::Halt => "halt",
        })?;
        if !spoken.reason.is_empty() {
            write!(f, ": {}", spoken.reason)?;
        }
        f.write_str(if spoken.arguments.is_some() { " (arguments changed)" } else { "" })
    }
}

/// A call, as hooks see it.
#[derive(Clone, Copy)]
pub struct HookedCall<'a>(&'a dyn Hooked);

/// What stands behind a call that hooks look at: it is asked, so that what no hook wants to
/// know is not worked out.
pub(crate) trait Hooked: Sync {
    /// The conversation.
    fn session(&self) -> &Session;
    /// The tool.
    fn definition(&self) -> &Definition;
    /// The call's id.
    fn id(&self) -> &CallId;
    /// The arguments, as the model sent them.
    fn original(&self) -> &str;
    /// The arguments, as the hooks before left them.
    fn arguments(&self) -> &str;
    /// How long the tool ran, once it is done.
    fn elapsed(&self) -> Option<Duration>;
    /// Ends the model's turn.
    fn halt(&self, reason: String);
    /// Tells subscribers of a part of the hook.
    fn watch(&self, run: HookRun);
    /// Keeps a text in a file, as outputs are kept.
    fn keep(&self, text: &str) -> Option<PathBuf>;
}

impl<'a> HookedCall<'a> {
    #[inline]
    pub(crate) fn new(call: &'a dyn Hooked) -> Self {
        Self(call)
    }

    /// The conversation.
    #[must_use]
    pub fn session(&self) -> &'a Session {
        self.0.session()
    }

    /// The tool.
    #[must_use]
    pub fn definition(&self) -> &'a Definition {
        self.0.definition()
    }

    /// The call's id.
    #[must_use]
    pub fn id(&self) -> &'a CallId {
        self.0.id()
    }

    /// The arguments as JSON text, as the hooks before left them.
    #[must_use]
    pub fn arguments(&self) -> &'a str {
        self.0.arguments()
    }

    /// The arguments as the model sent them.
    #[must_use]
    pub fn original(&self) -> &'a str {
        self.0.original()
    }

    /// The arguments as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(self.arguments()).unwrap_or_default()
    }

    /// How long the tool ran; known to after-hooks.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        self.0.elapsed()
    }

    /// Ends the model's turn with this call. The first reason stays.
    ///
    /// For after-hooks: a before-hook says [`Opinion::halt`].
    pub fn halt(&self, reason: impl Into<String>) {
        self.0.halt(reason.into());
    }

    /// Keeps a text that is too long to show as outputs are kept; gives the file, where they are
    /// kept at all.
    #[must_use]
    pub fn keep(&self, text: &str) -> Option<PathBuf> {
        self.0.keep(text)
    }

    /// Tells subscribers of a run that is part of this hook, such as a command of its own.
    pub fn watch(&self, run: impl FnOnce() -> HookRun) {
        self.0.watch(run());
    }
}

impl fmt::Debug for HookedCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookedCall")
            .field("tool", &self.definition().name)
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}

/// One run of a hook, for events.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[expect(clippy::exhaustive_structs, reason = "hooks that start others write it out")]
pub struct HookRun {
    /// The hook's name.
    pub hook: String,
    /// What came of it, such as `none`, `deny: reason` or `failed: reason`.
    pub outcome: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

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

    /// Whether it looks at calls of this tool.
    #[inline]
    pub(crate) fn sees(&self, definition: &Definition) -> bool {
        self.pattern == "*"
            || definition.names().any(|name| matches_in_any_case(&self.pattern, name))
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}, {})", self.hook.name(), self.pattern, self.priority.0)
    }
}
