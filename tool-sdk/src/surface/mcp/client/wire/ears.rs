//! Handles what a server sends without a request: progress, changes of its tools, and requests of
//! older servers during a call.
//!
//! **Invariant:** requests for features that are not enabled are refused. A request does not say to
//! which call it belongs, so it is refused while calls of several users run.

// Sampling and roots are deprecated in the protocol, but servers still use them.
#![expect(deprecated, reason = "older servers have no other way")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, JsonRpcMessage, ListRootsResult,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RootsCapabilities,
    SamplingCapability, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RequestContext, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::super::questions::{Answers, Questions, not_allowed};
use super::super::remote::Report;

/// How many progress notifications of one call are queued.
const MOST_WAITING: usize = 64;

/// Receives the notifications and requests of one server.
#[derive(Debug, Default)]
pub(super) struct Ears {
    questions: Questions,
    changed: Notify,
    /// Whether the server announces changes of its tools.
    expects_news: AtomicBool,
    calls: Arc<Calls>,
    running: Arc<Mutex<Vec<Call>>>,
    /// The names in the last list of tools, because rmcp may drop some.
    listed: Mutex<Vec<String>>,
}

/// A running call.
#[derive(Clone, Debug)]
struct Call {
    answers: Answers,
    over: CancellationToken,
}

/// Keeps a call registered as running until it is dropped.
pub(super) struct Answering {
    call: Call,
    running: Arc<Mutex<Vec<Call>>>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.call.over.cancel();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|other| !other.answers.is(&self.call.answers));
    }
}

type Calls = Mutex<HashMap<ProgressToken, Listener>>;

/// Receives the progress of one call.
#[derive(Debug)]
struct Listener {
    tell: mpsc::Sender<Step>,
    /// Whether the server reports fractions of a step.
    counts_parts: bool,
}

/// The factor for progress that is reported in fractions, as steps are whole numbers here.
const PARTS: f64 = 1000.0;

impl Listener {
    /// Queues a notification; drops it when the queue is full.
    fn tell(&mut self, said: ProgressNotificationParam) {
        let has_part = |number: f64| number.fract() != 0.0;
        self.counts_parts |= has_part(said.progress) || said.total.is_some_and(has_part);
        let scale = if self.counts_parts { PARTS } else { 1.0 };
        let _ = self.tell.try_send(Step {
            done: whole(said.progress * scale),
            total: said.total.map(|total| whole(total * scale)),
            message: said.message.unwrap_or_default(),
        });
    }
}

/// A progress report.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) done: u64,
    pub(super) total: Option<u64>,
    pub(super) message: String,
}

impl Step {
    pub(super) fn tell(self, report: Report<'_>) {
        report(self.done, self.total, self.message);
    }
}

/// The progress of one call; unregisters when dropped.
pub(super) struct Steps {
    token: ProgressToken,
    calls: Arc<Calls>,
    steps: mpsc::Receiver<Step>,
}

impl Steps {
    pub(super) async fn next(&mut self) -> Option<Step> {
        self.steps.recv().await
    }

    /// Returns a report that is queued already.
    pub(super) fn waiting(&mut self) -> Option<Step> {
        self.steps.try_recv().ok()
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl Ears {
    /// A handler that answers requests for these features.
    pub(super) fn new(questions: Questions) -> Self {
        Self { questions, ..Self::default() }
    }

    /// Registers a running call, which will answer requests of the server.
    pub(super) fn answer_with(&self, answers: &Answers) -> Answering {
        let call = Call { answers: answers.clone(), over: CancellationToken::new() };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(call.clone());
        Answering { call, running: Arc::clone(&self.running) }
    }

    /// Returns the call to which a request belongs, if all running calls are of one user.
    fn asking(&self) -> Option<Call> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let last = running.last()?;
        let all = running.iter().all(|other| other.answers.has_caller_of(&last.answers));
        all.then(|| last.clone())
    }

    /// Handles a request; fails once its call has ended.
    async fn answer<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, ErrorData> {
        let Some(Call { answers, over }) = self.asking() else {
            return Err(refused("the request does not belong to a running call"));
        };
        let answer = over.run_until_cancelled(answers.answer(method, params)).await;
        let answer = answer.ok_or_else(|| refused("the call has ended"))?;
        let answer = answer.map_err(|error| refused(&error.message))?;
        serde_json::from_value(answer).map_err(|_| refused("there is no answer"))
    }

    /// Waits until the tools may have changed.
    pub(super) async fn change(&self) {
        self.changed.notified().await;
    }

    pub(super) fn heard_of_change(&self) {
        self.changed.notify_one();
    }

    /// Notes that the server announces changes of its tools.
    pub(super) fn expect_news(&self) {
        self.expects_news.store(true, Ordering::Relaxed);
    }

    /// Notes that notifications may have been lost.
    pub(super) fn missed_news(&self) {
        if self.expects_news.load(Ordering::Relaxed) {
            self.heard_of_change();
        }
    }

    /// Records the names in a list of tools, if the response is one.
    pub(super) fn heard_list(&self, answer: &ServerJsonRpcMessage) {
        if let JsonRpcMessage::Response(answer) = answer
            && let ServerResult::ListToolsResult(list) = &answer.result
        {
            let names = list.tools.iter().map(|tool| tool.name.clone().into_owned()).collect();
            *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = names;
        }
    }

    /// Takes the recorded names.
    pub(super) fn take_listed(&self) -> Vec<String> {
        std::mem::take(&mut self.listed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Passes progress on to its call.
    pub(super) fn heard_of_progress(&self, said: ProgressNotificationParam) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = calls.get_mut(&said.progress_token) {
            listener.tell(said);
        }
    }

    /// Subscribes to the progress of the call with this token.
    pub(super) fn listen_for(&self, token: &ProgressToken) -> Steps {
        let (tell, steps) = mpsc::channel(MOST_WAITING);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert(token.clone(), Listener { tell, counts_parts: false });
        Steps { token: token.clone(), calls: Arc::clone(&self.calls), steps }
    }
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        // Only older servers read this; each 2026 request carries its version.
        ClientConfig::new(offered(&self.questions), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.answer("elicitation/create", json!(params)).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.answer("sampling/createMessage", json!(params)).await
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        // The roots are the same for all users, so the request need not belong to a call.
        let folders = self.questions.folders().ok_or_else(|| refused(&not_allowed().message))?;
        serde_json::from_value(folders).map_err(|_| refused("the roots are not valid"))
    }
}

fn refused(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None)
}

/// The client capabilities that the server is told.
fn offered(questions: &Questions) -> ClientCapabilities {
    let mut offered = ClientCapabilities::default();
    offered.elicitation = questions
        .forms
        .then(|| ElicitationCapability::new().with_form(FormElicitationCapability::new()));
    offered.sampling = questions.samples.then(SamplingCapability::default);
    offered.roots = questions.roots.is_some().then(RootsCapabilities::default);
    offered
}

/// Rounds; negative numbers become 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
