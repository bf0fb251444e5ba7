//! Handles what a server sends without a request: progress, changes of its tools, and requests of
//! older servers during a call.
//!
//! **Invariant:** requests for features that are not enabled are refused. A request does not say to
//! which call it belongs, so it is refused while calls of several users run.

// Sampling and roots are deprecated in the protocol, but servers still use them.
#![expect(deprecated, reason = "older servers have no other way")]

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    CustomNotification, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, JsonObject, JsonRpcMessage,
    ListRootsResult, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, RootsCapabilities, SamplingCapability, ServerJsonRpcMessage,
    ServerResult, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::internal::spell_hidden;

use crate::client::remote::{OfferChange, ProgressCallback};
use crate::client::server_requests::{ClientFeatures, ServerRequestHandler, not_enabled_error};

/// How many progress notifications of one call are queued.
const MAX_QUEUED_STEPS: usize = 64;

/// Receives the notifications and requests of one server.
#[derive(Debug, Default)]
pub(super) struct NotificationHandler {
    features: ClientFeatures,
    tools_changed: Notify,
    /// Whether the server announces changes of its tools.
    announces_changes: AtomicBool,
    offer_changes: OfferChanges,
    progress_listeners: Arc<ProgressListeners>,
    running_calls: Arc<Mutex<Vec<RunningCall>>>,
    /// Notified when the server says that a task changed.
    task_changed: Notify,
    /// The names in the last list of tools, because rmcp may drop some.
    listed_names: Mutex<Vec<String>>,
}

/// The changes that were notified and not yet read, each once, and the resources that are watched.
///
/// Changes of other resources are dropped, so that a server cannot fill the memory.
#[derive(Debug, Default)]
pub(super) struct OfferChanges {
    unread: Mutex<BTreeSet<OfferChange>>,
    arrived: Notify,
    watched: Mutex<BTreeSet<String>>,
    /// Notified when other resources are watched.
    watched_changed: Notify,
}

impl OfferChanges {
    pub(super) fn record(&self, change: OfferChange) {
        if let OfferChange::Resource(uri) = &change
            && !self.lock_watched().contains(uri)
        {
            return;
        }
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).insert(change);
        self.arrived.notify_one();
    }

    pub(super) async fn next_change(&self) -> OfferChange {
        loop {
            let next = self.unread.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
            match next {
                Some(change) => return change,
                None => self.arrived.notified().await,
            }
        }
    }

    /// Watches a resource; returns whether it was not watched before.
    pub(super) fn watch(&self, uri: &str) -> bool {
        let is_new = self.lock_watched().insert(uri.to_owned());
        if is_new {
            self.watched_changed.notify_one();
        }
        is_new
    }

    /// Stops watching a resource; returns whether it was watched.
    pub(super) fn unwatch(&self, uri: &str) -> bool {
        let was_watched = self.lock_watched().remove(uri);
        if was_watched {
            self.watched_changed.notify_one();
        }
        was_watched
    }

    pub(super) fn watched_uris(&self) -> Vec<String> {
        self.lock_watched().iter().cloned().collect()
    }

    /// Waits until other resources are watched than at the last call.
    pub(super) async fn wait_for_watched(&self) {
        self.watched_changed.notified().await;
    }

    fn lock_watched(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running call.
#[derive(Clone, Debug)]
struct RunningCall {
    handler: ServerRequestHandler,
    finished: CancellationToken,
}

/// Keeps a call registered as running until it is dropped.
pub(super) struct RunningCallGuard {
    call: RunningCall,
    running_calls: Arc<Mutex<Vec<RunningCall>>>,
}

impl Drop for RunningCallGuard {
    fn drop(&mut self) {
        self.call.finished.cancel();
        let mut running = self.running_calls.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|other| !other.handler.is_same_call(&self.call.handler));
    }
}

type ProgressListeners = Mutex<HashMap<ProgressToken, ProgressListener>>;

/// Receives the progress of one call.
#[derive(Debug)]
struct ProgressListener {
    steps: mpsc::Sender<ProgressStep>,
    /// Whether the server reports fractions of a step.
    counts_parts: bool,
}

/// The factor for progress that is reported in fractions, as steps are whole numbers here.
const FRACTION_SCALE: f64 = 1000.0;

impl ProgressListener {
    /// Queues a notification; drops it when the queue is full.
    fn report_progress(&mut self, said: ProgressNotificationParam) {
        let has_part = |number: f64| number.fract() != 0.0;
        self.counts_parts |= has_part(said.progress) || said.total.is_some_and(has_part);
        let scale = if self.counts_parts { FRACTION_SCALE } else { 1.0 };
        let _ = self.steps.try_send(ProgressStep {
            done: round_to_u64(said.progress * scale),
            total: said.total.map(|total| round_to_u64(total * scale)),
            message: said.message.unwrap_or_default(),
        });
    }
}

/// A progress report.
#[derive(Debug)]
pub(super) struct ProgressStep {
    pub(super) done: u64,
    pub(super) total: Option<u64>,
    pub(super) message: String,
}

impl ProgressStep {
    pub(super) fn report_to(self, report: ProgressCallback<'_>) {
        report(self.done, self.total, self.message);
    }
}

/// The progress of one call; unregisters when dropped.
pub(super) struct ProgressSteps {
    token: ProgressToken,
    listeners: Arc<ProgressListeners>,
    steps: mpsc::Receiver<ProgressStep>,
}

impl ProgressSteps {
    pub(super) async fn next_step(&mut self) -> Option<ProgressStep> {
        self.steps.recv().await
    }

    /// Returns a report that is queued already.
    pub(super) fn try_next_step(&mut self) -> Option<ProgressStep> {
        self.steps.try_recv().ok()
    }
}

impl Drop for ProgressSteps {
    fn drop(&mut self) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl NotificationHandler {
    /// A handler that answers requests for these features.
    pub(super) fn new(features: ClientFeatures) -> Self {
        Self { features, ..Self::default() }
    }

    /// Registers a running call, which will answer requests of the server.
    pub(super) fn register_call(&self, answers: &ServerRequestHandler) -> RunningCallGuard {
        let call = RunningCall { handler: answers.clone(), finished: CancellationToken::new() };
        let mut running = self.running_calls.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(call.clone());
        RunningCallGuard { call, running_calls: Arc::clone(&self.running_calls) }
    }

    /// Returns the call to which a request belongs, if all running calls are of one user.
    fn requesting_call(&self) -> Option<RunningCall> {
        let running = self.running_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let last = running.last()?;
        let all = running.iter().all(|other| other.handler.has_same_caller(&last.handler));
        all.then(|| last.clone())
    }

    /// Handles a request; fails once its call has ended.
    async fn handle_request<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, ErrorData> {
        let Some(RunningCall { handler: answers, finished: over }) = self.requesting_call() else {
            return Err(request_error("the request does not belong to a running call"));
        };
        let answer = over.run_until_cancelled(answers.handle_request(method, params)).await;
        let answer = answer.ok_or_else(|| request_error("the call has ended"))?;
        let answer = answer.map_err(|error| request_error(&error.message))?;
        serde_json::from_value(answer).map_err(|_| request_error("there is no answer"))
    }

    /// Waits until the tools may have changed.
    pub(super) async fn wait_for_change(&self) {
        self.tools_changed.notified().await;
    }

    pub(super) fn notify_change(&self) {
        self.tools_changed.notify_one();
    }

    /// Waits until the server notifies that one of its tasks changed.
    pub(super) async fn task_changed(&self) {
        self.task_changed.notified().await;
    }

    pub(super) fn offer_changes(&self) -> &OfferChanges {
        &self.offer_changes
    }

    /// Notes that the server announces changes of its tools.
    pub(super) fn expect_changes(&self) {
        self.announces_changes.store(true, Ordering::Relaxed);
    }

    /// Notes that notifications may have been lost.
    pub(super) fn notify_possible_change(&self) {
        if self.announces_changes.load(Ordering::Relaxed) {
            self.notify_change();
        }
    }

    /// Records the names in a list of tools, if the response is one.
    pub(super) fn record_listed_names(&self, answer: &ServerJsonRpcMessage) {
        if let JsonRpcMessage::Response(answer) = answer
            && let ServerResult::ListToolsResult(list) = &answer.result
        {
            let names = list.tools.iter().map(|tool| tool.name.clone().into_owned()).collect();
            *self.listed_names.lock().unwrap_or_else(PoisonError::into_inner) = names;
        }
    }

    /// Takes the recorded names.
    pub(super) fn take_listed_names(&self) -> Vec<String> {
        std::mem::take(&mut self.listed_names.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Passes progress on to its call.
    pub(super) fn dispatch_progress(&self, said: ProgressNotificationParam) {
        let mut calls = self.progress_listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = calls.get_mut(&said.progress_token) {
            listener.report_progress(said);
        }
    }

    /// Subscribes to the progress of the call with this token.
    pub(super) fn subscribe_progress(&self, token: &ProgressToken) -> ProgressSteps {
        let (tell, steps) = mpsc::channel(MAX_QUEUED_STEPS);
        let mut calls = self.progress_listeners.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert(token.clone(), ProgressListener { steps: tell, counts_parts: false });
        ProgressSteps {
            token: token.clone(),
            listeners: Arc::clone(&self.progress_listeners),
            steps,
        }
    }
}

/// Passes a log message of the server on to `tracing`, escaped and cut.
pub(super) fn log_message(message: &LoggingMessageNotificationParam) {
    const MAX_CHARS: usize = 2000;
    let text = match &message.data {
        Value::String(text) => text.chars().take(MAX_CHARS).collect::<String>(),
        data => data.to_string().chars().take(MAX_CHARS).collect(),
    };
    let text = spell_hidden(&text).replace('\n', "\\n");
    let logger = spell_hidden(message.logger.as_deref().unwrap_or_default());
    match message.level {
        LoggingLevel::Debug => tracing::debug!(%logger, "an MCP server logs: {text}"),
        LoggingLevel::Info | LoggingLevel::Notice => {
            tracing::info!(%logger, "an MCP server logs: {text}");
        }
        LoggingLevel::Warning => tracing::warn!(%logger, "an MCP server logs: {text}"),
        _ => tracing::error!(%logger, "an MCP server logs: {text}"),
    }
}

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        // Only older servers read this; each 2026 request carries its version.
        ClientConfig::new(client_capabilities(&self.features), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.handle_request("elicitation/create", json!(params)).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.handle_request("sampling/createMessage", json!(params)).await
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        if notification.method == "notifications/tasks/status" {
            self.task_changed.notify_waiters();
        }
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        // The roots are the same for all users, so the request need not belong to a call.
        let folders = self
            .features
            .list_roots()
            .ok_or_else(|| request_error(&not_enabled_error("roots/list", &Value::Null).message))?;
        serde_json::from_value(folders).map_err(|_| request_error("the roots are not valid"))
    }
}

fn request_error(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None)
}

/// The client capabilities that the server is told.
fn client_capabilities(questions: &ClientFeatures) -> ClientCapabilities {
    let mut offered = ClientCapabilities::default();
    let mut kinds = ElicitationCapability::new();
    if questions.elicitation {
        kinds = kinds.with_form(FormElicitationCapability::new());
    }
    if questions.urls {
        kinds = kinds.with_url(UrlElicitationCapability::new());
    }
    offered.elicitation = (questions.elicitation || questions.urls).then_some(kinds);
    offered.sampling = questions.sampling.then(SamplingCapability::default);
    offered.roots = questions.roots.is_some().then(RootsCapabilities::default);
    let tasks = [(TASKS_EXTENSION_ID.to_owned(), JsonObject::default())];
    offered.extensions = Some(tasks.into());
    offered
}

/// Rounds; negative numbers become 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
fn round_to_u64(number: f64) -> u64 {
    number.round() as u64
}
