//! What a pipeline may be told before its first call; everything has a default.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Pipeline;
use super::inner::PipelineInner;
use crate::audit::AuditSink;
use crate::event::EventBusOwner;
use crate::hook::{Hook, HookPriority, RegisteredHook};
use crate::loop_guard::LoopGuard;
use crate::permission::{Approver, GrantStore, Mode, Rule};
use crate::redact::Redactor;
use crate::toolset::Toolset;
use crate::truncate::Budget;

/// What is set before the first call.
impl Pipeline {
    /// A pipeline over `toolset`, with every limit at its default.
    #[must_use]
    pub fn new(toolset: impl Into<Toolset>) -> Self {
        let bus_owner = EventBusOwner::default();
        Self {
            inner: Arc::new(PipelineInner::new(toolset.into(), Arc::clone(bus_owner.bus()))),
            bus_owner,
        }
    }

    fn configure(mut self, change: impl FnOnce(&mut PipelineInner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// Sets how long a call may take whose tool does not say; two minutes by default.
    ///
    /// The time of a call counts from where its tool takes its context, or else from where
    /// it first waits; a tool that never waits is not interrupted.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.configure(|inner| inner.timeout = timeout)
    }

    /// Sets how much text comes back from a tool that does not say; 2000 lines or 50 KiB
    /// by default.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        self.configure(|inner| inner.budget = budget)
    }

    /// Keeps the whole of texts that were cut, in one folder per session below `folder`.
    ///
    /// Tools that read files can open them where the session's workspace is lent that folder:
    /// with [`Workspace::with_read_only`](crate::Workspace::readable), and
    /// [`prepare_outputs`](crate::prepare_outputs), which makes it.
    #[must_use]
    pub fn output_dir(self, folder: impl Into<PathBuf>) -> Self {
        self.configure(|inner| inner.output_dir = Some(folder.into()))
    }

    /// Judges calls by these rules too.
    #[must_use]
    pub fn rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.configure(|inner| inner.toolset = Arc::new((*inner.toolset).clone().with_rules(rules)))
    }

    /// Sets how much is done without asking; [`Mode::Auto`] by default.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        self.configure(|inner| inner.toolset = Arc::new((*inner.toolset).clone().with_mode(mode)))
    }

    /// Sets who is asked; nobody by default, which is a no to everything that asks.
    #[must_use]
    pub fn approver(self, approver: impl Approver) -> Self {
        self.shared_approver(Arc::new(approver))
    }

    /// Sets who is asked.
    #[must_use]
    pub fn shared_approver(self, approver: Arc<dyn Approver>) -> Self {
        self.configure(|inner| inner.approver = Some(approver))
    }

    /// Keeps what is approved for always in `store`, and heeds what it holds.
    ///
    /// Without a store, an approval for always holds for the session.
    #[must_use]
    pub fn grant_store(self, store: GrantStore) -> Self {
        self.configure(|inner| inner.grant_store = Some(Arc::new(store)))
    }

    /// Sets how long an answer is waited for; ten minutes by default. No answer is a no.
    #[must_use]
    pub fn approval_timeout(self, timeout: Duration) -> Self {
        self.configure(|inner| inner.approval_timeout = timeout)
    }

    /// Refuses to write outside these folders, whatever a rule allows.
    ///
    /// Where a call writes is known from the paths that its tool names:
    /// [`WorkspacePath`](crate::WorkspacePath) parameters, and
    /// [`Resource::path`](crate::Resource::path). Where a tool that may write names none,
    /// somebody is asked about each call, whatever else allows it; so they are about commands,
    /// unless a sandbox holds these to the same folders. Folders for temporary files may be
    /// written there, too. A tool that needs nobody asked, with `approval(required = ..)`, is
    /// believed.
    #[must_use]
    pub fn writable_roots<P: Into<PathBuf>>(self, roots: impl IntoIterator<Item = P>) -> Self {
        let roots = roots.into_iter().map(Into::into).collect();
        self.configure(|inner| inner.writable_roots = Some(roots))
    }

    /// Finds out calls that a model repeats without getting anywhere.
    ///
    /// Off by default: a program that calls a tool again and again knows why.
    #[must_use]
    pub fn loop_guard(self, guard: LoopGuard) -> Self {
        self.configure(|inner| inner.loop_guard = Some(guard))
    }

    /// Writes down every decision and every run.
    ///
    /// A call whose decision cannot be written down does not run.
    #[must_use]
    pub fn audit(self, audit: impl AuditSink + 'static) -> Self {
        self.configure(|inner| inner.audit = Some(Arc::new(audit)))
    }

    /// Takes out of events what `redactor` finds.
    ///
    /// Results and asks are not changed: an approver, and [`asks`](Self::asks), show what
    /// runs. A secret that a tool sends in two parts is not found.
    #[must_use]
    pub fn redact_events(self, redactor: Redactor) -> Self {
        self.configure(|inner| inner.redactor = Some(Arc::new(redactor)))
    }

    /// Adds a hook for the tools whose names match `pattern`; what it says of their
    /// definitions holds too.
    ///
    /// Hooks with a lower priority come first, and equal ones in the order of registration.
    #[must_use]
    pub fn hook(self, pattern: impl Into<String>, priority: HookPriority, hook: impl Hook) -> Self {
        self.shared_hook(pattern, priority, Arc::new(hook))
    }

    /// Adds a hook that the host keeps using.
    #[must_use]
    pub fn shared_hook(
        self,
        pattern: impl Into<String>,
        priority: HookPriority,
        hook: Arc<impl Hook>,
    ) -> Self {
        let hook = RegisteredHook::new(pattern, priority, hook);
        self.configure(|inner| {
            let toolset = (*inner.toolset).clone().with_registered_hook(hook.clone());
            inner.toolset = Arc::new(toolset);
            let mut hooks = inner.hooks.to_vec();
            hooks.push(hook);
            hooks.sort_by_key(|hook| hook.priority);
            inner.hooks = hooks.into();
        })
    }
}
