//! The view of a call that hooks get.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::call::CallId;
use crate::context::Session;
use crate::name::ToolName;
use crate::permission::Mode;
use crate::tool::Definition;
use crate::tool::ExternalArgNames;

/// The view of a call that a hook gets.
#[derive(Clone, Copy)]
pub struct HookContext<'a>(&'a dyn HookCallView);

/// The call behind a [`HookContext`]. A trait, so that values that no hook reads are not
/// computed.
pub trait HookCallView: Sync {
    /// The session.
    fn session(&self) -> &Session;
    /// The tool.
    fn definition(&self) -> &Definition;
    /// The call's id.
    fn id(&self) -> &CallId;
    /// The id of the call that made this one; none by default.
    fn parent(&self) -> Option<&CallId> {
        None
    }
    /// The arguments as the model sent them.
    fn original_arguments(&self) -> &str;
    /// The arguments, with the changes of earlier hooks.
    fn arguments(&self) -> &str;
    /// The permission mode of the session.
    fn mode(&self) -> Mode;
    /// Whether there is an approver.
    fn has_approver(&self) -> bool;
    /// The names of the tool that the permission of this tool is named after.
    fn permission_tool_names(&self) -> Vec<ToolName>;
    /// The argument names for external programs.
    fn external_arg_names(&self) -> ExternalArgNames;
    /// How long the tool ran, after it has finished.
    fn elapsed(&self) -> Option<Duration>;
    /// Ends the model's turn.
    fn halt_turn(&self, reason: String);
    /// Sends a warning to the subscribers.
    fn emit_warning(&self, message: String);
    /// Emits the start of a part of the hook.
    fn emit_started(&self, hook: &str);
    /// Emits the end of a part of the hook.
    fn emit_finished(&self, run: HookRun);
    /// Stores a text in a file, in the folder for outputs.
    fn store_text(&self, text: &str) -> Option<PathBuf>;
}

impl<'a> HookContext<'a> {
    #[inline]
    #[doc(hidden)]
    pub fn new(call: &'a dyn HookCallView) -> Self {
        Self(call)
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &'a Session {
        self.0.session()
    }

    /// Returns the tool's definition.
    #[must_use]
    pub fn definition(&self) -> &'a Definition {
        self.0.definition()
    }

    /// Returns the call's id.
    #[must_use]
    pub fn id(&self) -> &'a CallId {
        self.0.id()
    }

    /// Returns the id of the call that made this one with
    /// [`Context::call`](crate::Context::call).
    #[must_use]
    pub fn parent(&self) -> Option<&'a CallId> {
        self.0.parent()
    }

    /// Returns the arguments as JSON text, with the changes of earlier hooks.
    #[must_use]
    pub fn arguments(&self) -> &'a str {
        self.0.arguments()
    }

    /// Returns the arguments as the model sent them.
    #[must_use]
    pub fn original_arguments(&self) -> &'a str {
        self.0.original_arguments()
    }

    /// Returns the arguments as a value.
    #[must_use]
    pub fn arguments_value(&self) -> Value {
        serde_json::from_str(self.arguments()).unwrap_or_default()
    }

    /// Returns the permission mode of the session.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.0.mode()
    }

    /// Returns whether there is an approver.
    #[doc(hidden)]
    pub fn has_approver(&self) -> bool {
        self.0.has_approver()
    }

    /// Returns all names under which the tool may be forbidden, its own first.
    #[doc(hidden)]
    pub fn forbidden_names(&self) -> Vec<String> {
        let own = self.definition().forbidden_names().map(str::to_owned);
        own.chain(self.0.permission_tool_names().iter().map(ToString::to_string)).collect()
    }

    /// Returns the argument names for external programs.
    #[doc(hidden)]
    pub fn external_arg_names(&self) -> ExternalArgNames {
        self.0.external_arg_names()
    }

    /// Returns how long the tool ran; `None` before it has finished.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        self.0.elapsed()
    }

    /// Sends a warning to the subscribers.
    #[doc(hidden)]
    pub fn emit_warning(&self, message: String) {
        self.0.emit_warning(message);
    }

    /// Emits the start of a command of this hook.
    #[doc(hidden)]
    pub fn emit_started(&self, hook: &str) {
        self.0.emit_started(hook);
    }

    /// Ends the model's turn with this call. The first reason is kept.
    ///
    /// For after-hooks; a before-hook returns [`HookDecision::halt`](super::HookDecision::halt).
    pub fn halt_turn(&self, reason: impl Into<String>) {
        self.0.halt_turn(reason.into());
    }

    /// Stores a text that is too long to show in the folder for outputs. Returns the path of the
    /// file, or `None` when outputs are not stored.
    #[must_use]
    pub fn store_text(&self, text: &str) -> Option<PathBuf> {
        self.0.store_text(text)
    }

    /// Emits the end of a run that is part of this hook, such as one of its commands.
    pub fn emit_finished(&self, run: impl FnOnce() -> HookRun) {
        self.0.emit_finished(run());
    }
}

impl fmt::Debug for HookContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookContext")
            .field("tool", &self.definition().name)
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}

/// One run of a hook, for events.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[expect(clippy::exhaustive_structs, reason = "hooks that run commands construct it")]
pub struct HookRun {
    /// The hook's name.
    pub hook: String,
    /// The result, such as `none`, `deny: reason` or `failed: reason`.
    pub outcome: String,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
}

impl HookRun {
    /// Returns whether the hook failed, regardless of what happened to the call.
    pub(crate) const fn has_failed(&self) -> bool {
        matches!(self.outcome.as_bytes(), [b'f', b'a', b'i', b'l', b'e', b'd', b':', ..])
    }
}
