//! What a server says without being asked: how far calls are, that its tools changed, and,
//! where it is an older one, what it wants to know while a call runs.
//!
//! **Invariant:** what was not offered is refused. A question is answered by the call that it
//! belongs to; no message says which that is, so where calls of several callers run at once
//! nobody answers.

// Sampling and roots are on their way out of the protocol; servers of today still ask.
#![expect(deprecated, reason = "the older half of the servers knows no other way")]

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

/// How many messages about one call may wait to be told.
const MOST_WAITING: usize = 64;

/// Who hears what a server says.
#[derive(Debug, Default)]
pub(super) struct Ears {
    questions: Questions,
    changed: Notify,
    /// Whether the server says that it tells of changes.
    expects_news: AtomicBool,
    calls: Arc<Calls>,
    running: Arc<Mutex<Vec<Call>>>,
    /// The names in the last list of tools, where the library may leave some out.
    listed: Mutex<Vec<String>>,
}

/// A call that runs.
#[derive(Clone, Debug)]
struct Call {
    answers: Answers,
    over: CancellationToken,
}

/// A call that runs for as long as this is kept.
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

/// Who wants to know how far a call is.
#[derive(Debug)]
struct Listener {
    tell: mpsc::Sender<Step>,
    /// Whether the server counts in parts of a step.
    counts_parts: bool,
}

/// How many parts a step has, where a server counts in parts: steps are whole here.
const PARTS: f64 = 1000.0;

impl Listener {
    /// Whoever says more than can be told has shown already that it is there.
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

/// How far a call is.
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

/// The steps of one call, for as long as somebody wants to know.
pub(super) struct Steps {
    token: ProgressToken,
    calls: Arc<Calls>,
    steps: mpsc::Receiver<Step>,
}

impl Steps {
    pub(super) async fn next(&mut self) -> Option<Step> {
        self.steps.recv().await
    }

    /// A step that came already.
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
    /// Hears what a server says of which these questions are answered.
    pub(super) fn new(questions: Questions) -> Self {
        Self { questions, ..Self::default() }
    }

    /// Lets the server ask what it likes to know for a call.
    pub(super) fn answer_with(&self, answers: &Answers) -> Answering {
        let call = Call { answers: answers.clone(), over: CancellationToken::new() };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(call.clone());
        Answering { call, running: Arc::clone(&self.running) }
    }

    /// The call to which a question belongs, where that can be told.
    fn asking(&self) -> Option<Call> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let last = running.last()?;
        let all = running.iter().all(|other| other.answers.has_caller_of(&last.answers));
        all.then(|| last.clone())
    }

    /// The answer to a question; none once the call that it belongs to is over.
    async fn answer<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, ErrorData> {
        let Some(Call { answers, over }) = self.asking() else {
            return Err(refused("the question belongs to no call"));
        };
        let answer = over.run_until_cancelled(answers.answer(method, params)).await;
        let answer = answer.ok_or_else(|| refused("the call is over"))?;
        let answer = answer.map_err(|error| refused(&error.message))?;
        serde_json::from_value(answer).map_err(|_| refused("nobody answered"))
    }

    /// Waits until the tools are others.
    pub(super) async fn change(&self) {
        self.changed.notified().await;
    }

    pub(super) fn heard_of_change(&self) {
        self.changed.notify_one();
    }

    /// The server says that it tells of changes.
    pub(super) fn expect_news(&self) {
        self.expects_news.store(true, Ordering::Relaxed);
    }

    /// For a while nothing was heard: what would have been told may have changed.
    pub(super) fn missed_news(&self) {
        if self.expects_news.load(Ordering::Relaxed) {
            self.heard_of_change();
        }
    }

    /// Notes the names in a list of tools, if it is one.
    pub(super) fn heard_list(&self, answer: &ServerJsonRpcMessage) {
        if let JsonRpcMessage::Response(answer) = answer
            && let ServerResult::ListToolsResult(list) = &answer.result
        {
            let names = list.tools.iter().map(|tool| tool.name.clone().into_owned()).collect();
            *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = names;
        }
    }

    /// Those names, once.
    pub(super) fn take_listed(&self) -> Vec<String> {
        std::mem::take(&mut self.listed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells whoever wants to know how far a call is.
    pub(super) fn heard_of_progress(&self, said: ProgressNotificationParam) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = calls.get_mut(&said.progress_token) {
            listener.tell(said);
        }
    }

    /// Listens for how far the call with this token is.
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
        // Only what is met as an older server reads this; today's version goes with each request.
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
        // The same for every caller, so that it need not belong to a call.
        let folders = self.questions.folders().ok_or_else(|| refused(&not_allowed().message))?;
        serde_json::from_value(folders).map_err(|_| refused("there are none"))
    }
}

fn refused(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None)
}

/// What a server is told that it may ask.
fn offered(questions: &Questions) -> ClientCapabilities {
    let mut offered = ClientCapabilities::default();
    offered.elicitation = questions
        .forms
        .then(|| ElicitationCapability::new().with_form(FormElicitationCapability::new()));
    offered.sampling = questions.samples.then(SamplingCapability::default);
    offered.roots = questions.roots.is_some().then(RootsCapabilities::default);
    offered
}

/// What is less than nothing is nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
