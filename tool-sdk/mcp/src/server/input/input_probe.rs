//! Collects the questions of a prompt for a modern client.
//!
//! A prompt has no side effects, so nothing is suspended: it is built again once the answers are
//! there.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, InputRequests, InputResponses};
use tool_sdk_core::{Inquiry, InquiryFuture, InquiryHandler, InquiryKind, ToolError};

use super::{InputCapabilities, collect_answers, to_input_requests, unsupported_error};

/// Answers the questions of a prompt from the request, or records what is missing.
pub(crate) struct InputProbe {
    capabilities: InputCapabilities,
    answers: InputResponses,
    unanswered: Mutex<Option<Unanswered>>,
}

enum Unanswered {
    Questions(Vec<(String, Inquiry)>),
    MissingCapability(InquiryKind),
}

impl InputProbe {
    pub(crate) fn new(capabilities: InputCapabilities, answers: InputResponses) -> Self {
        Self { capabilities, answers, unanswered: Mutex::default() }
    }

    /// Returns the questions that must be answered first.
    pub(crate) fn required_input(&self) -> Result<Option<InputRequests>, ErrorData> {
        match &*self.unanswered.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Unanswered::Questions(inquiries)) => to_input_requests(inquiries).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the capability that the client lacks.
    pub(crate) fn missing_capability(&self) -> Option<InquiryKind> {
        match &*self.unanswered.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Unanswered::MissingCapability(kind)) => Some(*kind),
            _ => None,
        }
    }
}

impl InquiryHandler for InputProbe {
    fn supports(&self, kind: InquiryKind) -> bool {
        self.capabilities.supports(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move {
            if let Some(answers) = collect_answers(&inquiries, &self.answers) {
                return Ok(answers);
            }
            let (asked, error) = match self.capabilities.check_supported(&inquiries) {
                Err(kind) => (Unanswered::MissingCapability(kind), unsupported_error(kind)),
                Ok(()) => (
                    Unanswered::Questions(inquiries),
                    ToolError::unavailable("the client has not answered yet"),
                ),
            };
            *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
            Err(error)
        })
    }
}
