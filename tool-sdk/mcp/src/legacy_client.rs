//! Sends requests to a legacy client while its call runs: approvals and forms for its user,
//! sampling by its model, and its roots.

// Sampling and roots are deprecated in the protocol, but current clients still have them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientResult, CreateMessageRequest, CreateMessageRequestParams,
    ElicitRequest, ElicitRequestParams, GetExtensions as _, ListRootsRequest, RequestId,
    ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RoleServer, ServiceError};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{
    ApprovalRequest, ApprovalResponse, Approver, GrantScope, Inquiry, InquiryFuture,
    InquiryHandler, InquiryKind, Session, ToolError, internal::unanswered_response,
};

use super::approval_form;
use super::input::{InputCapabilities, parse_inquiry, unsupported_error};

/// A legacy client that can be asked.
#[derive(Clone)]
pub(super) struct LegacyClient {
    peer: Peer<RoleServer>,
    capabilities: InputCapabilities,
    /// Whether the client's user approves calls.
    can_approve: bool,
    /// Triggered when the client disconnected, so that no answer can come.
    disconnected: CancellationToken,
    origin: Option<OriginatingRequest>,
}

/// The request that causes a question. Over HTTP the question is sent on the stream of that
/// request, once rmcp has registered it.
#[derive(Clone)]
pub(super) struct OriginatingRequest {
    pub(super) request: RequestId,
    /// Triggered when rmcp registered the request; `None` if it already has.
    pub(super) registered: Option<CancellationToken>,
}

impl LegacyClient {
    pub(super) fn new(
        peer: Peer<RoleServer>,
        capabilities: InputCapabilities,
        can_approve: bool,
        disconnected: CancellationToken,
    ) -> Self {
        Self { peer, capabilities, can_approve, disconnected, origin: None }
    }

    /// Returns a copy that asks on behalf of this request.
    pub(super) fn for_request(&self, cause: OriginatingRequest) -> Self {
        Self { origin: Some(cause), ..self.clone() }
    }

    /// Returns true if the client can answer any question.
    pub(super) fn can_answer(&self) -> bool {
        self.can_approve || self.capabilities != InputCapabilities::default()
    }

    /// Returns the session with this client as its approver and its source of answers.
    pub(super) fn attach_to(self, session: Session) -> Session {
        let user = Arc::new(self);
        let session = session.with_inquiry_handler(Arc::clone(&user) as _);
        if user.can_approve { session.with_shared_approver(user) } else { session }
    }

    /// Tags a question with the request that it belongs to.
    async fn tag_with_origin(&self, question: &mut ServerRequest) {
        let Some(OriginatingRequest { request, registered: known }) = &self.origin else { return };
        if let Some(known) = known {
            known.cancelled().await;
        }
        question.extensions_mut().insert(OriginatingRequestId(request.clone()));
    }

    /// Sends a question. Cancels it if the caller stops waiting.
    async fn send_question(
        &self,
        mut request: ServerRequest,
        limit: Option<Duration>,
    ) -> Result<ClientResult, ServiceError> {
        self.tag_with_origin(&mut request).await;
        let mut options = PeerRequestOptions::no_options();
        options.timeout = limit;
        let sent = self.peer.send_cancellable_request(request, options).await?;
        let mut open = UnansweredQuestion { peer: self.peer.clone(), id: Some(sent.id.clone()) };
        tokio::select! {
            answer = sent.await_response() => {
                open.id = None;
                answer
            }
            () = self.disconnected.cancelled() => Err(ServiceError::TransportClosed),
        }
    }

    async fn send_inquiry(&self, inquiry: &Inquiry) -> Result<Value, ToolError> {
        let request = match inquiry.kind() {
            InquiryKind::Form => {
                let form: ElicitRequestParams = parse_inquiry(inquiry)?;
                ServerRequest::ElicitRequest(ElicitRequest::new(form))
            }
            InquiryKind::Sample => {
                let prompt: CreateMessageRequestParams = parse_inquiry(inquiry)?;
                ServerRequest::CreateMessageRequest(CreateMessageRequest::new(prompt))
            }
            InquiryKind::Roots => ServerRequest::ListRootsRequest(ListRootsRequest::default()),
        };
        let unanswered = || ToolError::unavailable("the client did not answer");
        let answer = self.send_question(request, None).await;
        let answer = answer.map_err(|error| unanswered().source(error))?;
        let answer = match (inquiry.kind(), answer) {
            (InquiryKind::Form, ClientResult::ElicitResult(answer)) => serde_json::to_value(answer),
            (InquiryKind::Sample, ClientResult::CreateMessageResult(answer)) => {
                serde_json::to_value(answer)
            }
            (InquiryKind::Roots, ClientResult::ListRootsResult(answer)) => {
                serde_json::to_value(answer)
            }
            _ => return Err(unanswered().source(ServiceError::UnexpectedResponse)),
        };
        answer.map_err(|error| unanswered().source(error))
    }
}

/// A question without an answer yet. Sends a cancellation when dropped.
struct UnansweredQuestion {
    peer: Peer<RoleServer>,
    /// `None` once it is answered.
    id: Option<RequestId>,
}

impl Drop for UnansweredQuestion {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let taken_back = CancelledNotificationParam::new(Some(id), None);
            // The client may have disconnected.
            let _ = peer.notify_cancelled(taken_back).await;
        });
    }
}

/// A client that fails to answer denies the call.
impl Approver for LegacyClient {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let user = self.clone();
        Box::pin(async move {
            let Ok(question) = approval_form::build_approval_form(&ask, GrantScope::Session) else {
                return Some(unanswered_response(
                    &ask,
                    "the approval form cannot be sent to the client",
                ));
            };
            let question = ServerRequest::ElicitRequest(ElicitRequest::new(question));
            Some(match user.send_question(question, Some(ask.expires_in)).await {
                Ok(ClientResult::ElicitResult(answer)) => {
                    approval_form::parse_approval(&ask, GrantScope::Session, &answer)
                }
                _ => unanswered_response(&ask, "the client did not answer"),
            })
        })
    }
}

impl InquiryHandler for LegacyClient {
    fn supports(&self, kind: InquiryKind) -> bool {
        self.capabilities.supports(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move {
            self.capabilities.check_supported(&inquiries).map_err(unsupported_error)?;
            let mut answers = Vec::with_capacity(inquiries.len());
            for (_, inquiry) in &inquiries {
                answers.push(self.send_inquiry(inquiry).await?);
            }
            Ok(answers)
        })
    }
}
