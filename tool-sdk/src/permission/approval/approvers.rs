//! Ready-made approvers: a script for tests, a channel for screens.

use std::collections::VecDeque;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::{ApprovalRequest, ApprovalResponse, Approver};

type ResponseFuture = Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>>;

/// Answers from a list, one after the other, and no when the list is at its end.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ApprovalResponse, ScriptedApprover};
///
/// let approver = ScriptedApprover::new([ApprovalResponse::Once, ApprovalResponse::Reject]);
/// assert!(approver.asked().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct ScriptedApprover {
    responses: Mutex<VecDeque<ApprovalResponse>>,
    default_response: Option<ApprovalResponse>,
    requests: Mutex<Vec<Arc<ApprovalRequest>>>,
}

impl ScriptedApprover {
    /// Gives these answers in this order.
    #[must_use]
    pub fn new(replies: impl IntoIterator<Item = ApprovalResponse>) -> Self {
        Self { responses: Mutex::new(replies.into_iter().collect()), ..Self::default() }
    }

    /// Gives the same answer to everything.
    #[must_use]
    pub fn always_respond(reply: ApprovalResponse) -> Self {
        Self { default_response: Some(reply), ..Self::default() }
    }

    /// What was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for ScriptedApprover {
    fn request_approval(&self, ask: Arc<ApprovalRequest>) -> ResponseFuture {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(ask);
        let next = self.responses.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(ready(Some(
            next.or_else(|| self.default_response.clone()).unwrap_or(ApprovalResponse::Reject),
        )))
    }
}

/// An approver that hands asks to a screen, and the screen's end of it.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ApprovalResponse, approval_channel};
///
/// # async fn example() {
/// let (approver, mut inbox) = approval_channel();
/// tokio::spawn(async move {
///     while let Some(pending) = inbox.recv().await {
///         let reply = if pending.request().dangerous { ApprovalResponse::Reject } else { ApprovalResponse::Once };
///         pending.respond(reply);
///     }
/// });
/// # let _ = approver;
/// # }
/// ```
#[must_use]
pub fn approval_channel() -> (ApprovalSender, ApprovalReceiver) {
    let (to, from) = mpsc::unbounded_channel();
    (ApprovalSender(to), ApprovalReceiver(from))
}

/// Hands every ask to its [`ApprovalReceiver`]; without one, the answer is no.
#[derive(Clone, Debug)]
pub struct ApprovalSender(mpsc::UnboundedSender<PendingRequest>);

/// Where asks arrive.
#[derive(Debug)]
pub struct ApprovalReceiver(mpsc::UnboundedReceiver<PendingRequest>);

impl ApprovalReceiver {
    /// The next ask; `None` once every approver of this inbox is gone.
    pub async fn recv(&mut self) -> Option<PendingRequest> {
        self.0.recv().await
    }

    /// The next ask, if there is one already.
    pub fn try_recv(&mut self) -> Option<PendingRequest> {
        self.0.try_recv().ok()
    }
}

/// An ask that waits for its answer; dropped, the answer is no.
pub struct PendingRequest {
    request: Arc<ApprovalRequest>,
    response_sender: oneshot::Sender<ApprovalResponse>,
}

impl PendingRequest {
    /// What is asked.
    #[must_use]
    pub fn request(&self) -> &Arc<ApprovalRequest> {
        &self.request
    }

    /// Whether the ask was settled in another way by now.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.response_sender.is_closed()
    }

    /// Answers; says whether anybody still waited.
    pub fn respond(self, reply: ApprovalResponse) -> bool {
        self.response_sender.send(reply).is_ok()
    }
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingRequest").field(&self.request.id).finish()
    }
}

impl Approver for ApprovalSender {
    fn request_approval(&self, ask: Arc<ApprovalRequest>) -> ResponseFuture {
        let (reply, answer) = oneshot::channel();
        let shown = Arc::clone(&ask);
        let sent = self.0.send(PendingRequest { request: ask, response_sender: reply });
        Box::pin(async move {
            match sent {
                Ok(()) => Some(
                    answer.await.unwrap_or_else(|_| unanswered_response(&shown, PROMPT_CLOSED)),
                ),
                Err(_) => Some(unanswered_response(&shown, PROMPT_CLOSED)),
            }
        })
    }
}

const PROMPT_CLOSED: &str = "whoever was asked is gone";

/// A no that no person said, and that is not told as one: `why` there was no answer.
pub(crate) fn unanswered_response(ask: &ApprovalRequest, why: &str) -> ApprovalResponse {
    ask.internals.set_refusal(why);
    ApprovalResponse::RejectWith { feedback: String::new() }
}
