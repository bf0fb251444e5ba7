//! `GET /v1/workers`: the remote workers of the host, with their load and failures.
//!
//! The host says how they are asked, because this crate does not know how they are reached.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use futures_util::future::BoxFuture;
use serde::Serialize;

use super::caller::AdministrationCaller;
use super::service::RestService;

/// Asks the workers for their load.
pub(crate) type WorkerLoadSource =
    Arc<dyn Fn() -> BoxFuture<'static, Vec<WorkerLoad>> + Send + Sync>;

/// A remote worker, and what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct it")]
pub struct WorkerLoad {
    /// Its namespace.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// Its program.
    pub program: String,
    /// How many calls run.
    pub running: u64,
    /// How many calls may run.
    pub limit: u64,
    /// How many calls were run.
    pub calls: u64,
    /// How many calls failed.
    pub failed: u64,
    /// How many requests were refused because it was busy.
    pub busy: u64,
    /// How many requests were refused for another reason.
    pub refused: u64,
    /// The mean time of a call, in milliseconds.
    pub average_ms: u64,
}

/// The body of `GET /v1/workers`.
#[derive(Debug, Serialize)]
pub(super) struct WorkerList {
    workers: Vec<WorkerLoad>,
}

/// `GET /v1/workers`
pub(super) async fn list_workers(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
) -> Json<WorkerList> {
    let workers = match &service.options.worker_load {
        Some(ask) => ask().await,
        None => Vec::new(),
    };
    Json(WorkerList { workers })
}
