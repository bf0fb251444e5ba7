//! What a call wants from its peer, in the protocol's words, and what counts as an answer.
//!
//! A legacy peer is asked while the call runs, see [`super::user`]. A modern peer is told
//! with the answer to its request: what a tool asks goes to a [`Desk`], where it waits, see
//! [`super::parked`]; what a prompt asks is only looked at, see [`Peek`].
//!
//! **Invariant:** an answer that does not have the form of one is none.

// Sampling and roots are on their way out of the protocol; peers of today still have them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

mod input_probe;
mod pending_inputs;

use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageResult, ElicitRequest, ElicitResult,
    ErrorData, InputRequest, InputRequests, InputResponses, ListRootsRequest, ListRootsResult,
};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) use self::input_probe::InputProbe;
pub(super) use self::pending_inputs::{
    PendingInputs, PendingQuestions, QuestionReceiver, question_channel,
};
use crate::context::{Inquiry, InquiryKind};
use crate::error::ToolError;

/// What a peer says that it can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InputCapabilities {
    pub(super) form: bool,
    sample: bool,
    roots: bool,
}

impl InputCapabilities {
    pub(super) fn from_client(can: Option<ClientCapabilities>) -> Self {
        let Some(can) = can else { return Self::default() };
        Self {
            // A peer that names no kind of question means forms.
            form: can.elicitation.is_some_and(|can| can.form.is_some() || can.url.is_none()),
            sample: can.sampling.is_some(),
            roots: can.roots.is_some(),
        }
    }

    pub(super) const fn supports(self, kind: InquiryKind) -> bool {
        match kind {
            InquiryKind::Form => self.form,
            InquiryKind::Sample => self.sample,
            InquiryKind::Roots => self.roots,
        }
    }

    /// Whether the peer can answer all of these; gives the first that it cannot.
    pub(super) fn check_supported(
        self,
        inquiries: &[(String, Inquiry)],
    ) -> Result<(), InquiryKind> {
        let mut kinds = inquiries.iter().map(|(_, inquiry)| inquiry.kind());
        kinds.find(|kind| !self.supports(*kind)).map_or(Ok(()), Err)
    }
}

/// What a tool is told when its peer cannot answer.
pub(super) fn unsupported_error(kind: InquiryKind) -> ToolError {
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
pub(super) fn missing_capability_error(kind: InquiryKind) -> ErrorData {
    let lacking = match kind {
        InquiryKind::Form => json!({ "elicitation": {} }),
        InquiryKind::Sample => json!({ "sampling": {} }),
        InquiryKind::Roots => json!({ "roots": {} }),
    };
    ErrorData::missing_required_client_capability(
        ClientCapabilities::deserialize(&lacking).unwrap_or_default(),
    )
}

/// An inquiry as a request to the peer.
pub(super) fn to_input_request(inquiry: &Inquiry) -> Result<InputRequest, ToolError> {
    Ok(match inquiry.kind() {
        InquiryKind::Form => InputRequest::Elicitation(ElicitRequest::new(parse_inquiry(inquiry)?)),
        InquiryKind::Sample => {
            InputRequest::CreateMessage(CreateMessageRequest::new(parse_inquiry(inquiry)?))
        }
        InquiryKind::Roots => InputRequest::ListRoots(ListRootsRequest::default()),
    })
}

/// What is asked, as the protocol has it.
pub(super) fn parse_inquiry<T: DeserializeOwned>(inquiry: &Inquiry) -> Result<T, ToolError> {
    T::deserialize(inquiry.params()).map_err(|error| {
        ToolError::internal(format_args!("the tool asks what cannot be asked: {error}"))
    })
}

/// Whether this answers the inquiry.
fn is_valid_answer(inquiry: &Inquiry, answer: &Value) -> bool {
    fn is<T: DeserializeOwned>(answer: &Value) -> bool {
        T::deserialize(answer).is_ok()
    }
    match inquiry.kind() {
        InquiryKind::Form => is::<ElicitResult>(answer),
        InquiryKind::Sample => is::<CreateMessageResult>(answer),
        InquiryKind::Roots => is::<ListRootsResult>(answer),
    }
}

fn to_input_requests(inquiries: &[(String, Inquiry)]) -> Result<InputRequests, ErrorData> {
    let named =
        |(name, inquiry): &(String, Inquiry)| Ok((name.clone(), to_input_request(inquiry)?));
    inquiries
        .iter()
        .map(named)
        .collect::<Result<_, ToolError>>()
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn collect_answers(inquiries: &[(String, Inquiry)], given: &InputResponses) -> Option<Vec<Value>> {
    let answer = |(name, inquiry): &(String, Inquiry)| {
        given.get(name).filter(|answer| is_valid_answer(inquiry, answer)).cloned()
    };
    inquiries.iter().map(answer).collect()
}
