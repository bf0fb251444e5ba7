//! Gives each request an id, logs it, and counts it.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use super::random_id::random_id;
use super::request::header_text;
use super::service::RestService;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request: the client's, or a generated one.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Adds the id to the request and to its response, and logs both. The log has no query, because
/// arguments of calls may be secrets.
pub(super) async fn log_request(
    State(service): State<Arc<RestService>>,
    mut request: Request,
    next: Next,
) -> Response {
    service.start_event_pump();
    let id = match header_text(request.headers(), &REQUEST_ID) {
        Ok(Some(id)) => id,
        Ok(None) | Err(_) => random_id("req").unwrap_or_default(),
    };
    request.extensions_mut().insert(RequestId(id.clone()));
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let started = Instant::now();
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::try_from(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let (status, elapsed_ms) = (response.status().as_u16(), started.elapsed().as_millis());
    tracing::info!(target: "tool_sdk_http::access", %method, path, status, elapsed_ms, request = id);
    response
}
