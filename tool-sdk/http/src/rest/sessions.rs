//! The sessions of clients: made by `POST /v1/sessions`, bound to a principal, and named by the
//! header `Session-Id`.
//!
//! A call that names no session has a session of its own, without grants, loop guard and history.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{ClientKind, Session};

use super::access_log::RequestId;
use super::caller::ToolCaller;
use super::client_profile::{ClientProfile, find_profile};
use super::problem::ProblemDetails;
use super::random_id::random_id;
use super::request::{IDEMPOTENCY_KEY, JsonBody, PROJECT_ID, SESSION_ID, header_text};
use super::service::RestService;
use crate::auth::HttpCaller;

/// The maximum number of sessions; the one that was idle for longest ends for another one.
const MAX_SESSIONS: usize = 1024;
/// The longest names of a project and a conversation.
const MAX_NAME_CHARS: usize = 256;

/// The prefix of the ids of sessions that clients name.
const NAMED: &str = "session";
/// The prefix of the ids of sessions that no client can name.
const UNNAMED: &str = "once";

fn has_prefix(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'))
}

/// Whether the session was made by `POST /v1/sessions`, of this server or an earlier one. A history that is
/// shared with other surfaces has sessions that are not.
pub(super) fn is_named_session(id: &str) -> bool {
    has_prefix(id, NAMED)
}

/// Whether the session belongs to one call, so that no client can name it.
pub(super) fn is_unnamed_session(id: &str) -> bool {
    has_prefix(id, UNNAMED)
}

/// The named sessions.
#[derive(Debug, Default)]
pub(super) struct SessionTable(Mutex<HashMap<String, SessionEntry>>);

#[derive(Debug)]
struct SessionEntry {
    session: Session,
    cancel: CancellationToken,
    last_used: Instant,
}

impl SessionTable {
    /// A poisoned lock still guards whole entries: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, SessionEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session with this id of the user.
    fn find(&self, id: &str, user: Option<&str>) -> Option<Session> {
        let mut sessions = self.lock();
        let entry = sessions.get_mut(id).filter(|entry| entry.session.user() == user)?;
        entry.last_used = Instant::now();
        Some(entry.session.clone())
    }

    /// Adds a session; returns the sessions that ended for it.
    fn insert(&self, id: String, entry: SessionEntry, idle_limit: Duration) -> Vec<String> {
        let mut sessions = self.lock();
        let is_idle = |entry: &SessionEntry| entry.last_used.elapsed() >= idle_limit;
        let mut ended: Vec<String> =
            sessions.iter().filter(|(_, it)| is_idle(it)).map(|(id, _)| id.clone()).collect();
        if sessions.len() - ended.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, it)| it.last_used);
            ended.extend(oldest.map(|(id, _)| id.clone()));
        }
        for id in &ended {
            if let Some(entry) = sessions.remove(id) {
                entry.cancel.cancel();
            }
        }
        sessions.insert(id, entry);
        ended
    }

    /// Returns the sessions of all users, in the order of their ids.
    pub(super) fn all(&self) -> Vec<Session> {
        let mut all: Vec<_> = self.lock().values().map(|entry| entry.session.clone()).collect();
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all
    }

    fn remove(&self, id: &str, user: Option<&str>) -> Option<SessionEntry> {
        let mut sessions = self.lock();
        sessions.get(id).filter(|entry| entry.session.user() == user)?;
        sessions.remove(id)
    }
}

/// The session of a request, and whether the client can name it.
pub(super) struct RequestSession {
    pub(super) session: Session,
    pub(super) is_named: bool,
    pub(super) caller: HttpCaller,
    pub(super) idempotency_key: Option<String>,
    pub(super) profile: Option<Arc<dyn ClientProfile>>,
}

impl FromRequestParts<Arc<RestService>> for RequestSession {
    type Rejection = ProblemDetails;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<RestService>,
    ) -> Result<Self, ProblemDetails> {
        let ToolCaller(caller) = ToolCaller::from_request_parts(parts, service).await?;
        let project = header_text(&parts.headers, &PROJECT_ID)?;
        let named = header_text(&parts.headers, &SESSION_ID)?;
        let (session, is_named) = match &named {
            Some(id) => (service.find_session(id, &caller)?, true),
            None => (service.unnamed_session(&caller, project.as_deref())?, false),
        };
        if is_named && project.is_some() && project.as_deref() != session.project() {
            let error = "`Project-Id` names another project than that of the session";
            return Err(ProblemDetails::conflict(error)
                .suggest("make a session for the project with `POST /v1/sessions`"));
        }
        let session = with_request_ids(session, parts);
        let idempotency_key = header_text(&parts.headers, &IDEMPOTENCY_KEY)?;
        let profile = find_profile(&service.options.client_profiles, &parts.headers);
        Ok(Self { session, is_named, caller, idempotency_key, profile })
    }
}

/// Adds the ids of the request, for the tool, the events, the audit log and traces.
fn with_request_ids(session: Session, parts: &Parts) -> Session {
    let session = match parts.extensions.get::<RequestId>() {
        Some(RequestId(id)) => session.with_request(id),
        None => session,
    };
    match parts.headers.get("traceparent").and_then(|it| it.to_str().ok()) {
        Some(parent) if parent.len() <= MAX_NAME_CHARS => {
            session.with_metadata("traceparent", parent)
        }
        _ => session,
    }
}

impl RestService {
    /// Returns the named session of a client.
    pub(super) fn find_session(
        &self,
        id: &str,
        caller: &HttpCaller,
    ) -> Result<Session, ProblemDetails> {
        self.sessions.find(id, caller.user()).ok_or_else(|| {
            ProblemDetails::not_found("there is no session with this `Session-Id`")
                .suggest("make one with `POST /v1/sessions`")
        })
    }

    /// Returns a session for one call.
    pub(super) fn unnamed_session(
        &self,
        caller: &HttpCaller,
        project: Option<&str>,
    ) -> Result<Session, ProblemDetails> {
        let session = self.new_session(caller, random_id(UNNAMED)?).with_ephemeral_state();
        Ok(match project {
            Some(project) => session.with_project(project),
            None => session,
        })
    }

    /// Returns a new session of a client.
    pub(super) fn new_session(&self, caller: &HttpCaller, id: String) -> Session {
        let session = self.options.session.clone().with_id(id).with_client(ClientKind::Rest);
        let session = match self.options.http.has_principals() {
            true => session.with_shared_server(),
            false => session,
        };
        let session = match &self.options.session_setup {
            Some(setup) => setup(session),
            None => session,
        };
        let session = self.with_questions(session);
        match &caller.principal {
            Some(principal) => principal.apply_to(session),
            None => session,
        }
    }
}

/// The body of `POST /v1/sessions`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NewSession {
    project: Option<String>,
    conversation: Option<String>,
}

/// A session, as the API shows it.
#[derive(Debug, Serialize)]
struct SessionBody<'s> {
    id: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<&'s str>,
    /// Where the stream of the session's events starts.
    last_event_id: String,
}

fn check_name(name: &str, value: Option<&String>) -> Result<(), ProblemDetails> {
    match value {
        Some(value) if value.is_empty() || value.chars().count() > MAX_NAME_CHARS => {
            let error = format!("`{name}` must have 1 to {MAX_NAME_CHARS} characters");
            Err(ProblemDetails::bad_request(error))
        }
        _ => Ok(()),
    }
}

/// `POST /v1/sessions`
pub(super) async fn create_session(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
    JsonBody(NewSession { project, conversation }): JsonBody<NewSession>,
) -> Result<Response, ProblemDetails> {
    check_name("project", project.as_ref())?;
    check_name("conversation", conversation.as_ref())?;
    let id = random_id(NAMED)?;
    let mut session = service.new_session(&caller, id.clone());
    if let Some(project) = project {
        session = session.with_project(project);
    }
    if let Some(conversation) = conversation {
        session = session.with_conversation(conversation);
    }
    let cancel = session.cancel_token().child_token();
    let session = session.with_cancel(cancel.clone());
    service.events.add_session(&id);
    let entry = SessionEntry { session: session.clone(), cancel, last_used: Instant::now() };
    for ended in service.sessions.insert(id, entry, service.options.session_idle_limit) {
        service.events.remove_session(&ended);
    }
    let body = SessionBody {
        id: session.id(),
        project: session.project(),
        conversation: session.conversation(),
        last_event_id: service.events.event_id(service.events.full_log().last_seq()),
    };
    let place = format!("/v1/sessions/{}", session.id());
    Ok((StatusCode::CREATED, [("location", place)], Json(body)).into_response())
}

/// `GET /v1/sessions/{id}`
pub(super) async fn get_session(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
    Path(id): Path<String>,
) -> Result<Response, ProblemDetails> {
    let session = service.find_session(&id, &caller)?;
    let log = service.events.session_log(&id);
    let body = SessionBody {
        id: session.id(),
        project: session.project(),
        conversation: session.conversation(),
        last_event_id: service.events.event_id(log.map_or(0, |log| log.last_seq())),
    };
    Ok(Json(body).into_response())
}

/// `DELETE /v1/sessions/{id}`: cancels the calls of the session and forgets its grants and history.
pub(super) async fn end_session(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
    Path(id): Path<String>,
) -> Result<StatusCode, ProblemDetails> {
    let entry = service.sessions.remove(&id, caller.user());
    let entry =
        entry.ok_or_else(|| ProblemDetails::not_found("there is no session with this id"))?;
    entry.cancel.cancel();
    service.events.remove_session(&id);
    service.forget_history(&id).await;
    Ok(StatusCode::NO_CONTENT)
}
