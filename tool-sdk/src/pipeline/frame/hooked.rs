//! A call as hooks see it, before it is judged and when its tool is done.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

use super::Frame;
use crate::call::CallId;
use crate::context::Session;
use crate::event::EventKind;
use crate::hook::{HookRun, Hooked};
#[cfg(feature = "hooks")]
use crate::name::ToolName;
use crate::permission::Mode;
use crate::pipeline::fit;
use crate::tool::Definition;
#[cfg(feature = "hooks")]
use crate::tool::Wording;

/// The call, to those who look at it before it is judged.
impl Hooked for Frame<'_> {
    fn session(&self) -> &Session {
        self.session
    }

    fn definition(&self) -> &Definition {
        self.definition
    }

    fn id(&self) -> &CallId {
        &self.id
    }

    fn original(&self) -> &str {
        self.call.arguments.text()
    }

    fn arguments(&self) -> &str {
        self.arguments()
    }

    fn mode(&self) -> Mode {
        self.core.mode(self.session)
    }

    #[cfg(feature = "hooks")]
    fn has_approver(&self) -> bool {
        self.core.approver_of(self.session).is_some()
    }

    #[cfg(feature = "hooks")]
    fn namesakes(&self) -> Vec<ToolName> {
        self.core.toolset.view_for(self.session).namesakes(self.definition)
    }

    #[cfg(feature = "hooks")]
    fn wording(&self) -> Wording {
        Wording::of(self.tool, self.raw(), self.session)
    }

    fn elapsed(&self) -> Option<Duration> {
        None
    }

    /// An [opinion](crate::Opinion::halt) says so, before the call.
    fn halt(&self, _: String) {}

    #[cfg(feature = "hooks")]
    fn warn(&self, message: String) {
        self.core.warn(self.session, &self.definition.name, &self.id, message);
    }

    #[cfg(feature = "hooks")]
    fn began(&self, hook: &str) {
        self.event(|| EventKind::HookStarted { hook: hook.to_owned() });
    }

    fn watch(&self, run: HookRun) {
        self.event(|| EventKind::HookFinished(run));
    }

    fn keep(&self, text: &str) -> Option<PathBuf> {
        fit::kept(self, text)?.ok()
    }
}

/// The call, to those who look at its result.
pub(in crate::pipeline) struct Ran<'a> {
    frame: &'a Frame<'a>,
    /// When the tool was done.
    done: Instant,
    /// Why the model's turn ends with this call.
    halted: OnceLock<String>,
}

impl<'a> Ran<'a> {
    #[inline]
    pub(in crate::pipeline) fn new(frame: &'a Frame<'a>) -> Self {
        Self { frame, done: Instant::now(), halted: OnceLock::new() }
    }

    /// Why the model's turn ends with this call, if it does.
    #[inline]
    pub(in crate::pipeline) fn halted(self) -> Option<String> {
        self.halted.into_inner()
    }
}

impl Hooked for Ran<'_> {
    fn session(&self) -> &Session {
        self.frame.session
    }

    fn definition(&self) -> &Definition {
        self.frame.definition
    }

    fn id(&self) -> &CallId {
        &self.frame.id
    }

    fn original(&self) -> &str {
        self.frame.original()
    }

    fn arguments(&self) -> &str {
        self.frame.arguments()
    }

    fn mode(&self) -> Mode {
        self.frame.mode()
    }

    #[cfg(feature = "hooks")]
    fn has_approver(&self) -> bool {
        self.frame.has_approver()
    }

    #[cfg(feature = "hooks")]
    fn namesakes(&self) -> Vec<ToolName> {
        self.frame.namesakes()
    }

    #[cfg(feature = "hooks")]
    fn wording(&self) -> Wording {
        self.frame.wording()
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(self.done.saturating_duration_since(self.frame.started()))
    }

    fn halt(&self, reason: String) {
        self.halted.get_or_init(|| reason);
    }

    #[cfg(feature = "hooks")]
    fn warn(&self, message: String) {
        self.frame.warn(message);
    }

    #[cfg(feature = "hooks")]
    fn began(&self, hook: &str) {
        self.frame.began(hook);
    }

    fn watch(&self, run: HookRun) {
        self.frame.watch(run);
    }

    fn keep(&self, text: &str) -> Option<PathBuf> {
        Hooked::keep(self.frame, text)
    }
}
