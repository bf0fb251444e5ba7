//! Keeps up with the workers: asks by the services API which there are, when one announces a change
//! and from time to time, and publishes their tools.
//!
//! **Invariant:** a list that did not change publishes nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::service::{Info, Stats};
use async_nats::{StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::host_connection::CONNECTION_LOST;
use super::{WorkerStats, WorkersState};
use crate::error::RemoteError;
use crate::protocol::{PROGRAM, RUN, WORKER, changed_subject, service_name};

/// How long the first answer of a worker may take, and how long the next one after it.
const FIRST_ANSWER: Duration = Duration::from_secs(1);
const NEXT_ANSWER: Duration = Duration::from_millis(200);

/// How long all answers may take together, and how many of them count.
const ALL_ANSWERS: Duration = Duration::from_secs(5);
const MAX_ANSWERS: usize = 4096;

/// Subscribes to what workers announce.
pub(super) async fn subscribe(state: &WorkersState) -> Result<Subscriber, RemoteError> {
    let subject = changed_subject(&state.config.namespace);
    state.payloads.client.subscribe(subject).await.map_err(RemoteError::request)
}

/// Looks at the workers after each announcement and from time to time, until the state is dropped.
pub(super) async fn watch(
    state: Weak<WorkersState>,
    mut announced: Subscriber,
    closed: CancellationToken,
) {
    loop {
        let Some(current) = state.upgrade() else { return };
        let pause = tokio::time::sleep(current.config.refresh);
        tokio::select! {
            () = closed.cancelled() => return,
            () = pause => {}
            () = current.look_now.notified() => {}
            announcement = announced.next() => {
                let Some(announcement) = announcement else { return };
                if let Ok(gone) = str::from_utf8(&announcement.payload) {
                    current.lock_known().remove(gone);
                }
            }
        }
        if let Err(error) = current.discover().await {
            tracing::debug!(%error, "cannot look for workers");
        }
    }
}

impl WorkersState {
    /// Asks which workers there are, and publishes their tools.
    pub(super) async fn discover(self: &Arc<Self>) -> Result<(), RemoteError> {
        let _turn = self.asking.lock().await;
        let infos: Vec<Info> = self.request_all("INFO").await?;
        self.lock_known().update(infos);
        self.publish();
        Ok(())
    }

    /// Publishes the tools of the known workers.
    pub(super) fn publish(self: &Arc<Self>) {
        let mut published = self.lock_published();
        // The lock orders this and the end of the connection.
        let Some(toolset) = self.toolset().filter(|_| !self.closed.is_cancelled()) else { return };
        let chosen = self.lock_known().choose_definitions(&published.hashes());
        published.replace(&toolset, &chosen, self);
    }

    /// Asks the workers for their statistics.
    pub(super) async fn request_stats(&self) -> Result<Vec<WorkerStats>, RemoteError> {
        let infos: Vec<Info> = self.request_all("INFO").await?;
        let stats: Vec<Stats> = self.request_all("STATS").await?;
        let of_worker = |stats: Stats| {
            let info = infos.iter().find(|info| info.id == stats.id)?;
            let run = stats.endpoints.iter().find(|endpoint| endpoint.name == RUN)?;
            let load = |name: &str| {
                run.data.as_ref().and_then(|data| data.get(name)?.as_u64()).unwrap_or(0)
            };
            Some(WorkerStats {
                id: info.metadata.get(WORKER)?.clone(),
                program: info.metadata.get(PROGRAM).cloned().unwrap_or_default(),
                running: load("running"),
                limit: load("limit"),
                calls: run.requests as u64,
                failed: load("failed"),
                busy: load("busy"),
                refused: load("refused"),
                average_ms: u64::try_from(run.average_processing_time.as_millis()).unwrap_or(0),
            })
        };
        let mut stats: Vec<WorkerStats> = stats.into_iter().filter_map(of_worker).collect();
        stats.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(stats)
    }

    /// Sends a request of the services API to all workers, and returns what they answer in time.
    async fn request_all<T: DeserializeOwned>(&self, verb: &str) -> Result<Vec<T>, RemoteError> {
        let client = &self.payloads.client;
        if client.connection_state() != State::Connected {
            // Silence says nothing of workers then.
            return Err(RemoteError::NotConnected(CONNECTION_LOST.to_owned()));
        }
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(inbox.clone()).await.map_err(RemoteError::request)?;
        let subject = format!("$SRV.{verb}.{}", service_name(&self.config.namespace));
        client
            .publish_with_reply(subject, inbox, Bytes::new())
            .await
            .map_err(RemoteError::request)?;
        let (mut found, mut patience) = (Vec::new(), FIRST_ANSWER);
        // A program that answers on and on does not keep the host from its workers.
        let last = Instant::now() + ALL_ANSWERS;
        while found.len() < MAX_ANSWERS
            && let Ok(Some(answer)) =
                timeout_at(last.min(Instant::now() + patience), answers.next()).await
        {
            if answer.status == Some(StatusCode::NO_RESPONDERS) {
                break;
            }
            // An answer that cannot be read is that of another program.
            found.extend(serde_json::from_slice::<T>(&answer.payload).ok());
            patience = NEXT_ANSWER;
        }
        Ok(found)
    }
}
