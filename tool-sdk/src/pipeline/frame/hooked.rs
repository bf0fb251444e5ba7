//! A call as hooks see it, before it is judged and when its tool is done.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Frame, given_up};
use crate::call::{Call, CallId, RawArgs};
use crate::context::Session;
use crate::event::{About, EventKind};
use crate::hook::{HookRun, Hooked};
#[cfg(feature = "hooks")]
use crate::name::ToolName;
use crate::permission::Mode;
use crate::pipeline::core::Core;
use crate::pipeline::fit;
use crate::seldom::Seldom;
use crate::tool::Definition;
#[cfg(feature = "hooks")]
use crate::tool::{Tool, Wording};
use crate::toolset::Policy;

/// A call, to those who look at it: what it is, apart from what changes on its way.
pub(in crate::pipeline) struct Seen<'a> {
    core: &'a Core,
    session: &'a Session,
    call: &'a Call<'a>,
    definition: &'a Definition,
    id: &'a CallId,
    #[cfg(feature = "hooks")]
    tool: &'a dyn Tool,
    policy: &'a Policy,
    /// The arguments as they are now.
    arguments: &'a RawArgs<'a>,
    /// Whether the tool is done.
    is_done: AtomicBool,
    /// How long the tool ran, where a hook wants to know.
    elapsed: OnceLock<Duration>,
    /// Why the model's turn ends with this call, if a hook that looked at its result said so.
    halted: Seldom<OnceLock<String>>,
}

impl<'a> Frame<'a> {
    /// The call as it is now.
    #[inline]
    pub(in crate::pipeline) fn seen(&self) -> Seen<'_> {
        self.seen_with(self.raw())
    }

    /// The call as it was sent, to whoever goes on looking while it is on its way.
    #[inline]
    pub(in crate::pipeline) fn sent(&self) -> Seen<'a> {
        self.seen_with(&self.call.arguments)
    }

    #[inline(always)]
    fn seen_with<'s>(&self, arguments: &'s RawArgs<'s>) -> Seen<'s>
    where
        'a: 's,
    {
        Seen {
            core: self.core,
            session: self.session,
            call: self.call,
            definition: self.definition,
            id: self.id,
            #[cfg(feature = "hooks")]
            tool: self.tool,
            policy: self.policy,
            arguments,
            is_done: AtomicBool::new(false),
            elapsed: OnceLock::new(),
            halted: Seldom::default(),
        }
    }

    /// Lets those who look at the call know that its tool is done.
    #[inline]
    pub(in crate::pipeline) fn is_done(&self, seen: &Seen<'_>) {
        seen.is_done.store(true, Ordering::Relaxed);
        if self.core.wants_elapsed {
            seen.elapsed.get_or_init(|| self.started().elapsed());
        }
    }
}

impl Frame<'_> {
    /// Ends the model's turn with this call, if a hook that looked at its result said so. The first
    /// reason stays.
    #[inline]
    pub(in crate::pipeline) fn heed(&mut self, halted: Option<&str>) {
        if let Some(reason) = halted {
            self.halt(reason);
        }
    }

    #[cold]
    fn halt(&mut self, reason: &str) {
        self.aside().halted.get_or_insert_with(|| reason.to_owned());
    }
}

impl<'a> Seen<'a> {
    /// Whether anybody listens.
    #[inline]
    pub(in crate::pipeline) fn is_heard(&self) -> bool {
        self.core.hub.is_open()
    }

    /// Sends an event, which is not even built when nobody listens.
    #[inline]
    pub(in crate::pipeline) fn event(&self, kind: impl FnOnce() -> EventKind) {
        if self.is_heard() {
            let tool = self.policy.label(self.definition);
            let about = About { session: self.session, tool, call: self.id };
            let arguments = [self.call.arguments.text(), self.arguments.text()];
            self.core.tell_of(0, about, kind(), &arguments);
        }
    }

    /// Why the model's turn ends with this call, if a hook that looked at its result said so.
    #[inline]
    pub(in crate::pipeline) fn halted(&self) -> Option<&str> {
        self.halted.get().map(String::as_str)
    }

    /// Waits until nobody wants the result any more.
    pub(in crate::pipeline) fn given_up(&self) -> impl Future<Output = ()> + use<'a> {
        given_up(self.core, self.session, self.call)
    }
}

impl Hooked for Seen<'_> {
    fn session(&self) -> &Session {
        self.session
    }

    fn definition(&self) -> &Definition {
        self.definition
    }

    fn id(&self) -> &CallId {
        self.id
    }

    fn original(&self) -> &str {
        self.call.arguments.text()
    }

    fn arguments(&self) -> &str {
        self.arguments.text()
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
        Wording::of(self.tool, self.arguments, self.session)
    }

    fn elapsed(&self) -> Option<Duration> {
        self.elapsed.get().copied()
    }

    fn halt(&self, reason: String) {
        // Before the call, an opinion says so.
        if self.is_done.load(Ordering::Relaxed) {
            self.halted.get_or_init(|| reason);
        }
    }

    #[cfg(feature = "hooks")]
    fn warn(&self, message: String) {
        self.core.warn(self.session, &self.definition.name, self.id, message);
    }

    #[cfg(feature = "hooks")]
    fn began(&self, hook: &str) {
        self.event(|| EventKind::HookStarted { hook: hook.to_owned() });
    }

    fn watch(&self, run: HookRun) {
        self.event(|| EventKind::HookFinished(run));
    }

    fn keep(&self, text: &str) -> Option<PathBuf> {
        fit::kept(self.core, self.session, self.id, text)?.ok()
    }
}
