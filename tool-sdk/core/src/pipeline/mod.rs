//! The pipeline: the one way to run a tool.
//!
//! [`Invocation`] takes a call through the stages, in this order for every tool and caller:
//!
//! ```text
//! resolve       name or alias; an unknown name gets close names back
//! admit         the pipeline is open, and the user known where the tool requires one
//! parse         strict JSON, decoded once, all faults in one message
//! before_hooks  by priority; a rewrite is parsed again
//! loop guard    a call that repeats without progress is asked about or refused
//! authorize     rules, grants, mode, hooks' decisions; then an approval
//! schedule      a call of a batch waits until it may run beside the others
//! execute       time limit, cancellation, panics contained
//! after_hooks   see the whole result, of failed calls too
//! truncate      the text is cut to what a model can read; the whole goes to a file
//! finish        observers, audit record, one terminal event, one outcome
//! ```
//!
//! **Invariant:** nothing here depends on a surface or on the name of a tool, and an error in an
//! earlier stage never runs the tool.

mod approval;
mod audit;
mod authorize;
mod blocking_jobs;
mod builder;
mod call_events;
mod call_facts;
mod denial;
mod denied_files;
mod execute;
mod file_rules;
mod finish;
mod grant_lookup;
mod hook_observer;
#[cfg(test)]
mod hook_tests;
mod hooks;
mod inner;
mod invocation;
mod loop_guard;
mod plugins;
mod prompt_clock;
mod rule_arguments;
mod runtime_permission;
mod secret_masking;
mod session_files;
mod session_policy;
mod setup;
mod suggestions;
#[cfg(test)]
mod tests;
mod trace;
mod truncate;
mod unknown_tool;
mod visibility;

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{join, join_all};
use tracing::Instrument as _;

pub use self::call_events::{CallEvents, CallUpdate};
pub use self::call_facts::{CallFacts, FailureRecord};
use self::inner::PipelineInner;
use self::invocation::Invocation;
pub use self::plugins::PluginManager;
pub use self::setup::MissingService;
use crate::call::CallId;
use crate::call::{Call, Outcome};
use crate::context::{DeniedFiles, Session};
use crate::error::ToolError;
use crate::event::{EventBusOwner, Subscription, ToolEvent};
use crate::name::ToolName;
use crate::permission::{
    ApprovalId, ApprovalRequest, ApprovalResponse, ApprovalResponseError, Decision, Fingerprint,
    Grant, GrantStore, Mode, Rule, Ruleset,
};
use crate::plan_store::PlanDraft;
use crate::scheduler::Scheduler;
use crate::toolset::Toolset;
use crate::truncate::sweep_outputs;

/// Runs calls of the tools in a [`Toolset`].
///
/// Cheap to clone; clones share the toolset, the subscribers and the open approval requests.
///
/// By default only tools that read may run. Every other call needs a [rule](Self::rules), a
/// [mode](Self::mode), or an approval of the [approver](Self::approver). Without an approver, calls
/// that need an approval are denied.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
///
/// /// Add two numbers.
/// #[tool(read)]
/// fn add(
///     /// The first.
///     a: i64,
///     /// The second.
///     b: i64,
/// ) -> String {
///     (a + b).to_string()
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let registry = Registry::builder().add(tools![add]).build()?;
/// let pipeline = Pipeline::new(registry);
///
/// let outcome = pipeline.call(&Session::default(), Call::new("add", r#"{"a": 2, "b": 3}"#)).await;
/// assert_eq!(outcome.text(), "5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<PipelineInner>,
    /// Closes the subscriptions when the last clone is dropped.
    bus_owner: EventBusOwner,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("toolset", &self.inner.toolset)
            .field("hooks", &self.inner.hooks)
            .field("events", &self.bus_owner)
            .finish_non_exhaustive()
    }
}

/// Running calls, approvals and events.
impl Pipeline {
    /// Returns the toolset.
    #[must_use]
    pub fn toolset(&self) -> &Toolset {
        &self.inner.toolset
    }

    /// Returns the toolset, for callers that add tools while calls run.
    #[doc(hidden)]
    pub fn shared_toolset(&self) -> Arc<Toolset> {
        Arc::clone(&self.inner.toolset)
    }

    /// Subscribes to the events of all calls from now on.
    ///
    /// The pipeline never waits for such a subscriber. A slow subscriber loses progress events first,
    /// then other events of running calls, which [`EventKind::Lost`](crate::EventKind::Lost)
    /// counts. The terminal event of a call whose start was seen is never lost.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.inner.bus.subscribe()
    }

    /// Subscribes to the events that `is_wanted` selects, from now on, and loses none of them.
    ///
    /// While `capacity` of them wait to be read, no call begins and no running tool is polled, until
    /// the subscriber has read or is dropped; their time limits go on. So memory is bounded by the
    /// capacity, and by what the calls that run emit before their tools wait for something. Calls of
    /// a session [that reads events](Session::with_event_reader) never wait: a subscriber that makes
    /// calls itself makes them with such a session, or it would wait for itself.
    ///
    /// When the pipeline is closed, events of calls that end by it may come after the last one that is
    /// read. `is_wanted` runs for every event of the pipeline, so it must be quick, and must not panic.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
    ///
    /// /// Say hello.
    /// #[tool(read)]
    /// fn hello() -> &'static str {
    ///     "hello"
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let pipeline = Pipeline::new(Registry::builder().add(tools![hello]).build()?);
    /// let mut ends = pipeline.subscribe_lossless(16, |event| event.kind.is_terminal());
    /// pipeline.call(&Session::default(), Call::new("hello", "{}")).await;
    /// assert!(ends.try_recv().is_some_and(|event| event.kind.is_terminal()));
    /// assert!(ends.try_recv().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn subscribe_lossless(
        &self,
        capacity: usize,
        is_wanted: impl Fn(&ToolEvent) -> bool + Send + Sync + 'static,
    ) -> Subscription {
        self.inner.bus.subscribe_lossless(capacity, is_wanted)
    }

    /// Returns the number of the newest event, so that a surface can put events of its own in order
    /// with those of its calls.
    #[doc(hidden)]
    #[must_use]
    pub fn last_event_seq(&self) -> u64 {
        self.inner.bus.last_seq()
    }

    /// Subscribes to what one call emits while it runs.
    #[doc(hidden)]
    pub fn subscribe_to(&self, call: &CallId) -> Subscription {
        self.inner.bus.subscribe_to(call)
    }

    /// Subscribes to all events of one call.
    #[doc(hidden)]
    pub fn subscribe_to_call(&self, call: &CallId) -> Subscription {
        self.inner.bus.subscribe_to_call(call)
    }

    /// Changes the mode; open approval requests are evaluated again.
    pub fn set_mode(&self, mode: Mode) {
        self.inner.toolset.set_mode(mode);
        self.reevaluate_approvals();
    }

    /// Evaluates open approval requests again.
    pub(crate) fn reevaluate_approvals(&self) {
        self.inner.pending_approvals.notify_policy_change();
    }

    /// Replaces the rules; open approval requests are evaluated again.
    pub fn set_rules(&self, rules: Ruleset) {
        self.inner.toolset.set_rules(rules);
        self.reevaluate_approvals();
    }

    /// Returns the draft of the plan while `session` is in plan mode, also if an earlier program
    /// stored it.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read.
    pub async fn load_plan_draft(
        &self,
        session: &Session,
    ) -> Result<Option<Arc<PlanDraft>>, ToolError> {
        session.restore_plan_mode().await?;
        Ok(session.plan_draft())
    }

    /// Ends plan mode of `session` because the user says so, without an approval of the plan; open
    /// approval requests are evaluated again. Returns the draft, `None` if the session was not in plan
    /// mode. A tool asks the user instead, by [`Context::leave_plan_mode`](crate::Context::leave_plan_mode).
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read or written; the session stays in plan mode then.
    pub async fn end_plan_mode(&self, session: &Session) -> Result<Option<PlanDraft>, ToolError> {
        let draft = session.end_plan_mode().await?;
        self.reevaluate_approvals();
        Ok(draft)
    }

    /// Whether the host set an approver.
    #[doc(hidden)]
    pub fn has_approver(&self) -> bool {
        self.inner.approver.is_some()
    }

    /// Returns the open approval requests, the oldest first.
    #[must_use]
    pub fn pending_approvals(&self) -> Vec<Arc<ApprovalRequest>> {
        self.inner.pending_approvals.open_requests()
    }

    /// Returns the open approval requests of the sessions that satisfy `is_wanted`, the oldest
    /// first.
    #[doc(hidden)]
    #[must_use]
    pub fn pending_approvals_of(
        &self,
        is_wanted: impl Fn(&Session) -> bool,
    ) -> Vec<Arc<ApprovalRequest>> {
        self.inner.pending_approvals.open_requests_of(is_wanted)
    }

    /// Whether an approval request with this id has ended, as far as the last ones are remembered.
    #[doc(hidden)]
    #[must_use]
    pub fn was_approval_ended(&self, id: &ApprovalId) -> bool {
        self.inner.pending_approvals.was_ended(id)
    }

    /// Answers an approval request by its id.
    ///
    /// `shown` is the [fingerprint](ApprovalRequest::fingerprint) of the call that was shown, so
    /// that no answer counts for another call.
    ///
    /// # Errors
    ///
    /// Fails when there is no such open request, when it is about another call than the one that
    /// was shown, when the answer reaches further than was offered, or when its edited arguments
    /// are invalid. An open request stays open then.
    pub async fn respond(
        &self,
        ask: &ApprovalId,
        shown: &str,
        reply: ApprovalResponse,
    ) -> Result<(), ApprovalResponseError> {
        approval::apply_response(&self.inner, ask, shown, reply, None).await
    }

    /// Like [`respond`](Self::respond), for `who`. An answer that does not count leaves the request without a responder.
    ///
    /// # Errors
    ///
    /// Fails like [`respond`](Self::respond).
    #[doc(hidden)]
    pub async fn respond_as(
        &self,
        ask: &ApprovalId,
        shown: &str,
        reply: ApprovalResponse,
        who: &str,
    ) -> Result<(), ApprovalResponseError> {
        approval::apply_response(&self.inner, ask, shown, reply, Some(who)).await
    }

    /// Returns the store of grants for always, if the host set one.
    #[doc(hidden)]
    #[must_use]
    pub fn stored_grants(&self) -> Option<Arc<GrantStore>> {
        self.inner.grant_store.clone()
    }

    /// Returns the file of the audit log, if the host writes one.
    #[doc(hidden)]
    #[must_use]
    pub fn audit_file(&self) -> Option<PathBuf> {
        let audit = self.inner.audit.as_ref()?;
        audit.file_path().map(Path::to_path_buf)
    }

    /// Returns the grants that hold until the session ends, the oldest first. Grants for always are
    /// [listed](crate::GrantStore::list) by their store.
    #[must_use]
    pub fn session_grants(&self, session: &Session) -> Vec<Grant> {
        self.inner.session_state(session).grants.list()
    }

    /// Revokes the grants that hold until the session ends: all of them, or those of one tool. The
    /// next call that needs such a grant is asked about again.
    pub fn revoke_grants(&self, session: &Session, tool: Option<&ToolName>) {
        self.inner.session_state(session).grants.revoke(tool);
    }

    /// Removes stored outputs that are older than [`outputs_max_age`](Self::outputs_max_age); returns how
    /// many.
    ///
    /// This also happens when an output is stored, at most once an hour.
    ///
    /// # Errors
    ///
    /// Fails when the folder of outputs cannot be read.
    pub fn sweep_outputs(&self) -> std::io::Result<usize> {
        match &self.inner.output_dir {
            Some(folder) => sweep_outputs(folder, self.inner.outputs_max_age),
            None => Ok(0),
        }
    }

    /// Ends every running call, every open approval request and every subscription, and closes what
    /// [registered](Self::on_close) with the pipeline: connections to MCP servers and background
    /// processes among others. Later calls fail.
    ///
    /// Calls end at once. The returned future runs the callbacks, all at the same time and each for
    /// at most ten seconds, and returns the names of those that panicked or did not end in time.
    /// Callbacks run once: a second `close` does not wait for them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::sync::Arc;
    /// use tool_sdk::{Pipeline, Registry};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let pipeline = Pipeline::new(Registry::default());
    /// let closed = Arc::new(AtomicBool::new(false));
    /// let flag = Arc::clone(&closed);
    /// pipeline.on_close("database", async move || flag.store(true, Ordering::Relaxed));
    ///
    /// let unclosed = pipeline.close().await;
    /// assert!(unclosed.is_empty() && closed.load(Ordering::Relaxed));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// The future panics outside a tokio runtime with its timer when a callback is registered.
    pub fn close(&self) -> impl Future<Output = Vec<String>> + Send + use<> {
        self.inner.pending_approvals.close();
        self.inner.closed.cancel();
        self.inner.bus.close();
        let plugins = self.inner.toolset.take_plugins(|_| true);
        let callbacks = self.inner.close_callbacks.run();
        async move {
            let ends = join_all(plugins.iter().map(|scope| scope.end()));
            let (mut failed, of_plugins) = join(callbacks, ends).await;
            failed.extend(of_plugins.into_iter().flatten());
            failed
        }
    }

    /// Registers what [`close`](Self::close) ends and waits for, such as a connection; `name` is
    /// for the report of what could not be closed.
    ///
    /// A callback that owns a pipeline keeps it alive; let it own a weak handle. A callback that is
    /// registered after the pipeline was closed does not run.
    pub fn on_close<F>(
        &self,
        name: impl Into<Cow<'static, str>>,
        close: impl FnOnce() -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.inner.close_callbacks.add(name.into(), Box::new(move || Box::pin(close())));
    }

    /// Whether the pipeline was closed.
    #[doc(hidden)]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.bus.is_closed()
    }

    /// Waits for the work of hooks that no call waited for, such as background commands; each has a
    /// limit of its own.
    ///
    /// Call it before the program ends: work that still runs when its runtime ends is lost.
    pub async fn finish(&self) {
        for registered in &*self.inner.current_hooks() {
            let finish = async { registered.hook.finish().await };
            // A panic of a hook ends only that hook.
            let _ = AssertUnwindSafe(finish).catch_unwind().await;
        }
    }

    /// Runs one call through all stages.
    ///
    /// There is exactly one outcome in every case: a panic of the tool is a failed call. Dropping
    /// the future cancels the call and drops the tool's future.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with its timer, once a tool or a hook waits for something.
    pub async fn call(&self, session: &Session, call: Call<'_>) -> Outcome {
        run_call(&self.inner, session, &call, None).await
    }

    /// Runs one call through all stages in a task of its own, and returns its events as they
    /// happen, ended by the outcome.
    ///
    /// A slow reader never blocks the tool: it loses progress events first, then other events of
    /// the running call, which [`EventKind::Lost`](crate::EventKind::Lost) counts; the terminal
    /// event and the outcome are never lost. Dropping the events cancels the call.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::event::CallUpdate;
    /// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
    ///
    /// /// Say hello.
    /// #[tool(read)]
    /// fn hello() -> &'static str {
    ///     "hello"
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let pipeline = Pipeline::new(Registry::builder().add(tools![hello]).build()?);
    /// let mut events = pipeline.call_with_events(Session::default(), Call::new("hello", "{}"));
    /// while let Some(update) = events.next().await {
    ///     match update {
    ///         CallUpdate::Event(event) => println!("{}", event.tool.name),
    ///         CallUpdate::Finished(outcome) => assert_eq!(outcome.text(), "hello"),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn call_with_events(&self, session: Session, call: Call<'static>) -> CallEvents {
        CallEvents::start(self.clone(), session, call)
    }

    /// Runs one call of a batch, whose `scheduler` decides when it may run.
    pub(crate) async fn call_scheduled(
        &self,
        session: &Session,
        call: &Call<'_>,
        scheduler: &dyn Scheduler,
    ) -> Outcome {
        run_call(&self.inner, session, call, Some(scheduler)).await
    }

    /// Returns the files that rules about `permission` keep from the tools of a session, for a host
    /// that passes on files itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    /// use tool_sdk::{Pipeline, Registry, Session};
    ///
    /// let pipeline = Pipeline::new(Registry::builder().build()?).rules(["deny read(*.env)".parse()?]);
    /// let denied = pipeline.denied_files(&Session::default(), "read");
    /// assert!(denied.denies("a.env", Path::new("/work/a.env")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn denied_files(&self, session: &Session, permission: &str) -> DeniedFiles {
        denied_files::denied_files(&self.inner, session, permission)
    }

    /// Returns the decision about a call, without running it and without an approval request.
    ///
    /// The before-hooks run: they may decide, or rewrite the arguments.
    ///
    /// # Errors
    ///
    /// Fails like a call whose tool is unknown or whose arguments are invalid.
    pub async fn check(
        &self,
        session: &Session,
        call: Call<'_>,
    ) -> Result<CheckOutcome, ToolError> {
        Invocation::new(&self.inner, session, &call, None).check().await
    }

    /// Returns what a call would do and touch, without running it and without an approval request,
    /// for a program that decides about it elsewhere. The before-hooks run.
    ///
    /// # Errors
    ///
    /// Fails like a call whose tool is unknown, whose arguments are invalid, or which is denied.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
    ///
    /// /// Say hello.
    /// #[tool(read)]
    /// fn hello() -> &'static str {
    ///     "hello"
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let pipeline = Pipeline::new(Registry::builder().add(tools![hello]).build()?);
    /// let session = Session::default();
    /// let facts = pipeline.describe(&session, Call::new("hello", "{}")).await?;
    /// // Only exactly this call runs.
    /// let call = Call::new("hello", "{}").bound_to(facts.fingerprint);
    /// assert_eq!(pipeline.call(&session, call).await.text(), "hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn describe(
        &self,
        session: &Session,
        call: Call<'_>,
    ) -> Result<CallFacts, ToolError> {
        Invocation::new(&self.inner, session, &call, None).describe().await
    }
}

/// Runs one call through all stages.
async fn run_call(
    inner: &Arc<PipelineInner>,
    session: &Session,
    call: &Call<'_>,
    scheduler: Option<&dyn Scheduler>,
) -> Outcome {
    let mut invocation = Invocation::new(inner, session, call, scheduler);
    let span = trace::call_span(&invocation);
    let outcome = invocation.run().instrument(span.clone()).await;
    trace::record_outcome(&span, &outcome.result);
    outcome
}

/// The decision about a call that was only checked.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct CheckOutcome {
    /// The decision and its reason.
    #[serde(flatten)]
    pub decision: Decision,
    /// The patterns that an approval could grant, when the decision is `ask`.
    pub suggestions: Vec<String>,
    /// The fingerprint of the call that would run.
    pub fingerprint: Fingerprint,
    /// The rules that match no tool, see
    /// [`ToolsetView::unmatched_rules`](crate::ToolsetView::unmatched_rules).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched_rules: Vec<Rule>,
}
