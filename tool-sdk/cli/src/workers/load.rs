//! The load of the configured workers, for the console and the API of `serve http`.

use std::sync::Arc;

use futures_util::future::join_all;
use tool_sdk_http::rest::{RestOptions, WorkerLoad};
use tool_sdk_remote::{WorkerStats, Workers};

use crate::mcp::ConfiguredServers;

/// Lets the server ask the workers for their load. Workers that cannot be reached are left out.
pub(crate) fn with_worker_load(options: RestOptions, servers: &ConfiguredServers) -> RestOptions {
    let configured = Arc::clone(servers.workers());
    options.with_worker_load(move || {
        let connected = configured.connected();
        async move { join_all(connected.iter().map(load_of)).await.into_iter().flatten().collect() }
    })
}

async fn load_of(workers: &Workers) -> Vec<WorkerLoad> {
    let namespace = workers.namespace().as_str();
    let stats = workers.stats().await.unwrap_or_default();
    stats.into_iter().map(|worker| to_load(namespace, worker)).collect()
}

fn to_load(namespace: &str, worker: WorkerStats) -> WorkerLoad {
    WorkerLoad {
        namespace: namespace.to_owned(),
        id: worker.id,
        program: worker.program,
        running: worker.running,
        limit: worker.limit,
        calls: worker.calls,
        failed: worker.failed,
        busy: worker.busy,
        refused: worker.refused,
        average_ms: worker.average_ms,
    }
}
