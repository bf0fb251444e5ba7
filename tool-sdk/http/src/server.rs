//! Accepts connections and serves the routes on each.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::task::JoinSet;
use tool_sdk_mcp::Server;
use tower::ServiceExt as _;

use super::connection_limiter::{ConnectionLimiter, ConnectionSlot};
use super::listener::HttpStream;
use super::router::whole_router;
use super::{HttpListener, HttpOptions};

/// How long a client may take for the head of a request, and how long a connection may be idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long accepting pauses when the system has no room for another connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// How long running requests may take after the shutdown was requested.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves all clients that know a token, over streamable HTTP at `/mcp`. Listens at a TCP listener
/// or at a [`UnixSocket`](super::UnixSocket), whose clients send `localhost` as the host.
///
/// # Errors
///
/// Fails when connections cannot be accepted.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::mcp::{HttpOptions, Server, Token, serve_http};
/// use tool_sdk::{Pipeline, Registry, Session};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::new(Pipeline::new(Registry::linked()?), Session::default());
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// serve_http(&server, listener, HttpOptions::new(Token::random()?)).await?;
/// # Ok(())
/// # }
/// ```
pub fn serve_http<L: Into<HttpListener>>(
    server: &Server,
    listener: L,
    options: HttpOptions,
) -> impl Future<Output = io::Result<()>> + Send + use<L> {
    let server = server.clone().with_shutdown(options.shutdown.clone());
    let listener = listener.into();
    async move {
        let router = whole_router(&server, &options, listener.local_hosts()?);
        accept_connections(listener, router, &options).await
    }
}

/// Serves until connections cannot be accepted any more, or until the shutdown.
pub(super) async fn accept_connections(
    listener: HttpListener,
    router: Router,
    options: &HttpOptions,
) -> io::Result<()> {
    let limiter = ConnectionLimiter::new(options.max_connections);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = options.shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) if is_permanent(&error) => return Err(error),
            Err(_) => {
                tokio::time::sleep(ACCEPT_BACKOFF).await;
                continue;
            }
        };
        let (router, slot) = (router.clone(), limiter.acquire_slot());
        let shutdown = options.shutdown.clone();
        connections.spawn(async move {
            let serving = serve_connection(stream, router, Arc::clone(&slot), async move {
                shutdown.cancelled().await;
            });
            tokio::select! {
                () = serving => {}
                () = slot.wait_for_eviction() => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
    // From here on the system refuses connections.
    drop(listener);
    // Dropping what still runs closes its connection.
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await;
    Ok(())
}

/// Whether accepting will never work again.
fn is_permanent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Serves one connection until one of the two sides ends it.
async fn serve_connection(
    stream: HttpStream,
    router: Router,
    slot: Arc<ConnectionSlot>,
    shutdown: impl Future<Output = ()>,
) {
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&slot));
        request
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = pin!(connection);
    // A connection error does not concern other connections.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = shutdown => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
