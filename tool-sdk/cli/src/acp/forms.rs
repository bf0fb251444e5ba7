//! Forms of tools, for the user of the editor.
//!
//! The parameters of a form are those of the Model Context Protocol, from which the Agent Client
//! Protocol has its forms.
//!
//! **Invariant:** an answer is data and no approval.

use std::sync::Arc;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{CreateElicitationRequest, SessionId};
use serde_json::{Value, json};
use tool_sdk_core::{Inquiry, InquiryFuture, InquiryHandler, InquiryKind, ToolError};

/// Shows the forms of tools in the editor.
pub(super) struct EditorForms {
    pub(super) connection: ConnectionTo<Client>,
    pub(super) session: SessionId,
}

impl EditorForms {
    async fn show(&self, inquiry: &Inquiry) -> Result<Value, ToolError> {
        if inquiry.kind() != InquiryKind::Form {
            return Err(ToolError::unavailable("the editor only shows forms"));
        }
        let unshown = |problem: &str| {
            ToolError::unavailable(format_args!("the editor cannot show the form: {problem}"))
        };
        let mut params = inquiry.params().clone();
        params["sessionId"] = json!(self.session);
        let request: CreateElicitationRequest =
            serde_json::from_value(params).map_err(|error| unshown(&error.to_string()))?;
        let answer = self.connection.send_request(request).block_task().await;
        let answer = answer.map_err(|error| unshown(&error.message))?;
        serde_json::to_value(answer).map_err(|error| unshown(&error.to_string()))
    }
}

impl InquiryHandler for EditorForms {
    fn supports(&self, kind: InquiryKind) -> bool {
        kind == InquiryKind::Form
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(inquiries.len());
            for (_, inquiry) in &inquiries {
                answers.push(self.show(inquiry).await?);
            }
            Ok(answers)
        })
    }
}
