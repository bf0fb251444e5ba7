//! Error responses: problem documents (RFC 9457) whose detail alone is useful to a model.

use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use tool_sdk_core::{ErrorKind, Fault, InvalidArgs, ToolError};

use super::response::AttachmentBody;

/// The prefix of the URIs that identify the types of problems; the rest is the category.
const TYPE_PREFIX: &str = "urn:tool-sdk:problem:";
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A problem document; as small as a pointer, because most results have none.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct ProblemDetails(Box<ProblemFields>);

#[derive(Debug, Serialize)]
struct ProblemFields {
    #[serde(rename = "type")]
    uri: String,
    title: &'static str,
    status: u16,
    /// What is wrong with the request, and what to send instead.
    detail: String,
    /// The message without the suggestion.
    error: String,
    category: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    /// The faults of invalid arguments, with JSON pointers into them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Fault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The structured output of the failed tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<AttachmentBody>,
    #[serde(skip)]
    header: Option<(HeaderName, HeaderValue)>,
}

impl ProblemDetails {
    /// Returns the problem of a request that never became a call.
    pub(super) fn new(
        status: StatusCode,
        category: &'static str,
        error: impl Into<String>,
    ) -> Self {
        let error = error.into();
        Self(Box::new(ProblemFields {
            uri: format!("{TYPE_PREFIX}{category}"),
            title: status.canonical_reason().unwrap_or("Client Closed Request"),
            status: status.as_u16(),
            detail: error.clone(),
            error,
            category,
            suggestion: None,
            faults: Vec::new(),
            call: None,
            tool: None,
            structured: None,
            attachments: Vec::new(),
            header: None,
        }))
    }

    /// Returns the problem of a request that a layer or an extractor refused.
    pub(super) fn from_status(status: StatusCode, error: &str) -> Self {
        let kind = match status {
            StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
            StatusCode::FORBIDDEN => ErrorKind::Denied,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
            status if status.is_server_error() => ErrorKind::Internal,
            _ => ErrorKind::InvalidArgs,
        };
        let fallback = status.canonical_reason().unwrap_or_default();
        Self::new(status, kind.as_str(), if error.is_empty() { fallback } else { error })
    }

    /// Returns the problem of a request that is not understood.
    pub(super) fn bad_request(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::InvalidArgs.as_str(), error)
    }

    /// Returns the problem of a request for something that does not exist, or is not the client's.
    pub(super) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::NotFound.as_str(), error)
    }

    /// Returns the problem of a request that comes too late.
    pub(super) fn conflict(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorKind::Conflict.as_str(), error)
    }

    /// Returns the problem of a server that has no room for the request at the moment.
    pub(super) fn busy(error: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let mut problem = Self::new(status, ErrorKind::Unavailable.as_str(), error);
        problem.0.header = Some((RETRY_AFTER, HeaderValue::from_static("1")));
        problem
    }

    /// Returns the problem of a wrong method; `allowed` are the right ones.
    pub(super) fn wrong_method(error: impl Into<String>, allowed: &'static str) -> Self {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let mut problem = Self::new(status, ErrorKind::InvalidArgs.as_str(), error);
        problem.0.header = Some((ALLOW, HeaderValue::from_static(allowed)));
        problem
    }

    /// Adds what the client should send instead.
    pub(super) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        let suggestion = suggestion.into();
        self.0.detail = format!("{}; {suggestion}", self.0.error);
        self.0.suggestion = Some(suggestion);
        self
    }

    /// Returns the problem of a failed call.
    pub(super) fn from_error(error: &ToolError) -> Self {
        let kind = error.kind();
        let status =
            StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let invalid =
            std::error::Error::source(error).and_then(|it| it.downcast_ref::<InvalidArgs>());
        let mut problem = Self::new(status, kind.as_str(), error.message());
        let fields = &mut *problem.0;
        fields.detail = error.to_string();
        fields.suggestion = error.suggestion().map(str::to_owned);
        fields.faults = invalid.map(|it| it.faults().to_vec()).unwrap_or_default();
        if let Some(output) = error.output() {
            fields.structured = output.to_structured();
            fields.attachments = AttachmentBody::all(output);
        }
        problem
    }

    /// Adds which call it is about.
    pub(super) fn with_call(mut self, call: &str, tool: &str) -> Self {
        (self.0.call, self.0.tool) = (Some(call.to_owned()), Some(tool.to_owned()));
        self
    }

    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the problem as JSON text.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        let type_header = [(CONTENT_TYPE, PROBLEM_JSON)];
        let mut response = (self.status(), type_header, self.to_json()).into_response();
        if let Some((name, value)) = self.0.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
