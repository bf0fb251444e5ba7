//! What tells clients where to obtain a token: the metadata of the protected resource (RFC 9728), and
//! the challenge in responses that refuse a request.
//!
//! **Invariant:** nothing here is secret, so that it is answered without a token.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use super::access_token::AccessTokenIssuer;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Returns the routes of the metadata: at the path of the resource, and at the root.
pub(super) fn metadata_routes(issuer: &AccessTokenIssuer) -> Router {
    let metadata = json!({
        "resource": issuer.resource,
        "authorization_servers": [issuer.issuer],
        "bearer_methods_supported": ["header"],
    });
    let mut metadata = metadata;
    if !issuer.scopes().is_empty() {
        metadata["scopes_supported"] = json!(issuer.scopes());
    }
    let body = metadata.to_string();
    let answer = async move || -> Response {
        ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
    };
    let routes = Router::new().route(WELL_KNOWN, get(answer.clone()));
    match resource_path(&issuer.resource) {
        "" => routes,
        path => routes.route(&format!("{WELL_KNOWN}{path}"), get(answer)),
    }
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenProblem {
    /// There is none.
    Missing,
    /// It is unknown, over, or for another server.
    Invalid,
    /// It does not allow calling tools.
    LacksToolsScope,
}

/// Returns the value of `WWW-Authenticate`.
pub(super) fn challenge_header(issuer: &AccessTokenIssuer, problem: TokenProblem) -> HeaderValue {
    let error = match problem {
        TokenProblem::Missing => String::new(),
        TokenProblem::Invalid => "error=\"invalid_token\", ".to_owned(),
        TokenProblem::LacksToolsScope => "error=\"insufficient_scope\", ".to_owned(),
    };
    let scope = issuer.tools_scope.as_ref().map(|scope| format!("scope=\"{scope}\", "));
    let value = format!(
        "Bearer {error}{}resource_metadata=\"{}\"",
        scope.unwrap_or_default(),
        metadata_url(&issuer.resource)
    );
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// Returns the URL of the metadata of a resource.
fn metadata_url(resource: &str) -> String {
    let path = resource_path(resource);
    let origin = resource.trim_end_matches('/');
    format!("{}{WELL_KNOWN}{path}", origin.strip_suffix(path).unwrap_or(origin))
}

/// Returns the path of a URL, without a slash at its end.
fn resource_path(resource: &str) -> &str {
    let place = resource.split_once("://").map_or(resource, |(_, place)| place);
    let path = place.find('/').map_or("", |at| &place[at..]);
    path.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_at_the_path_of_the_resource() {
        for (resource, url) in [
            ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
            (
                "http://127.0.0.1:80/x/mcp/",
                "http://127.0.0.1:80/.well-known/oauth-protected-resource/x/mcp",
            ),
        ] {
            assert_eq!(metadata_url(resource), url);
        }
    }
}
