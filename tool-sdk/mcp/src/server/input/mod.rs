//! Input that a call needs from its client: questions as protocol requests, and validation of
//! answers.
//!
//! A legacy client is asked while the call runs, see [`super::legacy_client`]. A modern client gets
//! the questions as the result of its request: the call of a tool waits in [`PendingInputs`], see
//! [`super::suspended_calls`]; a prompt is only probed, see [`InputProbe`].
//!
//! **Invariant:** an answer that does not match its schema counts as missing.

// Sampling and roots are deprecated in the protocol, but current clients still have them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

mod input_probe;
mod pending_inputs;

use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageResult, ElicitRequest, ElicitResult,
    ErrorData, InputRequest, InputRequests, InputResponses, ListRootsRequest, ListRootsResult,
};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tool_sdk_core::{Inquiry, InquiryKind, ToolError};

pub(super) use self::input_probe::InputProbe;
pub(super) use self::pending_inputs::{PendingQuestions, QuestionReceiver, question_channel};

/// The kinds of questions that a client can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InputCapabilities {
    pub(super) form: bool,
    url: bool,
    sample: bool,
    roots: bool,
}

impl InputCapabilities {
    pub(super) fn from_client(can: Option<&ClientCapabilities>) -> Self {
        let Some(can) = can else { return Self::default() };
        let elicitation = can.elicitation.as_ref();
        Self {
            // A client that names no kind of elicitation supports forms.
            form: elicitation.is_some_and(|can| can.form.is_some() || can.url.is_none()),
            url: elicitation.is_some_and(|can| can.url.is_some()),
            sample: can.sampling.is_some(),
            roots: can.roots.is_some(),
        }
    }

    pub(super) const fn supports(self, kind: InquiryKind) -> bool {
        match kind {
            InquiryKind::Form => self.form,
            InquiryKind::Url => self.url,
            InquiryKind::Sample => self.sample,
            InquiryKind::Roots => self.roots,
        }
    }

    /// Returns true if the client can answer any question.
    pub(super) fn supports_any(self) -> bool {
        self != Self::default()
    }

    /// Returns the first kind that the client does not support as an error.
    pub(super) fn check_supported(
        self,
        inquiries: &[(String, Inquiry)],
    ) -> Result<(), InquiryKind> {
        let mut kinds = inquiries.iter().map(|(_, inquiry)| inquiry.kind());
        kinds.find(|kind| !self.supports(*kind)).map_or(Ok(()), Err)
    }
}

/// Returns the error for a tool whose client cannot answer.
pub(super) fn unsupported_error(kind: InquiryKind) -> ToolError {
    ToolError::unavailable(format_args!(
        "this client {}",
        match kind {
            InquiryKind::Form => "cannot show forms (`elicitation`)",
            InquiryKind::Url => "cannot show addresses (`elicitation.url`)",
            InquiryKind::Sample => "does not offer its model (`sampling`)",
            InquiryKind::Roots => "does not list its folders (`roots`)",
        }
    ))
    .hint("pass the value that the tool asks for as an argument, or use another client")
}

/// Returns the error for a modern client that did not declare a needed capability.
pub(super) fn missing_capability_error(kind: InquiryKind) -> ErrorData {
    let lacking = match kind {
        InquiryKind::Form => json!({ "elicitation": {} }),
        InquiryKind::Url => json!({ "elicitation": { "url": {} } }),
        InquiryKind::Sample => json!({ "sampling": {} }),
        InquiryKind::Roots => json!({ "roots": {} }),
    };
    ErrorData::missing_required_client_capability(
        ClientCapabilities::deserialize(&lacking).unwrap_or_default(),
    )
}

/// Converts an inquiry into a protocol request.
pub(super) fn to_input_request(inquiry: &Inquiry) -> Result<InputRequest, ToolError> {
    Ok(match inquiry.kind() {
        InquiryKind::Form | InquiryKind::Url => {
            InputRequest::Elicitation(ElicitRequest::new(parse_inquiry(inquiry)?))
        }
        InquiryKind::Sample => {
            InputRequest::CreateMessage(CreateMessageRequest::new(parse_inquiry(inquiry)?))
        }
        InquiryKind::Roots => InputRequest::ListRoots(ListRootsRequest::default()),
    })
}

/// Parses the parameters of an inquiry as a protocol type.
pub(super) fn parse_inquiry<T: DeserializeOwned>(inquiry: &Inquiry) -> Result<T, ToolError> {
    let mut params = inquiry.params().clone();
    if inquiry.kind() == InquiryKind::Url {
        // Versions before 2026-07-28 require an id, which nothing here refers to.
        let id = getrandom::u64().map_err(|error| ToolError::internal(error.to_string()))?;
        params["elicitationId"] = format!("{id:016x}").into();
    }
    T::deserialize(params).map_err(|error| {
        ToolError::internal(format_args!("the tool's question is invalid: {error}"))
    })
}

/// Returns true if the answer has the type that the inquiry expects.
pub(super) fn is_valid_answer(inquiry: &Inquiry, answer: &Value) -> bool {
    fn is<T: DeserializeOwned>(answer: &Value) -> bool {
        T::deserialize(answer).is_ok()
    }
    match inquiry.kind() {
        InquiryKind::Form | InquiryKind::Url => is::<ElicitResult>(answer),
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
