//! What a client gets for a call: its result or its problem, once for every way of asking.
//!
//! **Invariant:** the answer to a request, the last event of a stream, the item of a batch and the
//! record in the history are all the same [`CallReply`].

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tool_sdk_core::{
    ArgumentNote, Attachment, AttachmentData, CallStatus, ErrorKind, Outcome, Output, Truncation,
};

use super::client_profile::ToolRendering;
use super::problem::ProblemDetails;

/// The header with the id of the call.
pub(super) const CALL_ID: HeaderName = HeaderName::from_static("call-id");

/// The result of a call as JSON.
#[derive(Debug, Serialize)]
pub(super) struct CallResponse<'o> {
    call: String,
    /// What a model reads.
    text: &'o str,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'o str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'o Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display: Option<&'o Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<AttachmentBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncation: Option<&'o Truncation>,
    #[serde(skip_serializing_if = "<[ArgumentNote]>::is_empty")]
    notes: &'o [ArgumentNote],
    /// Why the model's turn should end with this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    halt_reason: Option<&'o str>,
}

impl<'o> CallResponse<'o> {
    fn new(outcome: &'o Outcome, output: &'o Output) -> Self {
        Self {
            call: outcome.call.to_string(),
            text: output.as_text(),
            structured: output.to_structured(),
            title: output.title_text(),
            metadata: output.metadata_map(),
            display: output.display_data(),
            attachments: AttachmentBody::all(output),
            truncation: outcome.truncation(),
            notes: outcome.notes(),
            halt_reason: outcome.halt_reason(),
        }
    }
}

/// An attachment as JSON: its content as base64, or its location.
#[derive(Debug, Serialize)]
pub(super) struct AttachmentBody {
    mime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
}

impl AttachmentBody {
    /// Returns the attachments of an output.
    pub(super) fn all(output: &Output) -> Vec<Self> {
        output.attachments().iter().map(Self::new).collect()
    }

    fn new(attachment: &Attachment) -> Self {
        let (base64, uri) = match &attachment.data {
            AttachmentData::Bytes(bytes) => {
                (Some(STANDARD.encode(bytes)), attachment.origin.clone())
            }
            AttachmentData::Uri(uri) => (None, Some(uri.clone())),
        };
        Self {
            mime: attachment.mime.clone(),
            name: attachment.name.clone(),
            title: attachment.title.clone(),
            description: attachment.description.clone(),
            base64,
            uri,
        }
    }
}

/// The final answer about a call, as often as it is sent.
#[derive(Debug)]
pub(super) struct CallReply {
    pub(super) call: String,
    pub(super) status: StatusCode,
    pub(super) call_status: CallStatus,
    /// The JSON text of the result or the problem.
    pub(super) body: String,
}

impl CallReply {
    /// Renders the outcome of a call of `tool`.
    pub(super) fn new(outcome: &Outcome, tool: &str, rendering: Option<&ToolRendering>) -> Self {
        let call = outcome.call.to_string();
        match &outcome.result {
            Ok(output) => {
                let response = CallResponse::new(outcome, output);
                let body = match rendering {
                    None => serde_json::to_string(&response).unwrap_or_default(),
                    Some(rendering) => {
                        let mut body = serde_json::to_value(&response).unwrap_or_default();
                        rendering.render_result(&mut body);
                        body.to_string()
                    }
                };
                let (status, call_status) = (StatusCode::OK, CallStatus::Completed);
                Self { call, status, call_status, body }
            }
            Err(error) => {
                let call_status = match error.kind() {
                    ErrorKind::Timeout => CallStatus::TimedOut,
                    ErrorKind::Aborted => CallStatus::Aborted,
                    _ => CallStatus::Failed,
                };
                let problem = ProblemDetails::from_error(error).with_call(&call, tool);
                Self { call, status: problem.status(), call_status, body: problem.to_json() }
            }
        }
    }

    /// Combines the replies to the calls of a batch.
    pub(super) fn of_batch(id: String, replies: &[Self]) -> Self {
        let item = |reply: &Self| {
            let key = if reply.is_result() { "result" } else { "problem" };
            let (call, status) = (&reply.call, reply.status.as_u16());
            json!({ "call": call, "status": status, key: reply.to_value() })
        };
        let results: Vec<Value> = replies.iter().map(item).collect();
        let body = json!({ "batch": id, "results": results }).to_string();
        Self { call: id, status: StatusCode::OK, call_status: CallStatus::Completed, body }
    }

    /// Whether it is a result, and not a problem.
    pub(super) fn is_result(&self) -> bool {
        self.call_status == CallStatus::Completed
    }

    /// Returns it as a JSON value.
    pub(super) fn to_value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns it as the response to a request.
    pub(super) fn to_response(&self) -> Response {
        let mime = match self.is_result() {
            true => "application/json",
            false => "application/problem+json",
        };
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(mime)),
            (CALL_ID, HeaderValue::try_from(&self.call).unwrap_or(HeaderValue::from_static(""))),
        ];
        (self.status, headers, self.body.clone()).into_response()
    }
}
