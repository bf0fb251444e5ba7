//! What a prompt asks of a modern peer. It is made again when the answers are there, so that
//! nothing has to wait.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, InputRequests, InputResponses};

use super::{Abilities, all, cannot, requests};
use crate::context::{Inquiries, Inquiring, Inquiry, InquiryKind};
use crate::error::ToolError;

/// What a modern request lends a prompt, which is made again when its questions are
/// answered.
pub(in super::super) struct Peek {
    can: Abilities,
    given: InputResponses,
    asked: Mutex<Option<Asked>>,
}

enum Asked {
    Wanted(Vec<(String, Inquiry)>),
    Lacking(InquiryKind),
}

impl Peek {
    pub(in super::super) fn new(can: Abilities, given: InputResponses) -> Self {
        Self { can, given, asked: Mutex::default() }
    }

    /// What has to be answered first.
    pub(in super::super) fn wanted(&self) -> Result<Option<InputRequests>, ErrorData> {
        match &*self.asked.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Asked::Wanted(inquiries)) => requests(inquiries).map(Some),
            _ => Ok(None),
        }
    }

    /// What the peer would have to be able to do.
    pub(in super::super) fn lacking(&self) -> Option<InquiryKind> {
        match &*self.asked.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Asked::Lacking(kind)) => Some(*kind),
            _ => None,
        }
    }
}

impl Inquiries for Peek {
    fn can(&self, kind: InquiryKind) -> bool {
        self.can.can(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> Inquiring {
        Box::pin(async move {
            if let Some(answers) = all(&inquiries, &self.given) {
                return Ok(answers);
            }
            let (asked, error) = match self.can.check(&inquiries) {
                Err(kind) => (Asked::Lacking(kind), cannot(kind)),
                Ok(()) => (
                    Asked::Wanted(inquiries),
                    ToolError::unavailable("the client has not answered yet"),
                ),
            };
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
            Err(error)
        })
    }
}
