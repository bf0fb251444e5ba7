//! Where the questions of a tool wait until a modern peer repeats its request with the answers.
//!
//! **Invariant:** a tool gets all of its answers or none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{Abilities, all, cannot, requests};
use crate::context::{Inquiries, Inquiring, Inquiry, InquiryKind};
use crate::error::ToolError;

/// What a modern request lends its call.
pub(in super::super) struct Desk {
    can: Abilities,
    /// Answers that came with the request, to questions that are yet to come.
    given: InputResponses,
    /// What the call needed and the peer did not declare.
    lacking: Arc<Mutex<Option<InquiryKind>>>,
    wants: mpsc::UnboundedSender<Wanted>,
}

/// The other end of a [`Desk`].
pub(in super::super) struct Inbox {
    lacking: Arc<Mutex<Option<InquiryKind>>>,
    wants: mpsc::UnboundedReceiver<Wanted>,
}

pub(in super::super) fn desk(can: Abilities, given: InputResponses) -> (Desk, Inbox) {
    let (sender, wants) = mpsc::unbounded_channel();
    let lacking = Arc::default();
    let desk = Desk { can, given, lacking: Arc::clone(&lacking), wants: sender };
    (desk, Inbox { lacking, wants })
}

impl Inbox {
    pub(in super::super) async fn recv(&mut self) -> Option<Wanted> {
        self.wants.recv().await
    }

    /// What the peer would have to be able to do, where that is why the call failed. A tool may
    /// have gone on without it, and failed for a reason of its own.
    pub(in super::super) fn lacking(&self, failed: &ToolError) -> Option<InquiryKind> {
        let lacking = *self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.filter(|kind| cannot(*kind).to_string() == failed.to_string())
    }
}

impl Inquiries for Desk {
    fn can(&self, kind: InquiryKind) -> bool {
        self.can.can(kind)
    }

    fn inquire(self: Arc<Self>, inquiries: Vec<(String, Inquiry)>) -> Inquiring {
        Box::pin(async move {
            self.can.check(&inquiries).map_err(|kind| {
                *self.lacking.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
                cannot(kind)
            })?;
            if let Some(answers) = all(&inquiries, &self.given) {
                return Ok(answers);
            }
            let names: BTreeMap<_, _> = inquiries.iter().map(|(name, it)| (name, it)).collect();
            if names.len() != inquiries.len() {
                return Err(ToolError::internal("two questions at once have the same name"));
            }
            let (answered, answers) = oneshot::channel();
            let wanted = Wanted { inquiries, answered };
            let _ = self.wants.send(wanted);
            answers.await.map_err(|_| ToolError::unavailable("the client did not answer"))
        })
    }
}

/// Questions of one tool that wait for their answers.
pub(in super::super) struct Wanted {
    inquiries: Vec<(String, Inquiry)>,
    answered: oneshot::Sender<Vec<Value>>,
}

impl Wanted {
    /// What the peer is told.
    pub(in super::super) fn requests(&self) -> Result<InputRequests, ErrorData> {
        requests(&self.inquiries)
    }

    /// Gives the tool its answers when all of them are there; gives itself back when not.
    pub(in super::super) fn answer(self, given: &InputResponses) -> Result<(), Self> {
        match all(&self.inquiries, given) {
            Some(answers) => {
                // A tool that waits no longer needs none.
                let _ = self.answered.send(answers);
                Ok(())
            }
            None => Err(self),
        }
    }
}
