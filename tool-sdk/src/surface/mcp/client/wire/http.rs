//! Streamable HTTP: connects to a server at a URL.
//!
//! **Invariant:** requests go to the configured URL only: redirects are not followed, and loopback
//! servers are not reached through a proxy, which could read the traffic.

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

/// The timeout for opening a TCP connection.
const REACH: Duration = Duration::from_secs(10);

/// How long a server may take to answer the 2026 handshake. After that the older one is tried, so
/// the time is long enough for a server that is merely slow.
const MEETING: Duration = Duration::from_secs(10);

/// Connects to the server at an endpoint.
pub(in super::super) async fn dial(
    address: &Address,
    questions: &Questions,
) -> Result<Arc<dyn Remote>, RemoteError> {
    let client = client(address.is_local())
        .map_err(|error| RemoteError::connection("cannot set up an HTTP client").because(error))?;
    let mut waits = ExponentialBackoff::default();
    waits.max_delay = Some(LONGEST);
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(address.headers.clone())
        .max_sse_event_size(MAX_MESSAGE)
        // Requests are not sent again in a new session, whose tools may be others.
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
    // Fails when the host installed a provider before, which then stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(REACH)
        .pool_max_idle_per_host(0);
    // Proxies come from the environment.
    if is_local { client.no_proxy() } else { client }.build()
}
