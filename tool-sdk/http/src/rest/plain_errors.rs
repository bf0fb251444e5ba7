//! Turns refusals in plain text into problem documents: those of the checks before the handlers, and
//! of axum's extractors and routes.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::ProblemDetails;

/// A longer body does not come from a layer.
const MAX_TEXT_BYTES: usize = 4096;
/// The Model Context Protocol has errors of its own.
const MCP_PATH: &str = "/mcp";

/// Replaces the body of a refusal by a problem document, and keeps its status and headers.
pub(super) async fn replace_plain_errors(request: Request, next: Next) -> Response {
    let is_mcp = request.uri().path() == MCP_PATH;
    let response = next.run(request).await;
    let status = response.status();
    if is_mcp || !(status.is_client_error() || status.is_server_error()) || has_json(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_TEXT_BYTES).await.unwrap_or_default();
    let problem = ProblemDetails::from_status(status, &String::from_utf8_lossy(&text));
    let (problem, body) = problem.into_response().into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(CONTENT_TYPE);
    parts.headers.extend(problem.headers);
    Response::from_parts(parts, Body::new(body))
}

fn has_json(response: &Response) -> bool {
    let mime = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    mime.is_some_and(|mime| mime.contains("json"))
}
