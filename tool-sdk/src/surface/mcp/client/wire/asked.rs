//! Requests on their way.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{RequestHandle, RoleClient};
use tokio::time::timeout;

use super::Wire;

/// A request on its way; the server is told when nobody waits for the answer any more.
pub(super) struct Asked<'w> {
    pub(super) handle: Option<RequestHandle<RoleClient>>,
    pub(super) wire: &'w Wire,
}

/// How long telling a server that nobody waits may take.
const FAREWELL: Duration = Duration::from_secs(5);

impl Asked<'_> {
    pub(super) async fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.handle.take() {
            take_back(handle, reason).await;
        }
    }
}

async fn take_back(handle: RequestHandle<RoleClient>, reason: &str) {
    // A server that cannot be told has nobody to answer either.
    let _ = timeout(FAREWELL, handle.cancel(Some(reason.to_owned()))).await;
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        // The connection stays until the server is told, and so does what it lives on: the
        // runtime of the call may end with it.
        let service = Arc::clone(&self.wire.service);
        self.wire.runtime.spawn(async move {
            take_back(handle, "nobody waits for it any more").await;
            drop(service);
        });
    }
}
