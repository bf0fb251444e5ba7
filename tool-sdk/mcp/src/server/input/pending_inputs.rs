//! Questions of a running tool that wait until a modern client repeats its request with the
//! answers.
//!
//! **Invariant:** a tool gets all of its answers or none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tool_sdk_core::{Inquiry, InquiryFuture, InquiryHandler, InquiryKind, ToolError};

use super::{
    InputCapabilities, collect_answers, is_valid_answer, to_input_requests, unsupported_error,
};

/// The session's side: receives the questions of the tool.
pub(crate) struct PendingInputs {
    capabilities: InputCapabilities,
    /// Answers that came with the request, before their questions were asked.
    early_answers: InputResponses,
    /// The capability that the call needed and the client did not declare.
    missing: Arc<Mutex<Option<InquiryKind>>>,
    sender: mpsc::UnboundedSender<PendingQuestions>,
}

/// The request handler's side of [`PendingInputs`].
pub(crate) struct QuestionReceiver {
    missing: Arc<Mutex<Option<InquiryKind>>>,
    receiver: mpsc::UnboundedReceiver<PendingQuestions>,
}

pub(crate) fn question_channel(
    can: InputCapabilities,
    given: InputResponses,
) -> (PendingInputs, QuestionReceiver) {
    let (sender, wants) = mpsc::unbounded_channel();
    let lacking = Arc::default();
    let desk = PendingInputs {
        capabilities: can,
        early_answers: given,
        missing: Arc::clone(&lacking),
        sender,
    };
    (desk, QuestionReceiver { missing: lacking, receiver: wants })
}

impl QuestionReceiver {
    pub(crate) async fn recv(&mut self) -> Option<PendingQuestions> {
        self.receiver.recv().await
    }

    /// Returns the capability that the client lacks if the call failed for that reason. A tool may
    /// have continued without the answer and failed for another reason.
    pub(crate) fn missing_capability(&self, failed: &ToolError) -> Option<InquiryKind> {
        let lacking = *self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.filter(|kind| unsupported_error(*kind).to_string() == failed.to_string())
    }
}

impl InquiryHandler for PendingInputs {
    fn supports(&self, kind: InquiryKind) -> bool {
        self.capabilities.supports(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> InquiryFuture {
        Box::pin(async move {
            self.capabilities.check_supported(&inquiries).map_err(|kind| {
                *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
                unsupported_error(kind)
            })?;
            if let Some(answers) = collect_answers(&inquiries, &self.early_answers) {
                return Ok(answers);
            }
            let names: BTreeMap<_, _> = inquiries.iter().map(|(name, it)| (name, it)).collect();
            if names.len() != inquiries.len() {
                return Err(ToolError::internal("two questions of one request have the same name"));
            }
            let (answered, answers) = oneshot::channel();
            let wanted = PendingQuestions { inquiries, answered };
            let _ = self.sender.send(wanted);
            answers.await.map_err(|_| ToolError::unavailable("the client did not answer"))
        })
    }
}

/// Questions that a tool asked at once and that are not answered yet.
pub(crate) struct PendingQuestions {
    inquiries: Vec<(String, Inquiry)>,
    answered: oneshot::Sender<Vec<Value>>,
}

impl PendingQuestions {
    /// Returns the questions as protocol requests.
    pub(crate) fn to_input_requests(&self) -> Result<InputRequests, ErrorData> {
        to_input_requests(&self.inquiries)
    }

    /// Returns true if the tool no longer waits for answers.
    pub(crate) fn is_settled(&self) -> bool {
        self.answered.is_closed()
    }

    /// Returns true if this answers the question of this name.
    pub(crate) fn accepts(&self, name: &str, answer: &Value) -> bool {
        let mut asked = self.inquiries.iter().filter(|(known, _)| known == name);
        asked.any(|(_, inquiry)| is_valid_answer(inquiry, answer))
    }

    /// Delivers the answers to the tool if all of them are given. Returns itself otherwise.
    pub(crate) fn deliver_answers(self, given: &InputResponses) -> Result<(), Self> {
        match collect_answers(&self.inquiries, given) {
            Some(answers) => {
                // The tool may have stopped waiting.
                let _ = self.answered.send(answers);
                Ok(())
            }
            None => Err(self),
        }
    }
}
