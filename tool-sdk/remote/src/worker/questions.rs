//! What a running tool asks: a question goes to the host among the messages of its call, and the answer
//! comes back on a subject of its own.
//!
//! **Invariant:** an answer counts only with a permit that the host signed for this question and this
//! answer; a question without an answer is not answered by the worker.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::Message;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Duration, Instant, sleep_until};
use tool_sdk_core::{
    ApprovalRequest, ApprovalResponse, Approver, Inquiry, InquiryFuture, InquiryHandler,
    InquiryKind, ToolError,
};

use super::WorkerState;
use crate::permit::{Permit, PermitPurpose, random_id};
use crate::protocol::{
    HostAnswer, MAX_QUESTIONS, RequestedPermission, RunBody, ToolQuestion, answer_digest,
    permit_header,
};

/// What the model reads about a call that a running tool makes itself and that needs an approval.
const NOT_FORWARDED: &str =
    "a worker does not forward approval requests for calls that its tools make";

/// The questions of all running calls that are not answered yet, by their ids.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions(Mutex<HashMap<String, oneshot::Sender<HostAnswer>>>);

impl OpenQuestions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<HostAnswer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerState {
    /// Passes an answer on to its question. One without a valid permit is ignored.
    pub(super) fn receive_answer(&self, message: &Message) {
        let id = message.subject.rsplit('.').next().unwrap_or_default();
        if !self.questions.lock().contains_key(id) {
            return;
        }
        let permit = permit_header(message.headers.as_ref())
            .and_then(|text| self.verify(text, PermitPurpose::Answer).ok());
        let is_permitted = permit.is_some_and(|permit| {
            permit.worker == self.id && permit.binding == answer_digest(id, &message.payload)
        });
        if !is_permitted {
            return tracing::debug!("an answer without a valid permit was ignored");
        }
        let Ok(answer) = serde_json::from_slice(&message.payload) else { return };
        if let Some(waiting) = self.questions.lock().remove(id) {
            let _ = waiting.send(answer);
        }
    }
}

/// When a running call must have ended. The time of its questions does not count.
#[derive(Debug)]
pub(super) struct CallTimeLimit(watch::Sender<TimeLimitState>);

#[derive(Debug)]
struct TimeLimitState {
    open_questions: usize,
    end: Instant,
}

impl CallTimeLimit {
    pub(super) fn new(limit: Duration) -> Self {
        let end = Instant::now() + limit;
        Self(watch::Sender::new(TimeLimitState { open_questions: 0, end }))
    }

    /// Waits until the time is over.
    pub(super) async fn wait_until_over(&self) {
        let mut changes = self.0.subscribe();
        loop {
            let end = {
                let state = changes.borrow_and_update();
                (state.open_questions == 0).then_some(state.end)
            };
            let over = async {
                match end {
                    Some(end) => sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                _ = changes.changed() => {}
            }
        }
    }
}

/// Stops the time limit while a question is open, and withdraws the question when its tool no longer
/// waits.
struct OpenQuestion<'a> {
    forwarder: &'a QuestionForwarder,
    id: String,
    asked: Instant,
}

impl<'a> OpenQuestion<'a> {
    fn new(forwarder: &'a QuestionForwarder, waiting: oneshot::Sender<HostAnswer>) -> Self {
        let id = random_id();
        forwarder.worker.questions.lock().insert(id.clone(), waiting);
        forwarder.limit.0.send_modify(|state| state.open_questions += 1);
        Self { forwarder, id, asked: Instant::now() }
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.forwarder.worker.questions.lock().remove(&self.id);
        self.forwarder.limit.0.send_modify(|state| {
            state.open_questions -= 1;
            state.end += self.asked.elapsed();
        });
    }
}

/// Forwards the questions of one running call to its host.
pub(super) struct QuestionForwarder {
    worker: Arc<WorkerState>,
    messages: mpsc::Sender<RunBody>,
    limit: Arc<CallTimeLimit>,
    call: String,
    user: Option<String>,
    fingerprint: String,
    has_forms: bool,
    asked: AtomicUsize,
}

impl fmt::Debug for QuestionForwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QuestionForwarder").field(&self.call).finish()
    }
}

impl QuestionForwarder {
    pub(super) fn new(
        worker: Arc<WorkerState>,
        permit: &Permit,
        messages: mpsc::Sender<RunBody>,
        limit: Arc<CallTimeLimit>,
        has_forms: bool,
    ) -> Self {
        Self {
            worker,
            messages,
            limit,
            call: permit.call.clone(),
            user: permit.user.clone(),
            fingerprint: permit.binding.clone(),
            has_forms,
            asked: AtomicUsize::new(0),
        }
    }

    /// Asks the host; returns its answer.
    async fn ask_host(&self, question: ToolQuestion) -> Result<HostAnswer, ToolError> {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= MAX_QUESTIONS {
            return Err(ToolError::unavailable(format_args!(
                "a call on a worker may ask its host {MAX_QUESTIONS} times"
            )));
        }
        let (sender, answer) = oneshot::channel();
        let open = OpenQuestion::new(self, sender);
        let gone = || ToolError::unavailable("the host no longer waits for the call");
        let message = RunBody::Asked { id: open.id.clone(), question };
        self.messages.send(message).await.map_err(|_| gone())?;
        match answer.await.map_err(|_| gone())? {
            HostAnswer::Failed(failure) => Err(failure.into()),
            answer => Ok(answer),
        }
    }

    /// Whether the request is about a permission that the running tool asks for.
    fn is_about_permission(&self, request: &ApprovalRequest) -> bool {
        request.call.to_string() == self.call && request.arguments.is_null()
    }
}

/// Approves the one call that the permit names, and lets the host decide about permissions that its
/// tool asks for.
pub(super) struct ForwardingApprover(pub(super) Arc<QuestionForwarder>);

impl Approver for ForwardingApprover {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> BoxFuture<'static, Option<ApprovalResponse>> {
        let forwarder = Arc::clone(&self.0);
        if let Some(user) = &forwarder.user {
            request.set_responder(user.clone());
        }
        if request.fingerprint == forwarder.fingerprint {
            return Box::pin(ready(Some(ApprovalResponse::Once)));
        }
        let rejected = |why: &str| ApprovalResponse::RejectWith { feedback: why.to_owned() };
        let permission = request.subjects.first().map(RequestedPermission::from_resource);
        match permission.filter(|_| forwarder.is_about_permission(&request)) {
            Some(permission) => Box::pin(async move {
                let answer = forwarder.ask_host(ToolQuestion::Permission(permission)).await;
                Some(match answer {
                    Ok(HostAnswer::Permission(true)) => ApprovalResponse::Once,
                    Ok(_) => rejected("the host did not allow it"),
                    Err(error) => rejected(error.message()),
                })
            }),
            None => Box::pin(ready(Some(rejected(NOT_FORWARDED)))),
        }
    }
}

impl InquiryHandler for QuestionForwarder {
    fn supports(&self, kind: InquiryKind) -> bool {
        kind == InquiryKind::Form && self.has_forms
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(inquiries.len());
            for (_, inquiry) in inquiries {
                if !self.supports(inquiry.kind()) {
                    return Err(unsupported(inquiry.kind()));
                }
                let form = ToolQuestion::Form(inquiry.params().clone());
                match self.ask_host(form).await? {
                    HostAnswer::Form(answer) => answers.push(answer),
                    _ => return Err(ToolError::unavailable("the host did not answer the form")),
                }
            }
            Ok(answers)
        })
    }
}

/// Returns the error of a question that cannot be answered.
fn unsupported(kind: InquiryKind) -> ToolError {
    let what = match kind {
        InquiryKind::Form => {
            return ToolError::unavailable(
                "the tool shows a form, and the host of the call cannot show forms",
            )
            .hint("call it from a client that can answer, or pass the answer as an argument");
        }
        InquiryKind::Url => "addresses to open",
        InquiryKind::Sample => "requests to its model",
        InquiryKind::Roots => "requests for its folders",
    };
    ToolError::unavailable(format_args!("a worker does not forward {what} to the host of the call"))
        .hint("run this tool in the program of the host")
}
