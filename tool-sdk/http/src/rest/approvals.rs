//! Shows and answers approval requests.
//!
//! **Invariant:** an answer counts once, for the request whose id and fingerprint it names, and only
//! from a client that may answer for the request's user.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tool_sdk_core::{ApprovalRequest, ApprovalResponse, ApprovalResponseError, ErrorKind};

use super::caller::ApprovalCaller;
use super::problem::ProblemDetails;
use super::request::JsonBody;
use super::service::RestService;
use crate::scopes::TokenScope;

/// The body of `GET /v1/approvals`.
#[derive(Debug, Serialize)]
pub(super) struct ApprovalList {
    /// Where the stream of events starts: what happens after the list was made follows there.
    last_event_id: String,
    /// The oldest request first.
    approvals: Vec<Arc<ApprovalRequest>>,
}

/// `GET /v1/approvals`
pub(super) async fn list_approvals(
    State(service): State<Arc<RestService>>,
    caller: ApprovalCaller,
) -> Json<ApprovalList> {
    // The place in the stream comes first, so that no request is missed between the two.
    let log = match caller.0.scopes.contains(TokenScope::Administration) {
        true => Arc::clone(service.events.full_log()),
        false => service.events.user_log(caller.0.user()),
    };
    let last_event_id = service.events.event_id(log.last_seq());
    Json(ApprovalList { last_event_id, approvals: service.open_approvals(&caller) })
}

/// `GET /v1/approvals/{id}`
pub(super) async fn get_approval(
    State(service): State<Arc<RestService>>,
    caller: ApprovalCaller,
    Path(id): Path<String>,
) -> Result<Json<Arc<ApprovalRequest>>, ProblemDetails> {
    service.find_approval(&id, &caller).map(Json)
}

/// The body of `POST /v1/approvals/{id}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalAnswerBody {
    reply: ReplyWord,
    /// The fingerprint of the call that was shown.
    fingerprint: String,
    /// Other arguments, all of them, for `once`.
    arguments: Option<Value>,
    /// The patterns to grant, for `session` and `always`.
    patterns: Option<Vec<String>>,
    /// The text for the model, for `reject`.
    feedback: Option<String>,
}

/// The exact words of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReplyWord {
    Once,
    Session,
    Always,
    Reject,
}

impl ApprovalAnswerBody {
    fn to_response(&self) -> Result<ApprovalResponse, ProblemDetails> {
        let grants = matches!(self.reply, ReplyWord::Session | ReplyWord::Always);
        if self.patterns.is_some() && !grants {
            let error = "`patterns` belongs to `session` and `always`";
            return Err(ProblemDetails::bad_request(error));
        }
        if self.arguments.is_some() && self.reply != ReplyWord::Once {
            return Err(ProblemDetails::bad_request("`arguments` belongs to `once`"));
        }
        if self.feedback.is_some() && self.reply != ReplyWord::Reject {
            return Err(ProblemDetails::bad_request("`feedback` belongs to `reject`"));
        }
        let patterns = || {
            let patterns = self.patterns.clone().unwrap_or_default();
            match patterns.iter().any(|it| !it.trim().is_empty()) {
                true => Ok(patterns),
                false => Err(ProblemDetails::bad_request("`patterns` names no pattern")
                    .suggest("send the `suggestions` of the request, or your version of them")),
            }
        };
        Ok(match self.reply {
            ReplyWord::Once => match &self.arguments {
                Some(arguments) => ApprovalResponse::Edited { arguments: arguments.clone() },
                None => ApprovalResponse::Once,
            },
            ReplyWord::Session => ApprovalResponse::Session { patterns: patterns()? },
            ReplyWord::Always => ApprovalResponse::Always { patterns: patterns()? },
            ReplyWord::Reject => match &self.feedback {
                Some(feedback) => ApprovalResponse::RejectWith { feedback: feedback.clone() },
                None => ApprovalResponse::Reject,
            },
        })
    }
}

/// `POST /v1/approvals/{id}`
pub(super) async fn answer_approval(
    State(service): State<Arc<RestService>>,
    caller: ApprovalCaller,
    Path(id): Path<String>,
    JsonBody(answer): JsonBody<ApprovalAnswerBody>,
) -> Result<StatusCode, ProblemDetails> {
    let response = answer.to_response()?;
    let request = service.find_approval(&id, &caller)?;
    let shown = &answer.fingerprint;
    let answered =
        service.pipeline.respond_as(&request.id, shown, response, caller.0.responder()).await;
    answered.map(|()| StatusCode::NO_CONTENT).map_err(|error| response_problem(&error))
}

impl RestService {
    /// Returns the open requests that the client may answer.
    fn open_approvals(&self, caller: &ApprovalCaller) -> Vec<Arc<ApprovalRequest>> {
        self.pipeline.pending_approvals_of(|session| caller.may_answer(session))
    }

    /// Returns an open request that the client may answer.
    fn find_approval(
        &self,
        id: &str,
        caller: &ApprovalCaller,
    ) -> Result<Arc<ApprovalRequest>, ProblemDetails> {
        let open = self.open_approvals(caller).into_iter().find(|it| it.id.as_str() == id);
        open.ok_or_else(|| match self.pipeline.was_approval_ended(&id.into()) {
            true => response_problem(&ApprovalResponseError::AlreadyEnded(id.into())),
            false => response_problem(&ApprovalResponseError::UnknownRequest(id.into())),
        })
    }
}

fn response_problem(error: &ApprovalResponseError) -> ProblemDetails {
    match error {
        ApprovalResponseError::UnknownRequest(_) => {
            ProblemDetails::not_found("there is no approval request with this id")
        }
        ApprovalResponseError::AlreadyEnded(_) => {
            ProblemDetails::conflict("the approval request was answered or has ended")
        }
        ApprovalResponseError::FingerprintMismatch(_) => {
            ProblemDetails::conflict("the fingerprint is that of another call")
                .suggest("review the request again and send its `fingerprint`")
        }
        ApprovalResponseError::InvalidArguments { faults, .. } => {
            ProblemDetails::from_error(&faults.clone().into())
                .suggest("send all arguments of the call; the request is still open")
        }
        other => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            ProblemDetails::new(status, ErrorKind::InvalidArgs.as_str(), other.to_string())
        }
    }
}
