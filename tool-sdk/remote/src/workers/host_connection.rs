//! The connection of a host to the NATS server of a namespace. The server may come later than the
//! host, and may be lost and come back.
//!
//! **Invariant:** once closed, nothing connects and nothing is published.

use std::sync::{Arc, OnceLock, Weak};

use async_nats::connection::State;
use async_nats::{Client, Event};
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::Toolset;

use super::attached_toolset::AttachedToolset;
use super::published_tools::PublishedTools;
use super::{WorkersConfig, WorkersState, discovery};
use crate::connection::NatsConfig;
use crate::error::RemoteError;

/// Why a host is not connected that was connected before.
pub(super) const CONNECTION_LOST: &str = "the connection to the NATS server was lost";

/// Whether a host is connected to the NATS server of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConnectionStatus {
    /// The host connects for the first time.
    #[default]
    Connecting,
    /// The host is connected.
    Connected,
    /// The host is not connected, for this reason, and tries again in the background.
    Disconnected(String),
    /// The connection was ended by the host.
    Closed,
}

/// The connection to the server of a namespace.
pub(super) struct HostConnection {
    server: NatsConfig,
    pub(super) config: WorkersConfig,
    attached: Arc<AttachedToolset>,
    /// What there is once the server was reached.
    state: OnceLock<Arc<WorkersState>>,
    status: watch::Sender<ConnectionStatus>,
    closed: CancellationToken,
}

impl HostConnection {
    pub(super) fn new(server: NatsConfig, config: WorkersConfig) -> Arc<Self> {
        Arc::new(Self {
            server,
            config,
            attached: Arc::default(),
            state: OnceLock::new(),
            status: watch::Sender::default(),
            closed: CancellationToken::new(),
        })
    }

    /// Connects to the server and looks for workers.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<(), RemoteError> {
        let owner = Arc::downgrade(self);
        let name = format!("host of {}", self.config.namespace);
        let on_event = move |event| note_event(&owner, &event);
        let client = self.server.connect_watched(&name, on_event).await?;
        self.start(client).await
    }

    async fn start(&self, client: Client) -> Result<(), RemoteError> {
        let attached = Arc::clone(&self.attached);
        let state =
            WorkersState::new(client.clone(), self.config.clone(), attached, self.closed.clone());
        // Subscribed first, so that no worker that announces itself meanwhile is missed.
        let announced = discovery::subscribe(&state).await?;
        let state = self.state.get_or_init(|| state);
        if let Err(error) = state.discover().await {
            // The connection was lost already, and is renewed.
            tracing::debug!(%error, "cannot look for workers");
        }
        tokio::spawn(discovery::watch(Arc::downgrade(state), announced, self.closed.clone()));
        self.set_status(match client.connection_state() {
            State::Connected => ConnectionStatus::Connected,
            _ => lost(),
        });
        Ok(())
    }

    /// Connects, and tries again until the server is there or the host closes the connection.
    pub(super) async fn connect_with_retry(self: Arc<Self>) {
        let goes_on = |error: &RemoteError| {
            self.set_status(ConnectionStatus::Disconnected(error.to_string()));
            !matches!(error, RemoteError::Config(_))
        };
        tokio::select! {
            () = self.closed.cancelled() => {}
            _ = NatsConfig::retry(|| self.connect(), goes_on) => {}
        }
    }

    /// Publishes the tools in `toolset` from now on.
    pub(super) fn attach(&self, toolset: &Arc<Toolset>) -> Result<(), RemoteError> {
        let Some(state) = self.state.get() else {
            return self.attached.attach(toolset, &self.config.namespace);
        };
        // Held meanwhile, so that nothing is published in between.
        let mut published = state.lock_published();
        let before = self.attached.upgrade();
        self.attached.attach(toolset, &self.config.namespace)?;
        match before {
            Some(before) if Arc::ptr_eq(&before, toolset) => {}
            Some(before) => published.remove_from(&before),
            // The toolset before was dropped, and the tools with it.
            None => *published = PublishedTools::default(),
        }
        drop(published);
        state.publish();
        Ok(())
    }

    /// Returns what there is once the server was reached.
    pub(super) fn state(&self) -> Result<&Arc<WorkersState>, RemoteError> {
        self.state.get().ok_or_else(|| {
            RemoteError::NotConnected(match &*self.status.borrow() {
                ConnectionStatus::Disconnected(reason) => reason.clone(),
                _ => format!("there is no connection to {} yet", self.server.url()),
            })
        })
    }

    pub(super) fn status(&self) -> &watch::Sender<ConnectionStatus> {
        &self.status
    }

    fn set_status(&self, status: ConnectionStatus) {
        if self.closed.is_cancelled() {
            return;
        }
        self.status.send_if_modified(|current| {
            let is_new = *current != status;
            if is_new {
                match &status {
                    ConnectionStatus::Disconnected(reason) => tracing::warn!(
                        namespace = %self.config.namespace,
                        "the workers are not connected: {reason}"
                    ),
                    _ => tracing::info!(
                        namespace = %self.config.namespace,
                        "the workers are connected"
                    ),
                }
                *current = status;
            }
            is_new
        });
    }

    pub(super) fn close(&self) {
        self.closed.cancel();
        if let (Some(state), Some(toolset)) = (self.state.get(), self.attached.upgrade()) {
            state.lock_published().remove_from(&toolset);
        }
        self.attached.detach();
        self.status.send_replace(ConnectionStatus::Closed);
    }
}

fn lost() -> ConnectionStatus {
    ConnectionStatus::Disconnected(CONNECTION_LOST.to_owned())
}

/// Notes that the connection was lost or renewed, once it was there.
fn note_event(connection: &Weak<HostConnection>, event: &Event) {
    let Some(connection) = connection.upgrade() else { return };
    if *connection.status.borrow() == ConnectionStatus::Connecting {
        // The tools come first.
        return;
    }
    match event {
        Event::Connected => connection.set_status(ConnectionStatus::Connected),
        Event::Disconnected | Event::Closed => connection.set_status(lost()),
        _ => {}
    }
}
