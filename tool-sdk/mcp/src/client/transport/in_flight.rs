//! Requests in flight, which are cancelled on the server when they are dropped.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{RequestHandle, RoleClient};
use tokio::time::timeout;

use super::RmcpConnection;

/// A request in flight. Dropping it sends a cancellation to the server.
pub(super) struct InFlightRequest<'w> {
    pub(super) handle: Option<RequestHandle<RoleClient>>,
    pub(super) connection: &'w RmcpConnection,
}

/// The timeout for sending a cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

impl InFlightRequest<'_> {
    pub(super) async fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.handle.take() {
            send_cancellation(handle, reason).await;
        }
    }
}

async fn send_cancellation(handle: RequestHandle<RoleClient>, reason: &str) {
    // If the cancellation cannot be sent, the server cannot answer either.
    let _ = timeout(CANCEL_TIMEOUT, handle.cancel(Some(reason.to_owned()))).await;
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        // Keep the connection until the cancellation is sent, and use its runtime, because the runtime of
        // the call may end.
        let service = Arc::clone(&self.connection.service);
        let cancellation = async move {
            send_cancellation(handle, "the caller stopped waiting").await;
            drop(service);
        };
        let RmcpConnection { cancellations, runtime, .. } = self.connection;
        cancellations.spawn_on(cancellation, runtime);
    }
}
