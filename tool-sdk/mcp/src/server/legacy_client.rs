//! Sends requests to a legacy client while its call runs: approvals and forms for its user,
//! sampling by its model, and its roots.

// Sampling and roots are deprecated in the protocol, but current clients still have them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
    ElicitResult, ListRootsRequest, ServerRequest,
};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::timeout;
use tool_sdk_core::{
    ApprovalRequest, ApprovalResponse, Approver, GrantScope, Inquiry, InquiryFuture,
    InquiryHandler, InquiryKind, Session, ToolError, internal::unanswered_response,
};

use super::approval_form;
use super::input::{InputCapabilities, is_valid_answer, parse_inquiry, unsupported_error};
use super::message_sink::MessageSink;
use super::outgoing_requests::OutgoingRequests;

/// A legacy client that can be asked on behalf of one of its requests.
#[derive(Clone)]
pub(super) struct LegacyClient {
    outgoing: Arc<OutgoingRequests>,
    /// Over HTTP, questions are sent on the stream of the request that causes them.
    sink: MessageSink,
    capabilities: InputCapabilities,
    /// Whether the client's user approves calls.
    can_approve: bool,
}

impl LegacyClient {
    pub(super) fn new(
        outgoing: Arc<OutgoingRequests>,
        sink: MessageSink,
        capabilities: InputCapabilities,
        can_approve: bool,
    ) -> Self {
        Self { outgoing, sink, capabilities, can_approve }
    }

    /// Returns the session with this client as its approver and its source of answers.
    pub(super) fn attach_to(self, session: Session) -> Session {
        let client = Arc::new(self);
        let session = session.with_inquiry_handler(Arc::clone(&client) as _);
        if client.can_approve { session.with_shared_approver(client) } else { session }
    }

    async fn send_inquiry(&self, inquiry: &Inquiry) -> Result<Value, ToolError> {
        let request = match inquiry.kind() {
            InquiryKind::Form | InquiryKind::Url => {
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
        let answer = self.outgoing.send_request(&self.sink, request).await;
        let answer = answer.map_err(|_| unanswered())?;
        let answer = answer.map_err(|error| unanswered().source(error))?;
        match is_valid_answer(inquiry, &answer) {
            true => Ok(answer),
            false => Err(unanswered()),
        }
    }

    /// Shows the approval form. Returns `None` if the client does not answer it in time.
    async fn send_approval_form(
        &self,
        ask: &ApprovalRequest,
        form: ElicitRequestParams,
    ) -> Option<ElicitResult> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
        let answer = self.outgoing.send_request(&self.sink, request);
        let answer = timeout(ask.expires_in, answer).await.ok()?.ok()?.ok()?;
        ElicitResult::deserialize(&answer).ok()
    }
}

/// A client that fails to answer denies the call.
impl Approver for LegacyClient {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let Ok(form) = approval_form::build_approval_form(&ask, GrantScope::Session) else {
                let reason = "the approval form cannot be sent to the client";
                return Some(unanswered_response(&ask, reason));
            };
            Some(match client.send_approval_form(&ask, form).await {
                Some(answer) => approval_form::parse_approval(&ask, GrantScope::Session, &answer),
                None => unanswered_response(&ask, "the client did not answer"),
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
