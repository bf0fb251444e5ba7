//! The settings of a pipeline; every setting has a default.

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

/// Settings, to be made before the first call.
impl Pipeline {
    /// Returns a pipeline over `toolset` with default settings.
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

    /// Sets the time limit of calls whose tool has none of its own; two minutes by default.
    ///
    /// The time starts when the tool takes its context, or else when it first waits. A tool that
    /// never waits is not interrupted.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.configure(|inner| inner.timeout = timeout)
    }

    /// Sets the most text that a tool without a limit of its own returns; 2000 lines or 50 KiB by
    /// default.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        self.configure(|inner| inner.budget = budget)
    }

    /// Stores the whole text of truncated outputs, in one folder per session below `folder`.
    ///
    /// Tools can read the files when the folder is part of the session's workspace: create it with
    /// [`prepare_outputs`](crate::prepare_outputs) and add it with
    /// `Workspace::with_read_only`.
    #[must_use]
    pub fn output_dir(self, folder: impl Into<PathBuf>) -> Self {
        self.configure(|inner| inner.output_dir = Some(folder.into()))
    }

    /// Sets how long the whole texts of truncated outputs are kept; seven days by default.
    ///
    /// Older files are removed in the background, at most once an hour, and by
    /// [`sweep_outputs`](Self::sweep_outputs).
    #[must_use]
    pub fn outputs_max_age(self, age: Duration) -> Self {
        self.configure(|inner| inner.outputs_max_age = age)
    }

    /// Adds rules for all calls.
    #[must_use]
    pub fn rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.configure(|inner| inner.toolset = Arc::new((*inner.toolset).clone().with_rules(rules)))
    }

    /// Sets the default behaviour when no rule matches; [`Mode::Auto`] by default.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        self.configure(|inner| inner.toolset = Arc::new((*inner.toolset).clone().with_mode(mode)))
    }

    /// Sets the approver. Without one, every call that needs an approval is denied.
    #[must_use]
    pub fn approver(self, approver: impl Approver) -> Self {
        self.shared_approver(Arc::new(approver))
    }

    /// Sets the approver.
    #[must_use]
    pub fn shared_approver(self, approver: Arc<dyn Approver>) -> Self {
        self.configure(|inner| inner.approver = Some(approver))
    }

    /// Stores grants for always in `store`, and uses the grants that it holds.
    ///
    /// Without a store, an approval for always holds for the session.
    #[must_use]
    pub fn grant_store(self, store: GrantStore) -> Self {
        self.configure(|inner| inner.grant_store = Some(Arc::new(store)))
    }

    /// Sets how long a call waits for an answer; ten minutes by default. No answer is a denial.
    #[must_use]
    pub fn approval_timeout(self, timeout: Duration) -> Self {
        self.configure(|inner| inner.approval_timeout = timeout)
    }

    /// Denies writing outside these folders, even when a rule allows it.
    ///
    /// The pipeline knows where a call writes from the paths that its tool names:
    /// [`WorkspacePath`](crate::WorkspacePath) parameters, and
    /// [`Resource::path`](crate::Resource::path). When a tool that may write names no path, each
    /// call needs an approval, even when a rule allows it. So do commands, unless a sandbox limits
    /// them to the same folders; they may then also write to folders for temporary files. A tool
    /// that needs no approval, with `approval(required = ..)`, is trusted.
    #[must_use]
    pub fn writable_roots<P: Into<PathBuf>>(self, roots: impl IntoIterator<Item = P>) -> Self {
        let roots = roots.into_iter().map(Into::into).collect();
        self.configure(|inner| inner.writable_roots = Some(roots))
    }

    /// Detects calls that a model repeats without progress.
    ///
    /// Off by default: a program may have a reason to repeat a call.
    #[must_use]
    pub fn loop_guard(self, guard: LoopGuard) -> Self {
        self.configure(|inner| inner.loop_guard = Some(guard))
    }

    /// Records every decision and every run.
    ///
    /// A call whose decision cannot be recorded does not run.
    #[must_use]
    pub fn audit(self, audit: impl AuditSink + 'static) -> Self {
        self.configure(|inner| inner.audit = Some(Arc::new(audit)))
    }

    /// Removes from events what `redactor` finds.
    ///
    /// Results and approval requests are not changed: an approver, and
    /// [`pending_approvals`](Self::pending_approvals), show what runs. A secret that a tool emits
    /// in two parts is not found.
    #[must_use]
    pub fn redact_events(self, redactor: Redactor) -> Self {
        self.configure(|inner| inner.redactor = Some(Arc::new(redactor)))
    }

    /// Adds a hook for the tools whose names match `pattern`; its changes to their definitions
    /// apply as well.
    ///
    /// Hooks with a lower priority run first, and hooks of one priority in the order of
    /// registration.
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
