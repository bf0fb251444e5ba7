//! Shows what approvals granted, and revokes it.
//!
//! A stored grant has an id of its own. The grants of a session are listed and revoked for each of
//! its tools, under an id that names both.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use tool_sdk_core::{Grant, Session, StoredGrant, ToolName};

use super::caller::AdministrationCaller;
use super::problem::ProblemDetails;
use super::service::RestService;

/// Between the session and the tool in the id of session grants; no tool has it in its name.
const SEPARATOR: char = '~';

/// The body of `GET /v1/grants`.
#[derive(Debug, Serialize)]
pub(super) struct GrantList {
    grants: Vec<GrantBody>,
}

/// What one tool may do without an approval.
#[derive(Debug, Serialize)]
struct GrantBody {
    id: String,
    tool: String,
    permission: String,
    patterns: Vec<String>,
    scope: HeldScope,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The folder in which the grant holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
    /// Who approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<String>,
}

/// How long a grant holds.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum HeldScope {
    Session,
    Always,
}

impl GrantBody {
    fn of_session(session: &Session, tool: &ToolName, grants: &[Grant]) -> Self {
        let of_tool = grants.iter().filter(|it| it.to.tool == *tool);
        let permission = of_tool.clone().next().map_or("", |it| &it.to.permission).to_owned();
        Self {
            id: format!("{}{SEPARATOR}{tool}", session.id()),
            tool: tool.to_string(),
            permission,
            patterns: of_tool.map(|it| it.pattern.as_str().to_owned()).collect(),
            scope: HeldScope::Session,
            session: Some(session.id().to_owned()),
            workspace: None,
            created: None,
            who: None,
        }
    }

    fn of_stored(stored: StoredGrant) -> Self {
        let who = Some(stored.source.who).filter(|who| !who.is_empty());
        Self {
            id: stored.id,
            tool: stored.grant.to.tool.to_string(),
            permission: stored.grant.to.permission,
            patterns: vec![stored.grant.pattern.as_str().to_owned()],
            scope: HeldScope::Always,
            session: None,
            workspace: Some(stored.workspace.display().to_string()),
            created: Some(stored.created),
            who,
        }
    }
}

/// `GET /v1/grants`: those of the sessions of this server, and the stored ones of all folders.
pub(super) async fn list_grants(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
) -> Result<Json<GrantList>, ProblemDetails> {
    let mut grants = Vec::new();
    for session in service.sessions.all() {
        let held = service.pipeline.session_grants(&session);
        let mut tools: Vec<&ToolName> = held.iter().map(|it| &it.to.tool).collect();
        tools.sort();
        tools.dedup();
        grants.extend(tools.into_iter().map(|tool| GrantBody::of_session(&session, tool, &held)));
    }
    let listing = Arc::clone(&service);
    let stored = blocking(move || match listing.pipeline.stored_grants() {
        Some(store) => store.list(),
        None => Ok(Vec::new()),
    });
    let stored = stored.await?.map_err(|error| ProblemDetails::busy(error.to_string()))?;
    grants.extend(stored.into_iter().map(GrantBody::of_stored));
    Ok(Json(GrantList { grants }))
}

/// `DELETE /v1/grants/{id}`: the next call that needs the grant is asked about again.
pub(super) async fn revoke_grant(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
    Path(id): Path<String>,
) -> Result<StatusCode, ProblemDetails> {
    let is_revoked = match id.split_once(SEPARATOR) {
        Some((session, tool)) => service.revoke_session_grants(session, tool),
        None => {
            let revoking = Arc::clone(&service);
            let revoked = blocking(move || match revoking.pipeline.stored_grants() {
                Some(store) => store.revoke(&id),
                None => Ok(false),
            });
            revoked.await?.map_err(|error| ProblemDetails::busy(error.to_string()))?
        }
    };
    match is_revoked {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ProblemDetails::not_found("there is no grant with this id")
            .suggest("list the grants with `GET /v1/grants`")),
    }
}

impl RestService {
    /// Revokes the grants of one tool; returns whether there were any.
    fn revoke_session_grants(&self, session: &str, tool: &str) -> bool {
        let session = self.sessions.all().into_iter().find(|it| it.id() == session);
        let Some(session) = session else { return false };
        let held = self.pipeline.session_grants(&session);
        let found = held.iter().find(|it| it.to.tool.as_str() == tool);
        if let Some(grant) = found {
            self.pipeline.revoke_grants(&session, Some(&grant.to.tool));
        }
        found.is_some()
    }
}

/// Runs `work`, which reads or writes files, on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProblemDetails> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ProblemDetails::busy("the state cannot be read"))
}
