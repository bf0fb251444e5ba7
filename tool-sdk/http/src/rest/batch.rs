//! `POST /v1/batch`: the calls of one message. They are scheduled like those of an agent: calls that
//! only read run together, others one after the other.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::{keep, reply_in_form};
use super::idempotency::KeyClaim;
use super::problem::ProblemDetails;
use super::request::{JsonBody, ReplyForm};
use super::running_calls::NewCall;
use super::service::RestService;
use super::sessions::RequestSession;

/// How many calls a batch may have.
const MAX_CALLS: usize = 64;

/// The body of `POST /v1/batch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchBody {
    calls: Vec<BatchCall>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchCall {
    tool: String,
    /// As the client wrote them, so that the tool's parser sees duplicate keys.
    arguments: Option<Box<RawValue>>,
}

/// `POST /v1/batch`
pub(super) async fn call_batch(
    State(service): State<Arc<RestService>>,
    request: RequestSession,
    form: ReplyForm,
    JsonBody(BatchBody { calls }): JsonBody<BatchBody>,
) -> Result<Response, ProblemDetails> {
    if calls.is_empty() || calls.len() > MAX_CALLS {
        let error = format!("`calls` has {} calls, but must have 1 to {MAX_CALLS}", calls.len());
        return Err(ProblemDetails::bad_request(error));
    }
    let RequestSession { session, is_named, caller, idempotency_key, profile } = request;
    let session = service.with_approver(session, &caller);
    // A batch has no place of its own in the history, so the preference for one is not honoured.
    let form = match form {
        ReplyForm::Async(_) => ReplyForm::Result,
        other => other,
    };
    let is_recorded = is_named || idempotency_key.is_some();
    let new_call = |BatchCall { tool, arguments }| NewCall {
        session: session.clone(),
        tool,
        arguments: arguments.map_or_else(|| "{}".to_owned(), |it| it.get().to_owned()),
        is_recorded,
        profile: profile.clone(),
    };
    let calls: Vec<NewCall> = calls.into_iter().map(new_call).collect();
    let ticket = match &idempotency_key {
        Some(key) => match service.idempotency.claim(&caller, key, &calls)? {
            KeyClaim::Repeated(handle) => return reply_in_form(handle, form).await,
            KeyClaim::First(ticket) => Some(ticket),
        },
        None => None,
    };
    let handle = keep(service.start_batch(session, calls).await?, ticket);
    reply_in_form(handle, form).await
}
