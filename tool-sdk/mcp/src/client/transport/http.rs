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

use super::backoff::MAX_DELAY;
use super::line_transport::ProtocolViolation;
use super::notifications::NotificationHandler;
use super::sse::LenientHttpClient;
use super::{MAX_MESSAGE_BYTES, connect_with_fallback, start_session};
use crate::client::authorization::TokenSource;
use crate::client::http_endpoint::HttpEndpoint;
use crate::client::remote::{RemoteConnection, RemoteError};
use crate::client::server_requests::ClientFeatures;

/// The timeout for opening a TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to answer the 2026 handshake. After that the older one is tried, so
/// the time is long enough for a server that is merely slow.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the server at an endpoint. `tokens` authorizes the requests, if the host configured
/// nothing that does.
pub(crate) async fn connect_http(
    address: &HttpEndpoint,
    questions: &ClientFeatures,
    tokens: Option<&Arc<TokenSource>>,
) -> Result<Arc<dyn RemoteConnection>, RemoteError> {
    let client = build_client(address.is_loopback()).map_err(|error| {
        RemoteError::connection("cannot set up an HTTP client").with_source(error)
    })?;
    let mut waits = ExponentialBackoff::default();
    waits.max_delay = Some(MAX_DELAY);
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(address.headers.clone())
        .max_sse_event_size(MAX_MESSAGE_BYTES)
        // Requests are not sent again in a new session, whose tools may be others.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(waits);
    if let Some(token) = &address.bearer_token {
        config = config.auth_header(token.clone());
    }
    let meet = |mode| {
        let notifications = Arc::new(NotificationHandler::new(questions.clone()));
        let client = LenientHttpClient {
            client: client.clone(),
            notifications: Arc::clone(&notifications),
            tokens: tokens.cloned(),
        };
        let transport = StreamableHttpClientTransport::with_client(client, config.clone());
        async move {
            let violation = ProtocolViolation::default();
            start_session(transport, None, violation, None, notifications, mode).await
        }
    };
    connect_with_fallback(meet, DISCOVER_TIMEOUT).await
}

fn build_client(is_local: bool) -> reqwest::Result<reqwest::Client> {
    // Fails when the host installed a provider before, which then stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(0);
    // Proxies come from the environment.
    if is_local { client.no_proxy() } else { client }.build()
}
