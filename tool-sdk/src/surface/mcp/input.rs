//! What a call wants from its peer, in the protocol's words, and what counts as an answer.
//!
//! A legacy peer is asked while the call runs, see [`super::user`]. A modern peer is told
//! with the answer to its request, see [`super::parked`]; its questions come here over a
//! channel.
//!
//! **Invariant:** an answer that does not have the form of one is none.

// Sampling and roots are on their way out of the protocol; peers of today still have them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageResult, ElicitRequest, ElicitResult,
    ErrorData, InputRequest, InputRequests, InputResponses, ListRootsRequest, ListRootsResult,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::context::{Inquiries, Inquiring, Inquiry, InquiryKind};
use crate::error::ToolError;

/// What a peer says that it can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    pub(super) form: bool,
    sample: bool,
    roots: bool,
}

impl Abilities {
    pub(super) fn of(can: Option<ClientCapabilities>) -> Self {
        let Some(can) = can else { return Self::default() };
        Self {
            // A peer that names no kind of question means forms.
            form: can.elicitation.is_some_and(|can| can.form.is_some() || can.url.is_none()),
            sample: can.sampling.is_some(),
            roots: can.roots.is_some(),
        }
    }

    pub(super) const fn can(self, kind: InquiryKind) -> bool {
        match kind {
            InquiryKind::Form => self.form,
            InquiryKind::Sample => self.sample,
            InquiryKind::Roots => self.roots,
        }
    }

    /// Whether the peer can answer all of these; gives the first that it cannot.
    pub(super) fn check(self, inquiries: &[(String, Inquiry)]) -> Result<(), InquiryKind> {
        let mut kinds = inquiries.iter().map(|(_, inquiry)| inquiry.kind());
        kinds.find(|kind| !self.can(*kind)).map_or(Ok(()), Err)
    }
}

/// What a tool is told when its peer cannot answer.
pub(super) fn cannot(kind: InquiryKind) -> ToolError {
    ToolError::unavailable(format_args!(
        "this client {}",
        match kind {
            InquiryKind::Form => "cannot show forms (`elicitation`)",
            InquiryKind::Sample => "lends no model (`sampling`)",
            InquiryKind::Roots => "tells no folders (`roots`)",
        }
    ))
    .hint("give what the tool asks for as an argument, or use another client")
}

/// What a modern peer is told when a call needs what it did not declare.
pub(super) fn lacks(kind: InquiryKind) -> ErrorData {
    let lacking = match kind {
        InquiryKind::Form => json!({ "elicitation": {} }),
        InquiryKind::Sample => json!({ "sampling": {} }),
        InquiryKind::Roots => json!({ "roots": {} }),
    };
    ErrorData::missing_required_client_capability(
        serde_json::from_value(lacking).unwrap_or_default(),
    )
}

/// An inquiry as a request to the peer.
pub(super) fn request(inquiry: &Inquiry) -> Result<InputRequest, ToolError> {
    Ok(match inquiry.kind() {
        InquiryKind::Form => InputRequest::Elicitation(ElicitRequest::new(params(inquiry)?)),
        InquiryKind::Sample => {
            InputRequest::CreateMessage(CreateMessageRequest::new(params(inquiry)?))
        }
        InquiryKind::Roots => InputRequest::ListRoots(ListRootsRequest::default()),
    })
}

/// What is asked, as the protocol has it.
pub(super) fn params<T: DeserializeOwned>(inquiry: &Inquiry) -> Result<T, ToolError> {
    serde_json::from_value(inquiry.params().clone()).map_err(|error| {
        ToolError::internal(format_args!("the tool asks what cannot be asked: {error}"))
    })
}

/// Whether this answers the inquiry.
fn answers(inquiry: &Inquiry, answer: &Value) -> bool {
    fn is<T: DeserializeOwned>(answer: &Value) -> bool {
        T::deserialize(answer).is_ok()
    }
    match inquiry.kind() {
        InquiryKind::Form => is::<ElicitResult>(answer),
        InquiryKind::Sample => is::<CreateMessageResult>(answer),
        InquiryKind::Roots => is::<ListRootsResult>(answer),
    }
}

/// Questions of one tool that wait for their answers.
pub(super) struct Wanted {
    inquiries: Vec<(String, Inquiry)>,
    answered: oneshot::Sender<Vec<Value>>,
}

impl Wanted {
    /// What the peer is told.
    pub(super) fn requests(&self) -> Result<InputRequests, ErrorData> {
        requests(&self.inquiries)
    }

    /// Gives the tool its answers when all of them are there; gives itself back when not.
    pub(super) fn answer(self, given: &InputResponses) -> Result<(), Self> {
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

fn requests(inquiries: &[(String, Inquiry)]) -> Result<InputRequests, ErrorData> {
    let named = |(name, inquiry): &(String, Inquiry)| Ok((name.clone(), request(inquiry)?));
    inquiries
        .iter()
        .map(named)
        .collect::<Result<_, ToolError>>()
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn all(inquiries: &[(String, Inquiry)], given: &InputResponses) -> Option<Vec<Value>> {
    let answer = |(name, inquiry): &(String, Inquiry)| {
        given.get(name).filter(|answer| answers(inquiry, answer)).cloned()
    };
    inquiries.iter().map(answer).collect()
}

/// What a modern request lends its call.
pub(super) struct Desk {
    can: Abilities,
    /// Answers that came with the request, to questions that are yet to come.
    given: InputResponses,
    /// What the call needed and the peer did not declare.
    lacking: Arc<Mutex<Option<InquiryKind>>>,
    wants: mpsc::UnboundedSender<Wanted>,
}

/// The other end of a [`Desk`].
pub(super) struct Inbox {
    lacking: Arc<Mutex<Option<InquiryKind>>>,
    wants: mpsc::UnboundedReceiver<Wanted>,
}

pub(super) fn desk(can: Abilities, given: InputResponses) -> (Desk, Inbox) {
    let (sender, wants) = mpsc::unbounded_channel();
    let lacking = Arc::default();
    let desk = Desk { can, given, lacking: Arc::clone(&lacking), wants: sender };
    (desk, Inbox { lacking, wants })
}

impl Inbox {
    pub(super) async fn recv(&mut self) -> Option<Wanted> {
        self.wants.recv().await
    }

    pub(super) fn lacking(&self) -> Option<InquiryKind> {
        *self.lacking.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What a modern request lends a prompt, which is made again when its questions are
/// answered.
pub(super) struct Peek {
    can: Abilities,
    given: InputResponses,
    asked: Mutex<Option<Asked>>,
}

enum Asked {
    Wanted(Vec<(String, Inquiry)>),
    Lacking(InquiryKind),
}

impl Peek {
    pub(super) fn new(can: Abilities, given: InputResponses) -> Self {
        Self { can, given, asked: Mutex::default() }
    }

    /// What has to be answered first.
    pub(super) fn wanted(&self) -> Result<Option<InputRequests>, ErrorData> {
        match &*self.asked.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Asked::Wanted(inquiries)) => requests(inquiries).map(Some),
            _ => Ok(None),
        }
    }

    /// What the peer would have to be able to do.
    pub(super) fn lacking(&self) -> Option<InquiryKind> {
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
