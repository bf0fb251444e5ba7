//! Servers at an address, over streamable HTTP.
//!
//! **Invariant:** what is sent to a server goes to its address and nowhere else: no redirect
//! is followed, and this machine is not reached through a proxy, which would read all of it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::super::address::Address;
use super::super::questions::Questions;
use super::super::remote::{Remote, RemoteError};
use super::ears::Ears;
use super::events::Attentive;
use super::lines::Overflow;
use super::pause::LONGEST;
use super::{MAX_MESSAGE, begin, either};

/// How long it may take to reach the machine.
const REACH: Duration = Duration::from_secs(10);

/// How long a server may take to say that it is one of today. One that hangs is met again; one
/// that is only slow should not be taken for an older one.
const MEETING: Duration = Duration::from_secs(10);

/// Talks to the server at an address.
pub(in super::super) async fn dial(
    address: &Address,
    questions: &Questions,
) -> Result<Arc<dyn Remote>, RemoteError> {
    let client = client(address.is_local()).map_err(|error| {
        RemoteError::connection("no connection can be made from here").because(error)
    })?;
    let mut waits = ExponentialBackoff::default();
    waits.max_delay = Some(LONGEST);
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(address.headers.clone())
        .max_sse_event_size(MAX_MESSAGE)
        // What was sent is not sent again, least of all to a server whose tools may be others
        // by now.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(waits);
    if let Some(token) = &address.bearer {
        config = config.auth_header(token.clone());
    }
    let meet = |mode| {
        let ears = Arc::new(Ears::new(questions.clone()));
        let client = Attentive { client: client.clone(), ears: Arc::clone(&ears) };
        let transport = StreamableHttpClientTransport::with_client(client, config.clone());
        async move { begin(transport, None, Overflow::default(), None, ears, mode).await }
    };
    either(meet, MEETING).await
}

fn client(is_local: bool) -> reqwest::Result<reqwest::Client> {
    // One that the host chose before stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(REACH)
        .pool_max_idle_per_host(0);
    // Proxies are those of the environment.
    if is_local { client.no_proxy() } else { client }.build()
}
