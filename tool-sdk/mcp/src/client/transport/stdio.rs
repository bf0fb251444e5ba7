//! Stdio: starts a program as a server, and connects over two streams.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use tokio::io::{AsyncRead, AsyncWrite};
use tool_sdk_process::RunError;
use tool_sdk_process::internal::PipedChild;

use super::lent_transport::TransportSlot;
use super::line_transport::{LineTransport, ProtocolViolation};
use super::notifications::NotificationHandler;
use super::{ConnectError, lifecycle_mode, start_session};
use crate::client::config::ServerCommand;
use crate::client::remote::{RemoteConnection, RemoteError, RemoteFuture};
use crate::client::server_requests::ClientFeatures;

/// How long a server may take to answer the 2026 handshake, before the older one is tried over the
/// same streams.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a program and connects to it.
///
/// A program that does not know the 2026 handshake may exit, and is then started again. One that is
/// only slow is asked again over the same streams.
pub(crate) fn start_program<'a>(
    launch: &'a ServerCommand,
    features: &'a ClientFeatures,
) -> RemoteFuture<'a, Arc<dyn RemoteConnection>> {
    Box::pin(connect_program(launch, features))
}

async fn connect_program(
    launch: &ServerCommand,
    features: &ClientFeatures,
) -> Result<Arc<dyn RemoteConnection>, RemoteError> {
    let mut program = ServerProgram::start(launch)?;
    let mut failed = match program.shake_hands(lifecycle_mode(), features.clone()).await {
        Ok(connection) => return Ok(connection),
        Err(failed) => failed,
    };
    if failed.may_be_older {
        let mut program = ServerProgram::start(launch)?;
        match program.shake_hands(ClientLifecycleMode::Initialize, features.clone()).await {
            Ok(connection) => return Ok(connection),
            Err(older) => failed.error = older.error,
        }
    }
    if failed.may_be_slow {
        if let Ok(connection) = program.shake_hands(patient_mode(), features.clone()).await {
            return Ok(connection);
        }
        // The older handshake may have ended the program.
        let mut program = ServerProgram::start(launch)?;
        if let Ok(connection) = program.shake_hands(patient_mode(), features.clone()).await {
            return Ok(connection);
        }
    }
    Err(failed.error)
}

/// The 2026 handshake alone.
fn patient_mode() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

type ProgramOutput = Box<dyn AsyncRead + Send + Unpin>;
type ProgramInput = Box<dyn AsyncWrite + Send + Unpin>;

/// A program that is started, and not connected yet.
struct ServerProgram {
    child: Option<PipedChild>,
    transport: TransportSlot<LineTransport<ProgramOutput, ProgramInput>>,
    violation: ProtocolViolation,
}

impl ServerProgram {
    fn start(launch: &ServerCommand) -> Result<Self, RemoteError> {
        let command = launch.build_command().map_err(|error| {
            RemoteError::connection(format_args!(
                "cannot enter the working directory of the server: {error}"
            ))
        })?;
        let (child, output, input) =
            PipedChild::spawn(&command, launch.exit_timeout).map_err(start_error)?;
        let violation = ProtocolViolation::default();
        let (output, input): (ProgramOutput, ProgramInput) = (Box::new(output), Box::new(input));
        let lines = LineTransport::new(output, input, violation.clone());
        Ok(Self { child: Some(child), transport: TransportSlot::new(lines), violation })
    }

    /// Connects in one mode. If that fails, the program goes on and can be asked again.
    async fn shake_hands(
        &mut self,
        mode: ClientLifecycleMode,
        features: ClientFeatures,
    ) -> Result<Arc<dyn RemoteConnection>, ConnectError> {
        let Some(transport) = self.transport.lend() else {
            return Err(RemoteError::connection("the server is not connected").into());
        };
        let notifications = Arc::new(NotificationHandler::new(features));
        let (patience, violation) = (discover_timeout(&mode), self.violation.clone());
        let child = self.child.take();
        let session: StartFuture =
            Box::pin(start_session(transport, patience, violation, child, notifications, mode));
        session.await.map_err(|mut failed| {
            self.child = failed.child.take().map(|child| *child);
            failed
        })
    }
}

/// A pending connection. Boxed, so that it is `Send` for any two streams.
type StartFuture =
    Pin<Box<dyn Future<Output = Result<Arc<dyn RemoteConnection>, ConnectError>> + Send>>;

/// Returns the error of a program that did not start, with the reason of the system.
fn start_error(error: RunError) -> RemoteError {
    let message = match &error {
        RunError::Spawn { source, .. } => format!("{error}: {source}"),
        other => other.to_string(),
    };
    RemoteError::connection(message).with_source(error)
}

/// Connects over two streams.
pub(super) fn connect_io<R, W>(
    read: R,
    write: W,
    notifications: Arc<NotificationHandler>,
    mode: ClientLifecycleMode,
) -> StartFuture
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let violation = ProtocolViolation::default();
    let lines = LineTransport::new(read, write, violation.clone());
    let patience = discover_timeout(&mode);
    Box::pin(start_session(lines, patience, violation, None, notifications, mode))
}

/// Returns no timeout for a server that already failed the older handshake: it is only slow.
pub(super) fn discover_timeout(mode: &ClientLifecycleMode) -> Option<Duration> {
    match mode {
        ClientLifecycleMode::Discover { .. } => None,
        _ => Some(DISCOVER_TIMEOUT),
    }
}
