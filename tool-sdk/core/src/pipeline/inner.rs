//! The state that all calls of a pipeline share: its settings, its open approval requests, and the
//! state of each session.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::blocking_jobs::BlockingJobs;
use super::prompt_clock::PromptClock;
use super::run_call;
use super::session_files;
use crate::audit::{self, AuditSink};
use crate::call::{Call, CallOrigin, Outcome};
use crate::context::{
    AccessDecision, CloseCallback, CloseCallbacks, Context, DeniedFiles, InquiryFuture,
    PermissionFuture, RequestedAccess, Session, Signal, Sink, ToolFacts, VisibilityFilter,
    WorkStop,
};
use crate::event::{EventBus, EventCall, EventKind, SecretHoldback};
use crate::hook::RegisteredHook;
use crate::loop_guard::{CallHistory, LoopGuard};
use crate::name::ToolName;
use crate::permission::{
    Approver, GrantStore, Mode, PendingApprovals, SessionGrants, StoredGrants,
};
use crate::redact::{DetectedSecrets, Redactor};
use crate::tool::{Definition, ToolLabel};
use crate::toolset::Toolset;
use crate::truncate::{Budget, RETENTION};

/// The state that all calls of a pipeline share.
#[derive(Clone)]
pub(super) struct PipelineInner {
    /// Identifies this pipeline in the state of a session.
    pub(super) number: usize,
    pub(super) toolset: Arc<Toolset>,
    pub(super) bus: Arc<EventBus>,
    pub(super) pending_approvals: Arc<PendingApprovals>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) grant_store: Option<Arc<GrantStore>>,
    pub(super) approval_timeout: Duration,
    pub(super) writable_roots: Option<Arc<[PathBuf]>>,
    pub(super) hooks: Arc<[RegisteredHook]>,
    pub(super) loop_guard: Option<LoopGuard>,
    pub(super) audit: Option<Arc<dyn AuditSink>>,
    /// Removes secrets from events.
    pub(super) redactor: Option<Arc<Redactor>>,
    /// Output that may be the start of a secret.
    holdback: Arc<SecretHoldback>,
    pub(super) timeout: Duration,
    pub(super) budget: Budget,
    pub(super) output_dir: Option<PathBuf>,
    pub(super) outputs_max_age: Duration,
    pub(super) closed: CancellationToken,
    /// What ends with the pipeline.
    pub(super) close_callbacks: Arc<CloseCallbacks>,
}

impl PipelineInner {
    pub(super) fn new(toolset: Toolset, bus: Arc<EventBus>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            toolset: Arc::new(toolset),
            bus,
            pending_approvals: Arc::default(),
            approver: None,
            grant_store: None,
            approval_timeout: Duration::from_mins(10),
            writable_roots: None,
            hooks: Arc::default(),
            loop_guard: None,
            audit: None,
            redactor: None,
            holdback: Arc::default(),
            timeout: Duration::from_mins(2),
            budget: Budget::default(),
            output_dir: None,
            outputs_max_age: RETENTION,
            closed: CancellationToken::new(),
            close_callbacks: Arc::default(),
        }
    }

    /// Emits an event of a call that is known by its id.
    pub(super) fn emit_for(
        &self,
        session: &Session,
        tool: &ToolName,
        origin: &CallOrigin,
        kind: EventKind,
    ) {
        let tool = &self.label(session, tool);
        self.emit(0, EventCall { session, tool, origin }, kind, &[]);
    }

    /// Emits a warning to the subscribers and to the caller of the session.
    pub(super) fn warn(
        &self,
        session: &Session,
        tool: &ToolName,
        origin: &CallOrigin,
        message: String,
    ) {
        if let Some(listener) = session.listener() {
            let mut message = message.clone();
            for redactor in self.redactors(session) {
                redactor.redact_call_text(&mut message, &DetectedSecrets::default());
            }
            listener.on_warning(tool, &message);
        }
        self.emit_for(session, tool, origin, EventKind::Warned { message });
    }

    /// Returns how events name a tool.
    fn label(&self, session: &Session, name: &ToolName) -> Arc<ToolLabel> {
        let view = self.toolset.view_for(session);
        match view.find(name.as_str()).and_then(|at| view.entry_at(at)) {
            Some((tool, policy)) => Arc::clone(policy.label(tool.definition())),
            None => Arc::new(ToolLabel::from_name(name.clone())),
        }
    }

    /// Emits an event of a call whose pending event has the number `pending`, or 0; returns the
    /// number of this event. Secrets in `arguments` are removed from it.
    pub(super) fn emit(
        &self,
        pending: u64,
        about: EventCall<'_>,
        mut kind: EventKind,
        arguments: &[&str],
    ) -> u64 {
        for redactor in self.redactors(about.session) {
            kind.redact(&redactor, arguments);
        }
        self.bus.publish(pending, about, kind)
    }

    /// Emits the output that was held back of a call that ends.
    pub(super) fn flush_held_output(
        &self,
        session: &Session,
        tool: &ToolName,
        origin: &CallOrigin,
    ) {
        let mut redactors = self.redactors(session);
        let Some(first) = redactors.next() else { return };
        if let Some(mut text) = self.holdback.release(&first, session, &origin.id) {
            redactors.for_each(|redactor| redactor.redact_in_place(&mut text));
            self.emit_signal(session, tool, origin, Signal::Output { text });
        }
    }

    /// Emits the output of a running tool, secrets removed.
    fn emit_signal(&self, session: &Session, tool: &ToolName, origin: &CallOrigin, signal: Signal) {
        if let Some(listener) = session.listener() {
            listener.on_signal(tool, &signal);
        }
        if self.bus.has_signal_subscribers() {
            let tool = &self.label(session, tool);
            self.bus.publish(0, EventCall { session, tool, origin }, signal.into());
        }
    }

    /// The mode of a session: the stricter one of its own and the toolset's.
    pub(super) fn mode(&self, session: &Session) -> Mode {
        let of_view = self.toolset.view_for(session).mode();
        session.own_mode().map_or(of_view, |mode| mode.stricter(of_view))
    }

    /// The approver of a session: its own, or that of the pipeline.
    pub(super) fn approver_of(&self, session: &Session) -> Option<Arc<dyn Approver>> {
        session.session_approver().or_else(|| self.approver.clone())
    }

    /// Returns the stored grants for a session. A store in which the session's tools may write is
    /// refused.
    pub(super) fn stored_grants(&self, session: &Session) -> Option<StoredGrants> {
        self.grant_store
            .as_ref()
            .map(|store| store.load_grants_with_roots(&session_files::roots(session)))
    }

    /// Whether the grants or the audit log are at or below `path`: a tool that writes there could
    /// approve its own calls.
    pub(super) fn keeps_state_in(&self, path: &Path) -> bool {
        self.grant_store.as_ref().is_some_and(|store| store.contains(path))
            || self.audit.as_ref().is_some_and(|log| audit::is_audit_file(&**log, path))
    }

    /// Returns the state that this pipeline keeps for a session.
    pub(super) fn session_state<'s>(&self, session: &'s Session) -> &'s SessionState {
        session.pipeline_state(self.number)
    }
}

/// The state that a pipeline keeps for one session.
#[derive(Default)]
pub(super) struct SessionState {
    /// The recent calls, for the loop guard.
    pub(super) history: CallHistory,
    /// The grants that hold until the session ends.
    pub(super) grants: SessionGrants,
    /// The open prompts of running calls.
    pub(super) prompt_clock: PromptClock,
    /// Work of running calls on blocking threads.
    pub(super) blocking_jobs: BlockingJobs,
    /// The fingerprints of calls that were rejected, of the model's last message.
    rejected: Mutex<(Option<Arc<str>>, HashSet<String>)>,
}

impl SessionState {
    /// Whether the user rejected the same call of the same message.
    pub(super) fn was_rejected(&self, call: &Call<'_>, fingerprint: &str) -> bool {
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        call.message.is_some() && rejected.0 == call.message && rejected.1.contains(fingerprint)
    }

    /// Remembers a rejection, so that the user is not asked about the same call again.
    pub(super) fn note_rejection(&self, call: &Call<'_>, fingerprint: String) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        if rejected.0 != call.message {
            *rejected = (call.message.clone(), HashSet::new());
        }
        rejected.1.insert(fingerprint);
    }
}

impl Sink for PipelineInner {
    #[inline]
    fn has_subscribers(&self) -> bool {
        self.bus.has_signal_subscribers()
    }

    fn shutdown_token(&self) -> CancellationToken {
        self.closed.clone()
    }

    fn on_close(&self, cx: &Context, name: Cow<'static, str>, close: CloseCallback) {
        if !self.closed.is_cancelled() {
            self.close_callbacks.add_for_session(cx.session(), name, close);
        }
    }

    fn prompt_time(&self, cx: &Context) -> Duration {
        self.session_state(cx.session()).prompt_clock.paused_time(cx.call_id())
    }

    fn mask_inquiry(&self, cx: &Context, params: &mut Value) {
        Self::mask_inquiry(cx, params);
    }

    fn permission_mode(&self, cx: &Context) -> &'static str {
        self.mode(cx.session()).as_str()
    }

    fn on_mode_change(&self, _: &Context) {
        self.pending_approvals.notify_policy_change();
    }

    fn work_started(&self, cx: &Context, stop: &WorkStop) {
        self.session_state(cx.session()).blocking_jobs.add(cx.call_id(), cx.started(), stop);
    }

    fn work_ended(&self, cx: &Context, stop: &WorkStop) {
        self.session_state(cx.session()).blocking_jobs.remove(stop);
    }

    fn send_signal(&self, cx: &Context, signal: Signal) {
        let (session, origin) = (cx.session(), cx.origin());
        let mut redactors = self.redactors(session);
        let signal = match (redactors.next(), signal) {
            (None, signal) => signal,
            (Some(first), Signal::Output { text }) => {
                let Some(text) = self.holdback.hold_back(&first, session, &origin.id, text) else {
                    return;
                };
                Signal::Output { text }
            }
            (Some(first), signal) => signal.redacted(&first),
        };
        let signal = redactors.fold(signal, |signal, redactor| signal.redacted(&redactor));
        self.emit_signal(session, cx.tool(), origin, signal);
    }

    fn request_permission(
        self: Arc<Self>,
        cx: Context,
        permission: String,
        what: RequestedAccess,
    ) -> PermissionFuture {
        Box::pin(super::runtime_permission::request_permission(self, cx, permission, what))
    }

    fn evaluate_permission(
        self: Arc<Self>,
        cx: &Context,
        permission: String,
        what: RequestedAccess,
    ) -> AccessDecision {
        super::runtime_permission::evaluate_permission(self, cx.clone(), permission, what)
    }

    fn await_inquiry(self: Arc<Self>, cx: Context, answers: InquiryFuture) -> InquiryFuture {
        Box::pin(super::runtime_permission::wait_for_answers(self, cx, answers))
    }

    fn run_nested_call<'a>(
        self: Arc<Self>,
        cx: &'a Context,
        call: Call<'a>,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { run_call(&self, cx.session(), &call, None).await })
    }

    fn search_tools(&self, cx: &Context, query: &str, limit: usize) -> Vec<ToolFacts> {
        self.toolset
            .view_for(cx.session())
            .search(query, limit)
            .into_iter()
            .map(tool_facts)
            .collect()
    }

    fn visible_files(self: Arc<Self>, cx: &Context, permission: &str) -> VisibilityFilter {
        super::visibility::visibility_filter(&self, cx, permission)
    }

    fn denied_files(self: Arc<Self>, cx: &Context, permission: &str) -> DeniedFiles {
        super::denied_files::denied_files(&self, cx.session(), permission)
    }
}

/// Returns what a tool may learn about another tool.
fn tool_facts(definition: &Definition) -> ToolFacts {
    let text = |text: &Cow<'static, str>| text.clone().into_owned();
    let mut facts = ToolFacts::new(
        definition.name.clone(),
        text(&definition.description),
        definition.parameters.to_value(),
    );
    facts.title = definition.title.as_ref().map(text);
    facts.category = definition.category.as_ref().map(text);
    facts
}
