//! The client of a request: who it is, and what its token allows.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use tool_sdk_core::{ErrorKind, Session};

use super::problem::ProblemDetails;
use crate::auth::HttpCaller;
use crate::scopes::TokenScope;

/// A client that may call tools.
#[derive(Debug)]
pub(super) struct ToolCaller(pub(super) HttpCaller);

/// A client that may answer approval requests.
#[derive(Debug)]
pub(super) struct ApprovalCaller(pub(super) HttpCaller);

/// A client that may see what all principals do.
#[derive(Debug)]
pub(super) struct AdministrationCaller(pub(super) HttpCaller);

/// Returns the client, if its token has one of the scopes.
fn caller_with(parts: &Parts, scopes: &[TokenScope]) -> Result<HttpCaller, ProblemDetails> {
    let unknown = || {
        let status = StatusCode::UNAUTHORIZED;
        ProblemDetails::new(status, ErrorKind::Unauthorized.as_str(), "the request has no token")
    };
    let caller = parts.extensions.get::<HttpCaller>().cloned().ok_or_else(unknown)?;
    if scopes.iter().any(|scope| caller.scopes.contains(*scope)) {
        return Ok(caller);
    }
    let wanted = scopes.first().map_or("", |scope| scope.as_str());
    let error = format!("the token lacks the scope `{wanted}`, which this request needs");
    let problem = ProblemDetails::new(StatusCode::FORBIDDEN, ErrorKind::Denied.as_str(), error);
    Err(problem.suggest("use a token that was made with the scope"))
}

impl<S: Sync> FromRequestParts<S> for ToolCaller {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemDetails> {
        caller_with(parts, &[TokenScope::Tools]).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for ApprovalCaller {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemDetails> {
        caller_with(parts, &[TokenScope::Approvals, TokenScope::Administration]).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for AdministrationCaller {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemDetails> {
        caller_with(parts, &[TokenScope::Administration]).map(Self)
    }
}

impl ApprovalCaller {
    /// Whether the client may see and answer the approval requests of a session.
    pub(super) fn may_answer(&self, session: &Session) -> bool {
        self.0.scopes.contains(TokenScope::Administration) || session.user() == self.0.user()
    }
}
