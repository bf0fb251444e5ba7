//! Hears of changes from a server of today, which only tells those who ask for it.
//!
//! What is asked for ends with its stream, which anything in between may cut, and when more
//! comes at once than is kept. Then it is asked for again, later and later where it does not last.
//!
//! **Invariant:** a change is heard of as long as there is a connection, perhaps later.

use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, RoleClient, ServiceError};
use tokio::time::{Instant, sleep};

use super::ears::Ears;

/// How long nobody listens after the first end; every further time is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What lasted so long is begun again soon.
const STEADY: Duration = Duration::from_secs(10);

/// Listens for as long as there is a connection.
pub(super) async fn listen(peer: Peer<RoleClient>, ears: &Ears) {
    let info = peer.peer_info();
    let is_modern = info.as_ref().is_some_and(|it| !it.protocol_version.has_initialize());
    let tells =
        info.and_then(|info| info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed));
    if !is_modern || tells != Some(true) {
        return;
    }
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    let (mut wait, mut has_listened) = (FIRST_WAIT, false);
    while !peer.is_transport_closed() {
        let begun = Instant::now();
        match peer.listen(wanted.clone()).await {
            Ok(mut subscription) => {
                if has_listened {
                    // What changed meanwhile nobody heard.
                    ears.heard_of_change();
                }
                has_listened = true;
                while let Ok(Some(_)) = subscription.next().await {
                    ears.heard_of_change();
                }
            }
            // It does not know what is asked for.
            Err(ServiceError::McpError(_)) if !has_listened => return,
            Err(_) => {}
        }
        if begun.elapsed() >= STEADY {
            wait = FIRST_WAIT;
        }
        sleep(wait).await;
        wait = LONGEST_WAIT.min(2 * wait);
    }
}
