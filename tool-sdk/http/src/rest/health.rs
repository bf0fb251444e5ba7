//! Whether the server runs, for supervisors; without a token and without any details.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::service::RestService;

/// `GET /healthz`: the process answers.
pub(super) async fn get_health() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the server takes calls.
pub(super) async fn get_readiness(
    State(service): State<Arc<RestService>>,
) -> (StatusCode, &'static str) {
    match service.pipeline.is_closed() || service.options.http.shutdown.is_cancelled() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}
