//! News of other tools from a server that only tells those who ask for it.
//!
//! What a subscription tells is heard where it comes in, see [`ids`](super::ids). Here it is only
//! kept: whoever ends it, it is asked for again for as long as there is a connection. What changed
//! before it stood nobody told, so the tools are looked at then, the first time too.

use std::sync::Arc;

use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError, Subscription};

use super::ears::Ears;
use super::pause::Pause;

/// Hears of changes, for as long as it is waited for.
pub(super) async fn listen(peer: Peer<RoleClient>, ears: Arc<Ears>) {
    let Some(info) = peer.peer_info() else { return };
    let tools = info.capabilities.tools.as_ref();
    if tools.and_then(|tools| tools.list_changed) != Some(true) {
        return;
    }
    ears.expect_news();
    if info.protocol_version.has_initialize() {
        // One that tells without being asked to.
        return;
    }
    let mut pause = Pause::new();
    loop {
        let wanted = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(wanted).await {
            Ok(subscription) => {
                ears.missed_news();
                until_its_end(subscription).await;
            }
            Err(ServiceError::McpError(no)) if no.code == ErrorCode::METHOD_NOT_FOUND => return,
            Err(_) => {}
        }
        pause.wait().await;
    }
}

async fn until_its_end(mut subscription: Subscription) {
    while let Ok(Some(_)) = subscription.next().await {}
}
