//! Requests in flight, which are cancelled on the server when they are dropped.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{RequestHandle, RoleClient};
use tokio::time::timeout;

use super::Wire;

/// A request in flight. Dropping it sends a cancellation to the server.
pub(super) struct Asked<'w> {
    pub(super) handle: Option<RequestHandle<RoleClient>>,
    pub(super) wire: &'w Wire,
}

/// The timeout for sending a cancellation.
const FAREWELL: Duration = Duration::from_secs(5);

impl Asked<'_> {
    pub(super) async fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.handle.take() {
            take_back(handle, reason).await;
        }
    }
}

async fn take_back(handle: RequestHandle<RoleClient>, reason: &str) {
    // If the cancellation cannot be sent, the server cannot answer either.
    let _ = timeout(FAREWELL, handle.cancel(Some(reason.to_owned()))).await;
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        // Keep the connection until the cancellation is sent, and use its runtime, because the runtime of
        // the call may end.
        let service = Arc::clone(&self.wire.service);
        self.wire.runtime.spawn(async move {
            take_back(handle, "the caller stopped waiting").await;
            drop(service);
        });
    }
}
