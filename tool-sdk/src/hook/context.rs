//! A call, as hooks see it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::call::CallId;
use crate::context::Session;
#[cfg(feature = "hooks")]
use crate::name::ToolName;
use crate::permission::Mode;
use crate::tool::Definition;
#[cfg(feature = "hooks")]
use crate::tool::ExternalArgNames;

/// A call, as hooks see it.
#[derive(Clone, Copy)]
pub struct HookContext<'a>(&'a dyn HookCallView);

/// What stands behind a call that hooks look at: it is asked, so that what no hook wants to
/// know is not worked out.
pub(crate) trait HookCallView: Sync {
    /// The conversation.
    fn session(&self) -> &Session;
    /// The tool.
    fn definition(&self) -> &Definition;
    /// The call's id.
    fn id(&self) -> &CallId;
    /// The arguments, as the model sent them.
    fn original_arguments(&self) -> &str;
    /// The arguments, as the hooks before left them.
    fn arguments(&self) -> &str;
    /// How much the session does without asking.
    fn mode(&self) -> Mode;
    /// Whether there is somebody who can be asked about it.
    #[cfg(feature = "hooks")]
    fn has_approver(&self) -> bool;
    /// The names of the tool after which the permission of this one is called.
    #[cfg(feature = "hooks")]
    fn permission_tool_names(&self) -> Vec<ToolName>;
    /// How the arguments are told to other programs.
    #[cfg(feature = "hooks")]
    fn external_arg_names(&self) -> ExternalArgNames;
    /// How long the tool ran, once it is done.
    fn elapsed(&self) -> Option<Duration>;
    /// Ends the model's turn.
    fn halt_turn(&self, reason: String);
    /// Tells whoever listens what they should know.
    #[cfg(feature = "hooks")]
    fn emit_warning(&self, message: String);
    /// Tells subscribers that a part of the hook begins.
    #[cfg(feature = "hooks")]
    fn emit_started(&self, hook: &str);
    /// Tells subscribers of a part of the hook.
    fn emit_finished(&self, run: HookRun);
    /// Keeps a text in a file, as outputs are kept.
    fn store_text(&self, text: &str) -> Option<PathBuf>;
}

impl<'a> HookContext<'a> {
    #[inline]
    pub(crate) fn new(call: &'a dyn HookCallView) -> Self {
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
    pub fn original_arguments(&self) -> &'a str {
        self.0.original_arguments()
    }

    /// The arguments as a value.
    #[must_use]
    pub fn arguments_value(&self) -> Value {
        serde_json::from_str(self.arguments()).unwrap_or_default()
    }

    /// How much the session does without asking.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.0.mode()
    }

    /// Whether there is somebody who can be asked about it.
    #[cfg(feature = "hooks")]
    pub(crate) fn has_approver(&self) -> bool {
        self.0.has_approver()
    }

    /// All names under which the tool may be forbidden, its own first.
    #[cfg(feature = "hooks")]
    pub(crate) fn forbidden_names(&self) -> Vec<String> {
        let own = self.definition().forbidden_names().map(str::to_owned);
        own.chain(self.0.permission_tool_names().iter().map(ToString::to_string)).collect()
    }

    /// How the arguments are told to other programs.
    #[cfg(feature = "hooks")]
    pub(crate) fn external_arg_names(&self) -> ExternalArgNames {
        self.0.external_arg_names()
    }

    /// How long the tool ran; known after it has run.
    #[must_use]
    pub fn elapsed(&self) -> Option<Duration> {
        self.0.elapsed()
    }

    /// Tells whoever listens what they should know.
    #[cfg(feature = "hooks")]
    pub(crate) fn emit_warning(&self, message: String) {
        self.0.emit_warning(message);
    }

    /// Tells subscribers that a command of this hook begins.
    #[cfg(feature = "hooks")]
    pub(crate) fn emit_started(&self, hook: &str) {
        self.0.emit_started(hook);
    }

    /// Ends the model's turn with this call. The first reason stays.
    ///
    /// For after-hooks: a before-hook says [`HookDecision::halt`](super::HookDecision::halt).
    pub fn halt_turn(&self, reason: impl Into<String>) {
        self.0.halt_turn(reason.into());
    }

    /// Keeps a text that is too long to show as outputs are kept; gives the file, where they are
    /// kept at all.
    #[must_use]
    pub fn store_text(&self, text: &str) -> Option<PathBuf> {
        self.0.store_text(text)
    }

    /// Tells subscribers of a run that is part of this hook, such as a command of its own.
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
#[expect(clippy::exhaustive_structs, reason = "hooks that start others write it out")]
pub struct HookRun {
    /// The hook's name.
    pub hook: String,
    /// What came of it, such as `none`, `deny: reason` or `failed: reason`.
    pub outcome: String,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

impl HookRun {
    /// Whether the hook failed, whatever became of the call.
    pub(crate) const fn has_failed(&self) -> bool {
        matches!(self.outcome.as_bytes(), [b'f', b'a', b'i', b'l', b'e', b'd', b':', ..])
    }
}
