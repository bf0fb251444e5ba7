//! Subscribes to changes of the tools, on servers that notify subscribers only.
//!
//! The notifications are handled in [`request_ids`](super::request_ids). Here the subscription is only kept: it is
//! renewed with backoff when it ends, for as long as the connection lasts. Changes before it was
//! established were not notified, so the tools are listed again each time.

use std::sync::Arc;

use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError, Subscription};

use super::backoff::Backoff;
use super::notifications::NotificationHandler;

/// Subscribes to changes until it is cancelled.
pub(super) async fn watch_subscription(
    peer: Peer<RoleClient>,
    notifications: Arc<NotificationHandler>,
) {
    let Some(info) = peer.peer_info() else { return };
    let tools = info.capabilities.tools.as_ref();
    if tools.and_then(|tools| tools.list_changed) != Some(true) {
        return;
    }
    notifications.expect_changes();
    if info.protocol_version.has_initialize() {
        // An older server notifies without a subscription.
        return;
    }
    let mut pause = Backoff::new();
    loop {
        let wanted = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(wanted).await {
            Ok(subscription) => {
                notifications.notify_possible_change();
                drain_subscription(subscription).await;
            }
            Err(ServiceError::McpError(no)) if no.code == ErrorCode::METHOD_NOT_FOUND => return,
            Err(_) => {}
        }
        pause.wait_before_retry().await;
    }
}

async fn drain_subscription(mut subscription: Subscription) {
    while let Ok(Some(_)) = subscription.next().await {}
}
