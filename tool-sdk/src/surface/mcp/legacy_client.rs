//! The user, the model and the folders of a legacy peer, which is asked while the call runs.

// Sampling and roots are on their way out of the protocol; peers of today still have them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

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

use super::approval_form;
use super::input::{InputCapabilities, parse_inquiry, unsupported_error};
use crate::context::{Inquiries, Inquiring, Inquiry, InquiryKind, Session};
use crate::error::ToolError;
use crate::permission::{Approver, Ask, Extent, Reply, unanswered};

/// Whoever sits behind a legacy peer.
#[derive(Clone)]
pub(super) struct LegacyClient {
    peer: Peer<RoleServer>,
    can: InputCapabilities,
    /// Whether it is the one who allows calls.
    can_approve: bool,
    /// Triggered when no answer can come any more.
    disconnected: CancellationToken,
    origin: Option<OriginatingRequest>,
}

/// The request because of which somebody is asked: over HTTP its stream carries the question,
/// once the library knows of it.
#[derive(Clone)]
pub(super) struct OriginatingRequest {
    pub(super) request: RequestId,
    /// Triggered when the library knows of it; nothing where it does.
    pub(super) registered: Option<CancellationToken>,
}

impl LegacyClient {
    pub(super) fn new(
        peer: Peer<RoleServer>,
        can: InputCapabilities,
        can_approve: bool,
        disconnected: CancellationToken,
    ) -> Self {
        Self { peer, can, can_approve, disconnected, origin: None }
    }

    /// The same, when asked because of this request.
    pub(super) fn for_request(&self, cause: OriginatingRequest) -> Self {
        Self { origin: Some(cause), ..self.clone() }
    }

    /// Whether there is anything to ask at all.
    pub(super) fn can_answer(&self) -> bool {
        self.can_approve || self.can != InputCapabilities::default()
    }

    /// The session in which this is who is asked.
    pub(super) fn attach_to(self, session: Session) -> Session {
        let user = Arc::new(self);
        let session = session.with_inquiries(Arc::clone(&user) as _);
        if user.can_approve { session.with_shared_approver(user) } else { session }
    }

    /// Marks a question as one of the call that it belongs to.
    async fn tag_with_origin(&self, question: &mut ServerRequest) {
        let Some(OriginatingRequest { request, registered: known }) = &self.origin else { return };
        if let Some(known) = known {
            known.cancelled().await;
        }
        question.extensions_mut().insert(OriginatingRequestId(request.clone()));
    }

    /// Asks, and takes the question back when nobody waits for the answer any more.
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

/// A question that the peer shows to somebody.
struct UnansweredQuestion {
    peer: Peer<RoleServer>,
    /// Nothing where it was answered.
    id: Option<RequestId>,
}

impl Drop for UnansweredQuestion {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let taken_back = CancelledNotificationParam::new(Some(id), None);
            // A peer that is gone shows nothing.
            let _ = peer.notify_cancelled(taken_back).await;
        });
    }
}

/// A peer that cannot answer has said no.
impl Approver for LegacyClient {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        let user = self.clone();
        Box::pin(async move {
            let Ok(question) = approval_form::build_approval_form(&ask, Extent::Session) else {
                return Some(unanswered(&ask, "the question cannot be put to the client"));
            };
            let question = ServerRequest::ElicitRequest(ElicitRequest::new(question));
            Some(match user.send_question(question, Some(ask.expires_in)).await {
                Ok(ClientResult::ElicitResult(answer)) => {
                    approval_form::parse_approval(&ask, Extent::Session, &answer)
                }
                _ => unanswered(&ask, "the client did not answer"),
            })
        })
    }
}

impl Inquiries for LegacyClient {
    fn can(&self, kind: InquiryKind) -> bool {
        self.can.supports(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> Inquiring {
        Box::pin(async move {
            self.can.check_supported(&inquiries).map_err(unsupported_error)?;
            let mut answers = Vec::with_capacity(inquiries.len());
            for (_, inquiry) in &inquiries {
                answers.push(self.send_inquiry(inquiry).await?);
            }
            Ok(answers)
        })
    }
}
