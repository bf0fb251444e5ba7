//! What a running tool can see and do.
//!
//! A [`Session`] is a conversation with what the host provides for it; a [`Context`] is one call
//! in it. There are no globals: two sessions share only what the host puts into both.
//!
//! **Invariant:** nothing here depends on the surface of the call, beyond the [`ClientKind`] that
//! the host sets.

mod cancel;
mod close_callbacks;
mod denied_files;
mod inquiry;
mod plugin_lifetime;
mod requested_access;
mod scripted_answers;
mod session;
mod session_states;
mod settings;
mod sink;
mod state;
mod tool_facts;
mod visibility;

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::cancel::{Interrupted, WorkStop};
pub(crate) use self::close_callbacks::CloseCallbacks;
pub(crate) use self::denied_files::DenialJudge;
pub use self::denied_files::DeniedFiles;
pub use self::inquiry::{ElicitationOutcome, Inquiry, InquiryFuture, InquiryHandler, InquiryKind};
pub use self::plugin_lifetime::PluginLifetime;
pub use self::requested_access::{AccessDecision, RequestedAccess};
pub use self::scripted_answers::ScriptedAnswers;
pub(crate) use self::session::SessionHandle;
pub use self::session::{ClientKind, ConversationMessage, Session, SessionIds};
pub use self::settings::{ProgramFolders, ToolSettings};
pub use self::sink::SessionListener;
pub use self::sink::{CloseCallback, PermissionFuture, Signal, Sink};
pub(crate) use self::state::Shared;
pub use self::state::{FromContext, FromContextRef, RequiredService, State};
pub use self::tool_facts::ToolFacts;
pub use self::visibility::{Visibility, VisibilityFilter};
use crate::call::{Call, CallId, CallOrigin, LazyCancelToken, Outcome};
use crate::error::ToolError;
use crate::name::ToolName;

/// One call, as the tool sees it.
///
/// Cheap to clone, so that a tool can pass it to the tasks that it starts.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Context, ToolError};
///
/// async fn greet(cx: &Context) -> Result<String, ToolError> {
///     cx.progress(1, Some(2), "looking up the name");
///     Ok(format!("hello {}", cx.session().user().unwrap_or("stranger")))
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    session: Session,
    sink: Option<Arc<dyn Sink>>,
    tool: ToolName,
    origin: CallOrigin,
    started: Instant,
    timeout: Option<Duration>,
    cancel: Option<LazyCancelToken>,
    /// Whether rules or the mode allowed the call, without a prompt.
    is_unprompted: bool,
}

impl Context {
    /// Creates the context of a call of `tool` in `session`.
    #[must_use]
    pub fn new(session: Session, tool: ToolName, call: CallId) -> Self {
        Self {
            session,
            sink: None,
            tool,
            origin: CallOrigin::new(call),
            started: Instant::now(),
            timeout: None,
            cancel: None,
            is_unprompted: false,
        }
    }

    /// Creates the context of a call in a pipeline.
    #[inline]
    pub(crate) fn for_call(
        session: &Session,
        sink: Arc<dyn Sink>,
        tool: &ToolName,
        origin: &CallOrigin,
        call: &Call<'_>,
        started: Instant,
        timeout: Duration,
    ) -> Self {
        Self {
            session: session.clone(),
            sink: Some(sink),
            tool: tool.clone(),
            origin: origin.clone(),
            started,
            timeout: Some(timeout),
            cancel: call.cancel.clone(),
            is_unprompted: false,
        }
    }

    /// Sets whether rules or the mode allowed the call, without a prompt.
    pub(crate) fn with_unprompted(mut self, is_unasked: bool) -> Self {
        self.is_unprompted = is_unasked;
        self
    }

    /// Returns whether the call was allowed without a prompt or a stored grant.
    pub(crate) fn is_unprompted(&self) -> bool {
        self.is_unprompted
    }

    /// Sends the signals of the call to `sink`.
    #[must_use]
    pub fn with_sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Sets the id of the message that holds the call.
    #[must_use]
    pub fn with_message(mut self, message: Option<Arc<str>>) -> Self {
        self.origin.message = message;
        self
    }

    /// Limits the time of the call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Lets `token` cancel the call.
    #[must_use]
    pub fn with_cancel(mut self, token: Option<CancellationToken>) -> Self {
        self.cancel = token.map(LazyCancelToken::from);
        self
    }

    /// Returns the session.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the name of the called tool.
    #[must_use]
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.origin.id
    }

    /// Returns the id of the call that made this one with [`call`](Self::call).
    #[must_use]
    pub fn parent(&self) -> Option<&CallId> {
        self.origin.parent_id()
    }

    /// Returns which call this is, and where the call comes from.
    pub(crate) fn origin(&self) -> &CallOrigin {
        &self.origin
    }

    /// Returns the id of the message that holds the call.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.origin.message.as_deref()
    }

    /// Returns when the call started.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns when the time limit of the call is reached. The time that the user takes to answer
    /// a [permission request](Self::request_permission) or a form does not count.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let thought = self.sink.as_ref().map_or(Duration::ZERO, |sink| sink.prompt_time(self));
        self.deadline_without_prompts()?.checked_add(thought)
    }

    /// Returns the deadline, without the extra time for prompts.
    fn deadline_without_prompts(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| self.started.checked_add(timeout))
    }

    /// Returns whether the result is no longer wanted: the call was cancelled, or its time limit
    /// is reached.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.session.is_cancelled()
            || self.cancel.as_ref().is_some_and(LazyCancelToken::is_cancelled)
            || self.is_past_deadline()
    }

    fn is_past_deadline(&self) -> bool {
        let now = Instant::now();
        // Cheap check first: most calls are within their limit even without the time for prompts.
        self.deadline_without_prompts().is_some_and(|deadline| now >= deadline)
            && self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// Returns a token that is cancelled when the host closes the pipeline. Background work of a
    /// tool should end then.
    #[must_use]
    pub fn shutdown_token(&self) -> CancellationToken {
        self.sink.as_ref().map_or_else(CancellationToken::new, |sink| sink.shutdown_token())
    }

    /// Registers what [`Pipeline::close`](crate::Pipeline::close) ends and waits for, such as the
    /// background processes of the session.
    ///
    /// A session has one callback of a `name`; later ones are ignored. The callback should own weak
    /// handles, so that it keeps nothing alive after the session. Without a pipeline around the
    /// call, it never runs.
    pub fn on_close<F>(
        &self,
        name: impl Into<Cow<'static, str>>,
        close: impl FnOnce() -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Some(sink) = &self.sink {
            sink.on_close(self, name.into(), Box::new(move || Box::pin(close())));
        }
    }

    /// Waits until the call or its session is cancelled.
    pub async fn cancelled(&self) {
        match &self.cancel {
            Some(call) => {
                tokio::select! {
                    () = call.token().cancelled() => {}
                    () = self.session.cancel_token().cancelled() => {}
                }
            }
            None => self.session.cancel_token().cancelled().await,
        }
    }

    /// Runs `future` until it completes, the call is cancelled, or `timeout` has passed.
    ///
    /// # Errors
    ///
    /// Returns which of the two ended the future; it is dropped then.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(cx: &tool_sdk::Context) -> Result<(), tool_sdk::ToolError> {
    /// use std::time::Duration;
    ///
    /// let answer = cx.race(async { 42 }, Duration::from_secs(1)).await?;
    /// assert_eq!(answer, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn race<F: Future>(
        &self,
        future: F,
        timeout: Duration,
    ) -> Result<F::Output, Interrupted> {
        cancel::race(self, future, timeout).await
    }

    /// Runs `work` on a thread where it may block.
    ///
    /// `work` checks its [`WorkStop`] regularly, which tells it when the call no longer waits.
    /// Work that
    /// changes something calls [`hold`](WorkStop::hold) before it does.
    ///
    /// # Errors
    ///
    /// Returns the error of `work`; a panic in it is an internal error.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(cx: &tool_sdk::Context) -> Result<u64, tool_sdk::ToolError> {
    /// use tool_sdk::ToolError;
    ///
    /// cx.run_blocking(|stop| {
    ///     let mut sum = 0;
    ///     for number in 0..1_000_000_u64 {
    ///         if stop.is_stopped() {
    ///             return Err(ToolError::aborted("the call no longer waits for the sum"));
    ///         }
    ///         sum += number;
    ///     }
    ///     Ok(sum)
    /// })
    /// .await
    /// # }
    /// ```
    pub async fn run_blocking<T, W>(&self, work: W) -> Result<T, ToolError>
    where
        T: Send + 'static,
        W: FnOnce(&WorkStop) -> Result<T, ToolError> + Send + 'static,
    {
        cancel::run_blocking(self, work).await
    }

    /// Reports progress: `done` of `total` steps, and the current activity.
    pub fn progress(&self, done: u64, total: Option<u64>, message: impl Into<String>) {
        self.send_signal(|| Signal::Progress { done, total, message: message.into() });
    }

    /// Sets a fact about the running call; subscribers see it before the tool returns.
    pub fn set_metadata(&self, key: impl Into<String>, value: impl Into<Value>) {
        self.send_signal(|| Signal::Metadata { key: key.into(), value: value.into() });
    }

    /// Emits an event of the tool's own kind; events are delivered at once and in order.
    pub fn emit(&self, kind: impl Into<String>, data: impl Into<Value>) {
        self.send_signal(|| Signal::Emitted { kind: kind.into(), data: data.into() });
    }

    /// Emits a part of the output while the tool still runs.
    pub fn emit_output(&self, text: impl Into<String>) {
        self.send_signal(|| Signal::Output { text: text.into() });
    }

    /// Reports that earlier messages of the tool were lost on their way here.
    #[doc(hidden)]
    pub fn report_lost(&self, count: u64) {
        self.send_signal(|| Signal::Lost { count });
    }

    /// Returns the service of type `T` that the host provides.
    ///
    /// # Errors
    ///
    /// Fails with kind `config` when the host provides no service of that type.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>, ToolError> {
        State::from_context(self)
    }

    /// Checks that the caller has `permission`.
    ///
    /// # Errors
    ///
    /// Fails with kind `unauthorized` when the session does not grant it.
    pub fn require_permission(&self, permission: &str) -> Result<(), ToolError> {
        if self.session.permissions().contains(permission) {
            return Ok(());
        }
        Err(ToolError::unauthorized(format_args!(
            "`{}` needs the permission `{permission}`, which the caller does not have",
            self.tool
        )))
    }

    /// Runs another tool as a part of this call, and waits for its outcome.
    ///
    /// The nested call passes all stages of the pipeline: its arguments are checked, rules and the
    /// approver decide about it, hooks see it, and its events and audit records name this call as
    /// their [`parent`](Self::parent). For the loop guard, only the outer call counts. The nested
    /// call has a time limit of its own, and ends when this call ends. While the user is asked about
    /// the nested call, the time limit of this one stops. In a batch, the nested call runs in the
    /// place of this one.
    ///
    /// Calls may be nested eight deep. Without a pipeline around the call, the outcome is an error
    /// of kind `unavailable`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Call, Context, Pipeline, Registry, Session, ToolError, tool, tools};
    ///
    /// /// Look up one word.
    /// #[tool(read)]
    /// fn define(
    ///     /// The word.
    ///     word: String,
    /// ) -> String {
    ///     format!("{word}: a word")
    /// }
    ///
    /// /// Look up several words.
    /// #[tool(read)]
    /// async fn define_all(
    ///     /// The words.
    ///     words: Vec<String>,
    ///     cx: &Context,
    /// ) -> Result<String, ToolError> {
    ///     let mut text = String::new();
    ///     for word in words {
    ///         let arguments = serde_json::json!({ "word": word });
    ///         text += cx.call(Call::new("define", arguments)).await.result?.as_text();
    ///         text += "\n";
    ///     }
    ///     Ok(text)
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let pipeline = Pipeline::new(Registry::builder().add(tools![define, define_all]).build()?);
    /// let call = Call::new("define_all", r#"{"words": ["a", "b"]}"#);
    /// let outcome = pipeline.call(&Session::default(), call).await;
    /// assert_eq!(outcome.text(), "a: a word\nb: a word\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn call(&self, mut call: Call<'_>) -> Outcome {
        call.parent = Some(Arc::new(self.origin.clone()));
        if call.message.is_none() {
            call.message.clone_from(&self.origin.message);
        }
        if call.cancel.is_none() {
            call.cancel.clone_from(&self.cancel);
        }
        match &self.sink {
            Some(sink) => Arc::clone(sink).run_nested_call(self, call).await,
            None => Outcome::new(call.origin().id, Err(sink::no_pipeline_error())),
        }
    }

    /// Asks whether the call may do something beyond its arguments, such as accessing a network
    /// host. Rules, grants and the mode are evaluated first, then the approver is asked.
    ///
    /// Returns `false` without a pipeline around the call. The time limit of the call stops while
    /// the user is being asked.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(cx: &tool_sdk::Context) -> Result<(), tool_sdk::ToolError> {
    /// use tool_sdk::ToolError;
    ///
    /// if !cx.request_permission("network", "https://example.com").await {
    ///     return Err(ToolError::denied("the host may not be reached"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request_permission(
        &self,
        permission: impl Into<String>,
        what: impl Into<RequestedAccess>,
    ) -> bool {
        match &self.sink {
            Some(sink) => {
                Arc::clone(sink)
                    .request_permission(self.clone(), permission.into(), what.into())
                    .await
            }
            None => false,
        }
    }

    /// Returns what rules, grants and the mode decide about `what` under `permission`. The user is
    /// not asked.
    ///
    /// For a tool that comes upon something while it runs and can go on without it, such as a
    /// redirect. Returns [`AccessDecision::Denied`] without a pipeline around the call.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{AccessDecision, RequestedAccess};
    ///
    /// let cx = tool_sdk::testing::context();
    /// let page = RequestedAccess::new("https://docs.rs/tokio").with_name("domain:docs.rs");
    /// assert_eq!(cx.evaluate_permission("fetch", page), AccessDecision::Denied);
    /// ```
    #[must_use]
    pub fn evaluate_permission(
        &self,
        permission: impl Into<String>,
        what: impl Into<RequestedAccess>,
    ) -> AccessDecision {
        match &self.sink {
            Some(sink) => {
                Arc::clone(sink).evaluate_permission(self, permission.into(), what.into())
            }
            None => AccessDecision::Denied,
        }
    }

    /// Returns at most `limit` of the tools that the session can see, the best matches for
    /// `query` first. A query without words returns the first tools by name.
    ///
    /// Returns none without a pipeline around the call.
    #[must_use]
    pub fn search_tools(&self, query: &str, limit: usize) -> Vec<ToolFacts> {
        self.sink.as_ref().map(|sink| sink.search_tools(self, query, limit)).unwrap_or_default()
    }

    /// Returns a filter for the files that a tool finds, according to the rules for `permission`.
    /// Files that the rules deny or ask about are left out. Rules that name another tool with
    /// this permission count as well.
    ///
    /// The user is not asked. Without a pipeline around the call, nothing is left out. The filter
    /// is valid for this call only; rules may change before the next one.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// let filter = tool_sdk::testing::context().visible_files("read");
    /// assert!(filter.shows(".env", Path::new("/work/.env")));
    /// ```
    #[must_use]
    pub fn visible_files(&self, permission: &str) -> VisibilityFilter {
        match &self.sink {
            Some(sink) => Arc::clone(sink).visible_files(self, permission),
            None => VisibilityFilter::SHOW_ALL,
        }
    }

    /// Returns the files that deny rules keep from `permission`, for a tool that enforces such rules
    /// by other means, such as a sandbox.
    ///
    /// Only rules about the permission itself count, and rules that ask do not. Without a pipeline
    /// around the call, nothing is denied. The answer is valid for this call only.
    ///
    /// # Examples
    ///
    /// ```
    /// let denied = tool_sdk::testing::context().denied_files("read");
    /// assert!(denied.is_empty());
    /// ```
    #[must_use]
    pub fn denied_files(&self, permission: &str) -> DeniedFiles {
        match &self.sink {
            Some(sink) => Arc::clone(sink).denied_files(self, permission),
            None => DeniedFiles::default(),
        }
    }

    /// Returns the name of the session's permission mode; `None` without a pipeline around the call.
    pub(crate) fn permission_mode(&self) -> Option<&'static str> {
        self.sink.as_ref().map(|sink| sink.permission_mode(self))
    }

    /// Reports that the mode of the session changed.
    pub(crate) fn notify_mode_change(&self) {
        if let Some(sink) = &self.sink {
            sink.on_mode_change(self);
        }
    }

    fn send_signal(&self, signal: impl FnOnce() -> Signal) {
        let Some(sink) = &self.sink else { return };
        if sink.has_subscribers() || self.session.listener().is_some() {
            sink.send_signal(self, signal());
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("tool", &self.tool)
            .field("call", &self.origin.id)
            .field("message", &self.origin.message)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
