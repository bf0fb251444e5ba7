//! Ready-made approvers: a scripted one for tests, and a channel for user interfaces.

use std::collections::VecDeque;
use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::{ApprovalRequest, ApprovalResponse, Approver};

type ResponseFuture = Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>>;

/// Answers approval requests from a list, in order; rejects when the list is used up.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ApprovalResponse, ScriptedApprover};
///
/// let approver = ScriptedApprover::new([ApprovalResponse::Once, ApprovalResponse::Reject]);
/// assert!(approver.requests().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct ScriptedApprover {
    responses: Mutex<VecDeque<ApprovalResponse>>,
    default_response: Option<ApprovalResponse>,
    requests: Mutex<Vec<Arc<ApprovalRequest>>>,
}

impl ScriptedApprover {
    /// Returns an approver that gives these responses in this order.
    #[must_use]
    pub fn new(responses: impl IntoIterator<Item = ApprovalResponse>) -> Self {
        Self { responses: Mutex::new(responses.into_iter().collect()), ..Self::default() }
    }

    /// Returns an approver that gives the same response to every request.
    #[must_use]
    pub fn always_respond(response: ApprovalResponse) -> Self {
        Self { default_response: Some(response), ..Self::default() }
    }

    /// Returns the requests so far, the oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for ScriptedApprover {
    fn request_approval(&self, request: Arc<ApprovalRequest>) -> ResponseFuture {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let next = self.responses.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(ready(Some(
            next.or_else(|| self.default_response.clone()).unwrap_or(ApprovalResponse::Reject),
        )))
    }
}

/// Returns an approver that sends requests to a user interface, and the receiver for it.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ApprovalResponse, approval_channel};
///
/// # async fn example() {
/// let (approver, mut receiver) = approval_channel();
/// tokio::spawn(async move {
///     while let Some(pending) = receiver.recv().await {
///         let response = if pending.request().dangerous { ApprovalResponse::Reject } else { ApprovalResponse::Once };
///         pending.respond(response);
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

/// Sends every request to its [`ApprovalReceiver`]; rejects when the receiver was dropped.
#[derive(Clone, Debug)]
pub struct ApprovalSender(mpsc::UnboundedSender<PendingRequest>);

/// Receives the requests of an [`ApprovalSender`].
#[derive(Debug)]
pub struct ApprovalReceiver(mpsc::UnboundedReceiver<PendingRequest>);

impl ApprovalReceiver {
    /// Waits for the next request; returns `None` once every sender was dropped.
    pub async fn recv(&mut self) -> Option<PendingRequest> {
        self.0.recv().await
    }

    /// Returns the next request, if there is one already.
    pub fn try_recv(&mut self) -> Option<PendingRequest> {
        self.0.try_recv().ok()
    }
}

/// A request that waits for its response; dropping it rejects the call.
pub struct PendingRequest {
    request: Arc<ApprovalRequest>,
    response_sender: oneshot::Sender<ApprovalResponse>,
}

impl PendingRequest {
    /// Returns what is asked.
    #[must_use]
    pub fn request(&self) -> &Arc<ApprovalRequest> {
        &self.request
    }

    /// Whether the request has ended in another way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.response_sender.is_closed()
    }

    /// Sends the response; returns whether the call still waited for it.
    pub fn respond(self, response: ApprovalResponse) -> bool {
        self.response_sender.send(response).is_ok()
    }
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingRequest").field(&self.request.id).finish()
    }
}

impl Approver for ApprovalSender {
    fn request_approval(&self, request: Arc<ApprovalRequest>) -> ResponseFuture {
        let (response_sender, response) = oneshot::channel();
        let shown = Arc::clone(&request);
        let sent = self.0.send(PendingRequest { request, response_sender });
        Box::pin(async move {
            match sent {
                Ok(()) => Some(
                    response.await.unwrap_or_else(|_| unanswered_response(&shown, PROMPT_CLOSED)),
                ),
                Err(_) => Some(unanswered_response(&shown, PROMPT_CLOSED)),
            }
        })
    }
}

const PROMPT_CLOSED: &str = "the approval prompt was closed before it was answered";

/// Returns a rejection that did not come from a person; `why` says why there is no response.
pub fn unanswered_response(request: &ApprovalRequest, why: &str) -> ApprovalResponse {
    request.internals.set_refusal(why);
    ApprovalResponse::RejectWith { feedback: String::new() }
}
