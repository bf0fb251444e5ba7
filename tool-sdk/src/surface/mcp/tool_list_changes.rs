//! When the list of tools is not what a peer was told any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Server;
use crate::surface::provider;

/// How long a change waits for the next one.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// The changes that a peer would see in the list.
pub(super) struct ToolListChanges {
    server: Arc<Server>,
    changed: watch::Receiver<()>,
    last_listing: Arc<str>,
}

impl ToolListChanges {
    pub(super) fn watch(server: &Arc<Server>) -> Self {
        let toolset = server.pipeline.toolset();
        let changed = toolset.subscribe_changes();
        let last_listing = provider::mcp_listing(&toolset.view());
        Self { server: Arc::clone(server), changed, last_listing }
    }

    /// Waits for the next one; false when there will be none.
    pub(super) async fn next_change(&mut self) -> bool {
        while self.changed.changed().await.is_ok() {
            // Several changes in a row are told as one.
            tokio::time::sleep(DEBOUNCE).await;
            self.changed.mark_unchanged();
            let now = provider::mcp_listing(&self.server.pipeline.toolset().view());
            if now != self.last_listing {
                self.last_listing = now;
                return true;
            }
        }
        false
    }
}
