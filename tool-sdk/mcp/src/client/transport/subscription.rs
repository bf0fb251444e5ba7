//! Subscribes to changes of tools, prompts and resources, on servers that notify subscribers only.
//!
//! The notifications are handled in [`request_ids`](super::request_ids). Here the subscription is only kept: it is
//! renewed with backoff when it ends, for as long as the connection lasts. Changes before it was
//! established were not notified, so the tools are listed again each time.

use std::sync::Arc;

use rmcp::model::{ErrorCode, ServerCapabilities, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError, Subscription};

use super::backoff::Backoff;
use super::notifications::{NotificationHandler, OfferChanges};

/// Subscribes to changes until it is cancelled.
pub(super) async fn watch_subscription(
    peer: Peer<RoleClient>,
    notifications: Arc<NotificationHandler>,
) {
    let Some(info) = peer.peer_info() else { return };
    let capabilities = &info.capabilities;
    let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
    if tools {
        notifications.expect_changes();
    }
    if info.protocol_version.has_initialize() {
        // An older server notifies without a subscription.
        return;
    }
    let mut pause = Backoff::new();
    loop {
        let wanted = subscription_filter(capabilities, notifications.offer_changes());
        if wanted == SubscriptionFilter::default() {
            notifications.offer_changes().wait_for_watched().await;
            continue;
        }
        match peer.listen(wanted).await {
            Ok(subscription) => {
                notifications.notify_possible_change();
                tokio::select! {
                    () = drain_subscription(subscription) => {}
                    // The filter of a subscription is fixed, so there is a new one.
                    () = notifications.offer_changes().wait_for_watched() => continue,
                }
            }
            Err(ServiceError::McpError(no)) if no.code == ErrorCode::METHOD_NOT_FOUND => return,
            Err(_) => {}
        }
        pause.wait_before_retry().await;
    }
}

/// Returns the changes that the server announces, and those of watched resources.
fn subscription_filter(
    capabilities: &ServerCapabilities,
    offers: &OfferChanges,
) -> SubscriptionFilter {
    let (tools, resources) = (capabilities.tools.as_ref(), capabilities.resources.as_ref());
    let prompts = capabilities.prompts.as_ref();
    let announced = |changes: Option<bool>| changes.filter(|announced| *announced);
    let mut wanted = SubscriptionFilter::default();
    wanted.tools_list_changed = announced(tools.and_then(|it| it.list_changed));
    wanted.resources_list_changed = announced(resources.and_then(|it| it.list_changed));
    wanted.prompts_list_changed = announced(prompts.and_then(|it| it.list_changed));
    let watched = offers.watched_uris();
    if !watched.is_empty() && resources.and_then(|it| it.subscribe) == Some(true) {
        wanted.resource_subscriptions = Some(watched);
    }
    wanted
}

async fn drain_subscription(mut subscription: Subscription) {
    while let Ok(Some(_)) = subscription.next().await {}
}
