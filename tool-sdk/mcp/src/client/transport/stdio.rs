//! Stdio: starts a program as a server, and connects over two streams.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::ClientLifecycleMode;
use tokio::io::{AsyncRead, AsyncWrite};
use tool_sdk_process::internal::PipedChild;

use super::line_transport::{LineTransport, ProtocolViolation};
use super::notifications::NotificationHandler;
use super::{ConnectError, connect_with_fallback, start_session};
use crate::client::config::ServerCommand;
use crate::client::remote::{RemoteConnection, RemoteError, RemoteFuture};
use crate::client::server_requests::ClientFeatures;

/// How long a server may take to answer the 2026 handshake, before the older one is tried over the
/// same streams.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a program and connects to it.
pub(crate) fn start_program<'a>(
    launch: &'a ServerCommand,
    questions: &'a ClientFeatures,
) -> RemoteFuture<'a, Arc<dyn RemoteConnection>> {
    let command = launch.build_command();
    let meet = move |mode| {
        let started = match &command {
            Ok(command) => PipedChild::spawn(command, launch.exit_timeout)
                .map_err(|error| RemoteError::connection(error.to_string()).with_source(error)),
            Err(error) => Err(RemoteError::connection(format_args!(
                "cannot enter the working directory of the server: {error}"
            ))),
        };
        let notifications = Arc::new(NotificationHandler::new(questions.clone()));
        async move {
            let (child, output, input) = started?;
            connect_io(output, input, Some(child), notifications, mode).await
        }
    };
    // A program that starts slowly must not be started twice.
    Box::pin(connect_with_fallback(meet, Duration::MAX))
}

/// A pending connection. Boxed, so that it is `Send` for any two streams.
type StartFuture =
    Pin<Box<dyn Future<Output = Result<Arc<dyn RemoteConnection>, ConnectError>> + Send>>;

/// Connects over two streams.
pub(super) fn connect_io<R, W>(
    read: R,
    write: W,
    child: Option<PipedChild>,
    notifications: Arc<NotificationHandler>,
    mode: ClientLifecycleMode,
) -> StartFuture
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let violation = ProtocolViolation::default();
    let lines = LineTransport::new(read, write, violation.clone());
    Box::pin(start_session(lines, discover_timeout(&mode), violation, child, notifications, mode))
}

/// Returns no timeout for a server that already failed the older handshake: it is only slow.
pub(super) fn discover_timeout(mode: &ClientLifecycleMode) -> Option<Duration> {
    match mode {
        ClientLifecycleMode::Discover { .. } => None,
        _ => Some(DISCOVER_TIMEOUT),
    }
}
