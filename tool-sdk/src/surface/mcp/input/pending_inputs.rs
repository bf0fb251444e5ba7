//! Where the questions of a tool wait until a modern peer repeats its request with the answers.
//!
//! **Invariant:** a tool gets all of its answers or none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{InputCapabilities, collect_answers, to_input_requests, unsupported_error};
use crate::context::{Inquiries, Inquiring, Inquiry, InquiryKind};
use crate::error::ToolError;

/// What a modern request lends its call.
pub(in super::super) struct PendingInputs {
    can: InputCapabilities,
    /// Answers that came with the request, to questions that are yet to come.
    early_answers: InputResponses,
    /// What the call needed and the peer did not declare.
    lacking: Arc<Mutex<Option<InquiryKind>>>,
    sender: mpsc::UnboundedSender<PendingQuestions>,
}

/// The other end of a [`PendingInputs`].
pub(in super::super) struct QuestionReceiver {
    lacking: Arc<Mutex<Option<InquiryKind>>>,
    receiver: mpsc::UnboundedReceiver<PendingQuestions>,
}

pub(in super::super) fn question_channel(
    can: InputCapabilities,
    given: InputResponses,
) -> (PendingInputs, QuestionReceiver) {
    let (sender, wants) = mpsc::unbounded_channel();
    let lacking = Arc::default();
    let desk = PendingInputs { can, early_answers: given, lacking: Arc::clone(&lacking), sender };
    (desk, QuestionReceiver { lacking, receiver: wants })
}

impl QuestionReceiver {
    pub(in super::super) async fn recv(&mut self) -> Option<PendingQuestions> {
        self.receiver.recv().await
    }

    /// What the peer would have to be able to do, where that is why the call failed. A tool may
    /// have gone on without it, and failed for a reason of its own.
    pub(in super::super) fn missing_capability(&self, failed: &ToolError) -> Option<InquiryKind> {
        let lacking = *self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.filter(|kind| unsupported_error(*kind).to_string() == failed.to_string())
    }
}

impl Inquiries for PendingInputs {
    fn can(&self, kind: InquiryKind) -> bool {
        self.can.supports(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> Inquiring {
        Box::pin(async move {
            self.can.check_supported(&inquiries).map_err(|kind| {
                *self.lacking.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
                unsupported_error(kind)
            })?;
            if let Some(answers) = collect_answers(&inquiries, &self.early_answers) {
                return Ok(answers);
            }
            let names: BTreeMap<_, _> = inquiries.iter().map(|(name, it)| (name, it)).collect();
            if names.len() != inquiries.len() {
                return Err(ToolError::internal("two questions at once have the same name"));
            }
            let (answered, answers) = oneshot::channel();
            let wanted = PendingQuestions { inquiries, answered };
            let _ = self.sender.send(wanted);
            answers.await.map_err(|_| ToolError::unavailable("the client did not answer"))
        })
    }
}

/// Questions of one tool that wait for their answers.
pub(in super::super) struct PendingQuestions {
    inquiries: Vec<(String, Inquiry)>,
    answered: oneshot::Sender<Vec<Value>>,
}

impl PendingQuestions {
    /// What the peer is told.
    pub(in super::super) fn to_input_requests(&self) -> Result<InputRequests, ErrorData> {
        to_input_requests(&self.inquiries)
    }

    /// Gives the tool its answers when all of them are there; gives itself back when not.
    pub(in super::super) fn deliver_answers(self, given: &InputResponses) -> Result<(), Self> {
        match collect_answers(&self.inquiries, given) {
            Some(answers) => {
                // A tool that waits no longer needs none.
                let _ = self.answered.send(answers);
                Ok(())
            }
            None => Err(self),
        }
    }
}
