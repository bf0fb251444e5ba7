//! Detects when the tool list differs from the one that a client received last.
//!
//! The host's toolset reports every change; this module drops those that leave the list as it is,
//! and debounces the rest.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tool_sdk_core::{Session, provider};

use super::Server;

/// How long changes are collected before the list is compared.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// A watcher for changes of the tool list.
pub(super) struct ToolListChanges {
    server: Arc<Server>,
    /// The session of the client: tools may be limited to it.
    session: Session,
    changed: watch::Receiver<()>,
    last_listing: Arc<str>,
}

impl ToolListChanges {
    pub(super) fn watch(server: &Arc<Server>, session: &Session) -> Self {
        let toolset = server.pipeline.toolset();
        let changed = toolset.subscribe_changes();
        let last_listing = provider::mcp_listing(&toolset.view_for(session));
        Self { server: Arc::clone(server), session: session.clone(), changed, last_listing }
    }

    /// Waits for the next visible change. Returns false when there will be no more.
    pub(super) async fn next_change(&mut self) -> bool {
        while self.changed.changed().await.is_ok() {
            // Changes in quick succession count as one.
            tokio::time::sleep(DEBOUNCE).await;
            self.changed.mark_unchanged();
            let view = self.server.pipeline.toolset().view_for(&self.session);
            let now = provider::mcp_listing(&view);
            if now != self.last_listing {
                self.last_listing = now;
                return true;
            }
        }
        false
    }
}
