//! The state of one call while it passes through the pipeline.
//!
//! [`Invocation::execute`] is the order of the stages; each stage is a method in the file of its
//! name. A [`DecodedCall`] is what the stages judge and then run.
//!
//! **Invariant:** the arguments that are judged, shown and approved are the decoded value that
//! runs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::Span;

use super::approval::ApprovedEdit;
use super::execute::{ContainedFuture, cancelled_error, catch_panic};
use super::inner::PipelineInner;
use super::loop_guard::LoopTicket;
use super::trace;
use super::unknown_tool::UnknownTool;
use crate::audit::ArgumentEdit;
use crate::call::{Call, CallOrigin, LazyCancelToken, Outcome, OutcomeMetadata, RawArgs};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::ToolError;
use crate::event::{EventCall, EventKind};
use crate::permission::{Decision, DecisionSource, Fingerprint, PolicyOverride};
use crate::scheduler::{BatchStopReason, ConcurrencyKey, RunSlot, Scheduler};
use crate::tool::{Definition, PreparedCall, Tool, ToolLabel, check_strict};

/// One call and its state so far.
pub(super) struct Invocation<'a> {
    pub(super) inner: &'a Arc<PipelineInner>,
    pub(super) session: &'a Session,
    pub(super) call: &'a Call<'a>,
    /// Decides when the call runs, when it is part of a batch.
    pub(super) scheduler: Option<&'a dyn Scheduler>,
    pub(super) origin: CallOrigin,
    /// The tool, or an [`UnknownTool`].
    pub(super) tool: Arc<dyn Tool>,
    pub(super) label: Arc<ToolLabel>,
    is_tool_known: bool,
    /// When the time of the call began; prompts and hooks do not count.
    pub(super) started: Instant,
    /// The sequence number of the pending event while the terminal event is owed; 0 when there
    /// was no subscriber.
    pub(super) pending_event: Option<u64>,
    pub(super) loop_ticket: Option<LoopTicket<'a>>,
    /// Whether rules or the mode allowed the call, without an approval.
    pub(super) is_unprompted: bool,
    /// Whether a person read the approval request of the call and approved it.
    pub(super) was_read: bool,
    pub(super) has_run: bool,
    /// The arguments, where a hook rewrote or a person edited them.
    pub(super) rewritten: Option<RawArgs<'static>>,
    /// The hooks that rewrote the arguments, for the audit log.
    pub(super) rewritten_by: Vec<String>,
    /// How a person edited the arguments before approving the call.
    pub(super) edit: Option<ArgumentEdit>,
    /// What hooks add to the result for the model.
    pub(super) hook_context: Vec<String>,
    /// The fingerprint in the audit log.
    pub(super) audit_fingerprint: Option<Fingerprint>,
    /// The fingerprint at the time of the approval.
    pub(super) approved_fingerprint: Option<Fingerprint>,
    pub(super) metadata: OutcomeMetadata,
    /// The span of the current stage.
    stage: Span,
}

/// A call with decoded arguments, and the decisions of hooks and the loop guard about it.
pub(super) struct DecodedCall {
    pub(super) prepared: Box<dyn PreparedCall>,
    /// The call as the model sent it, when a hook rewrote it.
    pub(super) original: Option<Box<dyn PreparedCall>>,
    pub(super) overrides: Vec<PolicyOverride>,
    /// Whether a hook may no longer rewrite the call instead of answering an approval request.
    pub(super) is_rewrite_used: bool,
    /// The arguments with which a person approved the call.
    pub(super) edit: Option<ApprovedEdit>,
}

impl DecodedCall {
    fn new(prepared: Box<dyn PreparedCall>) -> Self {
        Self { prepared, original: None, overrides: Vec::new(), is_rewrite_used: false, edit: None }
    }

    /// Adds a decision of a hook or the loop guard, once.
    pub(super) fn add_override(&mut self, decided: PolicyOverride) {
        if !self.overrides.contains(&decided) {
            self.overrides.push(decided);
        }
    }
}

/// A call that may run.
pub(super) struct AuthorizedCall {
    pub(super) prepared: Box<dyn PreparedCall>,
    /// Held until the after-hooks have seen the result.
    pub(super) slot: Option<RunSlot>,
}

impl<'a> Invocation<'a> {
    /// Starts a call; an unknown name gets a placeholder tool.
    pub(super) fn new(
        inner: &'a Arc<PipelineInner>,
        session: &'a Session,
        call: &'a Call<'a>,
        scheduler: Option<&'a dyn Scheduler>,
    ) -> Self {
        let view = inner.toolset.view_for(session);
        let found = view.find(&call.name).and_then(|at| view.entry_at(at));
        let is_tool_known = found.is_some();
        let (tool, label) = match found {
            Some((tool, policy)) => (Arc::clone(tool), Arc::clone(policy.label(tool.definition()))),
            None => UnknownTool::for_name(&call.name),
        };
        Self {
            inner,
            session,
            call,
            scheduler,
            origin: call.origin(),
            tool,
            label,
            is_tool_known,
            started: Instant::now(),
            pending_event: None,
            loop_ticket: None,
            is_unprompted: false,
            was_read: false,
            has_run: false,
            rewritten: None,
            rewritten_by: Vec::new(),
            edit: None,
            hook_context: Vec::new(),
            audit_fingerprint: None,
            approved_fingerprint: None,
            metadata: OutcomeMetadata::default(),
            stage: Span::none(),
        }
    }

    /// Runs the call and emits its terminal event.
    pub(super) async fn run(&mut self) -> Outcome {
        self.enter_stage("resolve");
        let result = match self.wait_for_subscribers().await.and_then(|()| self.resolve()) {
            Ok(()) => self.execute().await,
            Err(error) => Err(error),
        };
        self.finish(result)
    }

    /// Waits until every lossless subscriber has read enough.
    async fn wait_for_subscribers(&mut self) -> Result<(), ToolError> {
        if !self.is_held_back() {
            return Ok(());
        }
        let inner = Arc::clone(self.inner);
        let room = async {
            inner.bus.wait_for_room().await;
            Ok(())
        };
        self.unless_cancelled(room).await?;
        self.reset_clock();
        Ok(())
    }

    /// Whether a lossless subscriber has to read before the call goes on.
    pub(super) fn is_held_back(&self) -> bool {
        self.inner.bus.has_full_queue() && !self.session.is_event_reader()
    }

    /// Takes the call through the stages.
    async fn execute(&mut self) -> Result<Output, ToolError> {
        let AuthorizedCall { prepared, slot } = self.authorize_call().await?;
        let mut result = self.run_tool(prepared).await;
        self.mask_secrets(&mut result);
        let result = self.run_after_hooks(result).await;
        drop(slot);
        result
    }

    /// Takes the call to the point where its tool may run. An error here ends the call: no
    /// after-hook sees it, so none can turn a denial into a success.
    async fn authorize_call(&mut self) -> Result<AuthorizedCall, ToolError> {
        self.enter_stage("admit");
        self.admit()?;
        self.restore_plan_mode().await;
        self.enter_stage("parse");
        self.refuse_secret_arguments()?;
        let mut call = self.parse_args()?;
        self.emit_pending(&*call.prepared);
        self.check_cancelled()?;
        self.run_before_hooks(&mut call).await?;
        self.wait_for_earlier_decisions().await?;
        self.authorize(&mut call).await?;
        let slot = self.wait_for_slot(&mut call).await?;
        self.reauthorize(&mut call).await?;
        self.check_cancelled()?;
        Ok(AuthorizedCall { prepared: call.prepared, slot })
    }

    /// Fails when no tool has this name.
    pub(super) fn resolve(&self) -> Result<(), ToolError> {
        match self.is_tool_known {
            true => Ok(()),
            false => Err(self.inner.unknown_tool_error(self.session, &self.call.name)),
        }
    }

    /// Fails when the pipeline is closed, or the tool requires a user and there is none.
    pub(super) fn admit(&self) -> Result<(), ToolError> {
        if self.inner.bus.is_closed() {
            return Err(ToolError::unavailable("the host has closed its tools"));
        }
        if self.origin.is_too_deep() {
            return Err(ToolError::failed("calls of tools are nested too deep")
                .hint("a tool probably calls itself; call the inner tool directly"));
        }
        let definition = self.definition();
        if definition.flags.requires_auth && self.session.user().is_none() {
            return Err(ToolError::unauthorized(format_args!(
                "`{}` requires a signed-in user, and there is none",
                definition.name
            )));
        }
        Ok(())
    }

    /// Reads the stored plan of the session before its first call. Until the plan can be read, only
    /// tools that read may run.
    pub(super) async fn restore_plan_mode(&self) {
        if let Err(error) = self.session.restore_plan_mode().await {
            let message = format!("only tools that read may run: {}", error.message());
            self.inner.warn(self.session, &self.definition().name, &self.origin, message);
        }
    }

    /// Decodes the arguments; a failure counts towards the loop guard.
    fn parse_args(&mut self) -> Result<DecodedCall, ToolError> {
        match self.decode_args() {
            Ok(prepared) => Ok(DecodedCall::new(prepared)),
            Err(error) => Err(self.record_failed_parse(error)),
        }
    }

    /// Decodes the current arguments; a panic in the decoder fails the call.
    ///
    /// Arguments that two JSON readers could understand in two ways are refused, even
    /// when the tool's own decoder accepts them.
    pub(super) fn decode_args(&self) -> Result<Box<dyn PreparedCall>, ToolError> {
        let args = self.raw_args();
        let prepared = catch_panic(|| self.tool.prepare(args))?.map_err(ToolError::from)?;
        // The decoder of a tool refuses duplicate keys among the arguments, but not below them.
        let has_objects = args.text().get(1..).is_some_and(|rest| rest.contains('{'));
        if has_objects || !self.tool.refuses_duplicate_keys() {
            check_strict(args.text()).map_err(ToolError::invalid_args)?;
        }
        Ok(prepared)
    }

    /// Returns a call for [`Pipeline::check`](super::Pipeline::check).
    pub(super) fn parse_for_check(&self) -> Result<DecodedCall, ToolError> {
        self.decode_args().map(DecodedCall::new)
    }

    /// Waits for the facts of the call that only another program knows.
    pub(super) async fn complete_call(&self, call: &mut DecodedCall) -> Result<(), ToolError> {
        let context = self.context();
        for prepared in call.original.iter_mut().chain([&mut call.prepared]) {
            if let Some(missing) = catch_panic(|| prepared.complete(&context))? {
                self.unless_cancelled(ContainedFuture::new(missing)).await?;
            }
        }
        Ok(())
    }

    /// Replaces the arguments with those that the hooks `names` wrote.
    pub(super) fn rewrite_args(&mut self, arguments: String, names: Vec<String>) {
        self.note_rewrite(&arguments, names);
        // A hook speaks for the host, so it may send hidden arguments.
        let lenient = self.call.arguments.lenient.hidden();
        self.rewritten = Some(RawArgs::from(arguments).lenient(lenient));
    }

    pub(super) fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    /// Returns the current arguments.
    pub(super) fn raw_args(&self) -> &RawArgs<'_> {
        self.rewritten.as_ref().unwrap_or(&self.call.arguments)
    }

    /// Returns the text of the current arguments.
    pub(super) fn arguments(&self) -> &str {
        self.raw_args().text()
    }

    /// Returns the arguments as they were sent, and as they are now.
    pub(super) fn argument_texts(&self) -> [&str; 2] {
        [self.call.arguments.text(), self.arguments()]
    }

    /// Returns the value of the argument `name`, under any spelling of its name, or its default.
    pub(super) fn argument(&self, arguments: &Value, name: &str) -> Option<Value> {
        let lenient = self.call.arguments.lenient;
        let sent = self.tool.argument_names(name).into_iter().find_map(|name| arguments.get(name));
        match sent {
            Some(Value::Null) if lenient.null_is_absent => self.tool.argument_default(name),
            Some(Value::String(text)) if lenient.stringified => {
                // The tool may take the text or the JSON in it, so a rule sees both.
                match serde_json::from_str::<Value>(text) {
                    Ok(inner) if inner.is_array() || inner.is_object() => {
                        Some(Value::Array(vec![Value::String(text.clone()), inner]))
                    }
                    _ => Some(Value::String(text.clone())),
                }
            }
            Some(sent) => Some(sent.clone()),
            None => self.tool.argument_default(name),
        }
    }

    /// Begins the span of a stage and ends that of the stage before.
    pub(super) fn enter_stage(&mut self, stage: &'static str) {
        // The span of the stage before ends first.
        self.stage = Span::none();
        self.stage = trace::stage_span(stage);
    }

    /// Ends the span of the last stage.
    pub(super) fn exit_stage(&mut self) {
        self.stage = Span::none();
    }

    pub(super) fn reset_clock(&mut self) {
        self.started = Instant::now();
    }

    pub(super) fn timeout(&self) -> Duration {
        self.call.timeout.or(self.definition().timeout).unwrap_or(self.inner.timeout)
    }

    /// Returns when the time of the call is up; `None` when that is too far away for a clock.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.started.checked_add(self.timeout())
    }

    /// Returns the context of the running tool.
    pub(super) fn context(&self) -> Context {
        let sink = Arc::clone(self.inner) as _;
        let name = &self.definition().name;
        let (started, timeout) = (self.started, self.timeout());
        Context::for_call(self.session, sink, name, &self.origin, self.call, started, timeout)
            .with_unprompted(self.is_unprompted)
    }

    /// Fails when the caller, the session or the host cancelled the call.
    pub(super) fn check_cancelled(&self) -> Result<(), ToolError> {
        let is_cancelled = self.inner.bus.is_closed()
            || self.session.is_cancelled()
            || self.call.cancel.as_ref().is_some_and(LazyCancelToken::is_cancelled);
        if is_cancelled { Err(cancelled_error()) } else { Ok(()) }
    }

    /// Waits until the call is cancelled.
    pub(super) fn cancelled(&self) -> impl Future<Output = ()> + use<'a> {
        wait_for_cancellation(self.inner, self.session, self.call)
    }

    /// Waits for `work`, unless the call is cancelled first.
    pub(super) async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(cancelled_error()),
            result = work => result,
        }
    }

    /// In a batch, waits until the calls before this one are decided or wait for an approval.
    async fn wait_for_earlier_decisions(&self) -> Result<(), ToolError> {
        let Some(scheduler) = self.scheduler else { return Ok(()) };
        let decided = async {
            scheduler.wait_for_earlier_decisions().await;
            Ok(())
        };
        self.unless_cancelled(decided).await
    }

    /// In a batch, waits until the call may run beside the others.
    async fn wait_for_slot(
        &mut self,
        call: &mut DecodedCall,
    ) -> Result<Option<RunSlot>, ToolError> {
        let Some(scheduler) = self.scheduler else { return Ok(None) };
        self.enter_stage("schedule");
        let resource = catch_panic(|| call.prepared.concurrency_key())?;
        let key = ConcurrencyKey { parallel: self.definition().parallel(), resource };
        let slot = self.unless_cancelled(scheduler.wait_for_slot(&key)).await?;
        self.reset_clock();
        Ok(Some(slot))
    }

    /// Stops the rest of the batch when a hook ended the model's turn.
    pub(super) fn stop_batch_when_halted(&self) {
        if let Some(scheduler) = self.scheduler
            && self.metadata.halt_reason.is_some()
        {
            scheduler.stop(BatchStopReason::Halted);
            // Open approval requests of the batch end as well.
            self.inner.pending_approvals.notify_policy_change();
        }
    }

    /// Remembers what allowed the call.
    pub(super) fn note_decision(&mut self, decision: &Decision) {
        self.is_unprompted = matches!(decision.by, DecisionSource::Rule | DecisionSource::Default);
    }

    /// Emits an event of the call; returns its sequence number, or 0 without a subscriber.
    pub(super) fn emit(&self, kind: impl FnOnce() -> EventKind) -> u64 {
        self.emit_after(0, kind)
    }

    /// Emits an event of the call whose pending event has the number `pending`.
    pub(super) fn emit_after(&self, pending: u64, kind: impl FnOnce() -> EventKind) -> u64 {
        if !self.inner.bus.has_subscribers() {
            return 0;
        }
        let about = EventCall { session: self.session, tool: &self.label, origin: &self.origin };
        self.inner.emit(pending, about, kind(), &self.argument_texts())
    }
}

/// Waits until the caller, the session or the host cancels a call.
pub(super) async fn wait_for_cancellation(
    inner: &PipelineInner,
    session: &Session,
    call: &Call<'_>,
) {
    let by_caller = async {
        match &call.cancel {
            Some(cancel) => cancel.token().cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = by_caller => {}
        () = session.cancel_token().cancelled() => {}
        () = inner.closed.cancelled() => {}
    }
}
