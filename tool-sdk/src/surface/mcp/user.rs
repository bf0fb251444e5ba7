//! The user, the model and the folders of a legacy peer, which is asked while the call runs.

// Sampling and roots are on their way out of the protocol; peers of today still have them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{CreateMessageRequestParams, ElicitRequestParams};
use rmcp::service::{Peer, RoleServer, ServiceError};
use serde::Serialize;
use serde_json::Value;

use super::ask::{self, Reach};
use super::input::{Abilities, cannot, params};
use crate::context::{Inquiries, Inquiring, Inquiry, InquiryKind};
use crate::error::ToolError;
use crate::permission::{Approver, Ask, Reply};

/// Whoever sits behind a legacy peer.
#[derive(Clone)]
pub(super) struct User {
    peer: Peer<RoleServer>,
    can: Abilities,
}

impl User {
    pub(super) fn of(peer: Peer<RoleServer>, can: Abilities) -> Self {
        Self { peer, can }
    }

    async fn ask_one(&self, inquiry: &Inquiry) -> Result<Value, ToolError> {
        match inquiry.kind() {
            InquiryKind::Form => {
                let form: ElicitRequestParams = params(inquiry)?;
                value(self.peer.create_elicitation(form).await)
            }
            InquiryKind::Sample => {
                let prompt: CreateMessageRequestParams = params(inquiry)?;
                value(self.peer.create_message(prompt).await)
            }
            InquiryKind::Roots => value(self.peer.list_roots().await),
        }
    }
}

fn value<T: Serialize>(answer: Result<T, ServiceError>) -> Result<Value, ToolError> {
    let unanswered = || ToolError::unavailable("the client did not answer");
    let answer = answer.map_err(|error| unanswered().source(error))?;
    serde_json::to_value(answer).map_err(|error| unanswered().source(error))
}

/// A peer that cannot answer has said no.
impl Approver for User {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        let peer = self.peer.clone();
        Box::pin(async move {
            let Ok(question) = ask::question(&ask, Reach::Session) else {
                return Some(Reply::Reject);
            };
            let asked = peer.create_elicitation_with_timeout(question, Some(ask.expires_in));
            Some(match asked.await {
                Ok(answer) => ask::reply(&ask, Reach::Session, &answer),
                Err(_) => Reply::Reject,
            })
        })
    }
}

impl Inquiries for User {
    fn can(&self, kind: InquiryKind) -> bool {
        self.can.can(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> Inquiring {
        Box::pin(async move {
            if let Some(kind) = self.can.lacking(&inquiries) {
                return Err(cannot(kind));
            }
            let mut answers = Vec::with_capacity(inquiries.len());
            for (_, inquiry) in &inquiries {
                answers.push(self.ask_one(inquiry).await?);
            }
            Ok(answers)
        })
    }
}
