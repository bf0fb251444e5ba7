//! Calls tools, shows the history of calls, and cancels calls.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;
use tool_sdk_core::{CallRecord, RiskClass};

use super::caller::ToolCaller;
use super::problem::ProblemDetails;
use super::query_args::query_args;
use super::request::{JsonText, ReplyForm, SESSION_ID, header_text};
use super::response::CALL_ID;
use super::running_calls::{CallHandle, NewCall};
use super::service::RestService;
use super::sessions::{RequestSession, is_named_session, is_unnamed_session};
use super::tools::unknown_tool;
use super::{call_stream, idempotency};
use crate::auth::HttpCaller;
use crate::scopes::TokenScope;

/// How many calls a page of the history has by default, and at most.
const PAGE_SIZE: usize = 100;
const MAX_PAGE_SIZE: usize = 1000;

/// `POST /v1/tools/{name}`: the body holds the arguments.
pub(super) async fn call_tool(
    State(service): State<Arc<RestService>>,
    Path(name): Path<String>,
    request: RequestSession,
    form: ReplyForm,
    JsonText(arguments): JsonText,
) -> Result<Response, ProblemDetails> {
    service.call(name, arguments, request, form).await
}

/// `GET /v1/tools/{name}/call?a=1&b=x`: calls a tool that only reads.
pub(super) async fn call_read_tool(
    State(service): State<Arc<RestService>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    request: RequestSession,
    form: ReplyForm,
) -> Result<Response, ProblemDetails> {
    let view = service.pipeline.toolset().view_for(&request.session);
    let definition = view.definition(&name).ok_or_else(|| unknown_tool(&view, &name))?;
    if definition.risk.class != RiskClass::Read {
        let error = format!("`{name}` does not only read, so it cannot be called with GET");
        return Err(ProblemDetails::wrong_method(error, "POST")
            .suggest(format!("send `POST /v1/tools/{name}` with the arguments as the body")));
    }
    let arguments = query_args(query.as_deref().unwrap_or_default(), &definition.parameters)?;
    service.call(name, arguments, request, form).await
}

impl RestService {
    /// Makes a call and answers in the form that the client wants.
    async fn call(
        self: &Arc<Self>,
        tool: String,
        arguments: String,
        request: RequestSession,
        form: ReplyForm,
    ) -> Result<Response, ProblemDetails> {
        let RequestSession { session, is_named, caller, idempotency_key, profile } = request;
        let view = self.pipeline.toolset().view_for(&session);
        if view.find(&tool).is_none() {
            return Err(unknown_tool(&view, &tool));
        }
        let is_kept = idempotency_key.is_some() || matches!(form, ReplyForm::Async(_));
        let session = self.with_approver(session, &caller);
        let is_recorded = is_named || is_kept;
        let call = NewCall { session, tool, arguments, is_recorded, profile };
        let ticket = match &idempotency_key {
            Some(key) => match self.idempotency.claim(&caller, key, std::slice::from_ref(&call))? {
                idempotency::KeyClaim::Repeated(handle) => {
                    return reply_in_form(handle, form).await;
                }
                idempotency::KeyClaim::First(ticket) => Some(ticket),
            },
            None => None,
        };
        if form == ReplyForm::EventStream {
            let (handle, events) = self.start_call_with_events(call).await?;
            let handle = keep(handle, ticket);
            let subscriber = self.metrics.count_subscriber();
            return Ok(call_stream::respond(handle, events, subscriber, Arc::clone(&self.events)));
        }
        let handle = keep(self.start_call(call).await?, ticket);
        reply_in_form(handle, form).await
    }
}

/// Lets a call with an idempotency key run on when its client disconnects.
pub(super) fn keep(handle: CallHandle, ticket: Option<idempotency::KeyTicket>) -> CallHandle {
    match ticket {
        Some(ticket) => {
            ticket.set_call(handle.follow());
            handle.detach()
        }
        None => handle,
    }
}

/// Waits for the reply, and returns it in the form that the client wants.
pub(super) async fn reply_in_form(
    mut handle: CallHandle,
    form: ReplyForm,
) -> Result<Response, ProblemDetails> {
    match form {
        ReplyForm::Result => Ok(handle.wait().await.to_response()),
        ReplyForm::EventStream => Ok(call_stream::respond_with_result(handle)),
        ReplyForm::Async(wait) => {
            if wait > Duration::ZERO
                && let Ok(reply) = timeout(wait, handle.wait()).await
            {
                return Ok(reply.to_response());
            }
            let handle = handle.detach();
            let headers = [
                (HeaderName::from_static("location"), format!("/v1/calls/{}", handle.id)),
                (HeaderName::from_static("preference-applied"), "respond-async".to_owned()),
                (CALL_ID, handle.id.clone()),
            ];
            let body = json!({ "call": handle.id, "status": "running" });
            Ok((StatusCode::ACCEPTED, headers, Json(body)).into_response())
        }
    }
}

/// The query of `GET /v1/calls`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    limit: Option<usize>,
}

/// The body of `GET /v1/calls`.
#[derive(Debug, Serialize)]
pub(super) struct CallList {
    /// Where the stream of the session's events starts.
    last_event_id: String,
    /// The oldest call first; without results.
    calls: Vec<CallRecord>,
}

/// `GET /v1/calls`: the history of the session, which may be one of an earlier server with the same
/// history.
pub(super) async fn list_calls(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
    headers: HeaderMap,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<CallList>, ProblemDetails> {
    let Some(id) = header_text(&headers, &SESSION_ID)? else {
        return Err(ProblemDetails::bad_request("the history belongs to a session")
            .suggest("send `Session-Id`"));
    };
    let session = service.find_session(&id, &caller);
    let limit = query.limit.unwrap_or(PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&limit) {
        let error = format!("`limit` is {limit}, but must be between 1 and {MAX_PAGE_SIZE}");
        return Err(ProblemDetails::bad_request(error));
    }
    let log = service.events.session_log(&id);
    let last = log.map_or(0, |log| log.last_seq());
    let mut calls = match is_named_session(&id) {
        true => service.stored(service.options.session_store.list_calls(&id).await)?,
        false => Vec::new(),
    };
    calls.retain(|call| call.user.as_deref() == caller.user());
    if calls.is_empty() {
        session?;
    }
    calls.drain(..calls.len().saturating_sub(limit));
    calls.iter_mut().for_each(|call| call.response = None);
    Ok(Json(CallList { last_event_id: service.events.event_id(last), calls }))
}

/// `GET /v1/calls/{id}`: a call of the session, or one without a named session that was kept. With
/// the scope `administration` also the last calls that were not kept, where there is a console.
pub(super) async fn get_call(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Json<CallRecord>, ProblemDetails> {
    let running = service.running.find(&id).map(|it| it.record);
    let record = match running {
        Some(record) => Some(record),
        None => service.find_ended_call(&id, &caller).await?,
    };
    let record = record.filter(|it| service.may_see(it, &caller, &headers));
    record.map(Json).ok_or_else(unknown_call)
}

/// `DELETE /v1/calls/{id}`: cancels a running call.
pub(super) async fn cancel_call(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<StatusCode, ProblemDetails> {
    if let Some(call) = service.running.find(&id) {
        if !service.may_see(&call.record, &caller, &headers) {
            return Err(unknown_call());
        }
        call.cancel();
        return Ok(StatusCode::ACCEPTED);
    }
    let ended = service.find_ended_call(&id, &caller).await?;
    match ended.filter(|it| service.may_see(it, &caller, &headers)) {
        Some(_) => Err(ProblemDetails::conflict("the call has ended")),
        None => Err(unknown_call()),
    }
}

fn unknown_call() -> ProblemDetails {
    ProblemDetails::not_found("there is no call with this id")
        .suggest("send the `Session-Id` with which the call was made")
}

impl RestService {
    /// Whether the client may see a call: it is of its user, and of the session that the client
    /// names, if it has a name. With the scope `administration` it may see all calls.
    fn may_see(&self, call: &CallRecord, caller: &HttpCaller, headers: &HeaderMap) -> bool {
        if caller.scopes.contains(TokenScope::Administration) {
            return true;
        }
        let named = header_text(headers, &SESSION_ID).ok().flatten();
        let is_of_session = match named {
            Some(id) => id == call.session && is_named_session(&id),
            None => is_unnamed_session(&call.session),
        };
        call.user.as_deref() == caller.user() && is_of_session
    }

    /// Returns a call that has ended: of the history, or for an administrator one that no history has.
    async fn find_ended_call(
        &self,
        id: &str,
        caller: &HttpCaller,
    ) -> Result<Option<CallRecord>, ProblemDetails> {
        let stored = self.stored(self.options.session_store.find_call(id).await)?;
        let is_administrator = caller.scopes.contains(TokenScope::Administration);
        Ok(stored.or_else(|| self.recent.find(id).filter(|_| is_administrator)))
    }

    /// Returns what the history has, or the problem of a store that failed.
    fn stored<T>(&self, read: std::io::Result<T>) -> Result<T, ProblemDetails> {
        read.map_err(|error| {
            tracing::warn!("cannot read the history: {error}");
            ProblemDetails::busy("the history cannot be read")
        })
    }
}
