//! Stdio: starts a program as a server, and connects over two streams.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::ClientLifecycleMode;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::questions::Questions;
use super::super::remote::{Remote, RemoteError, RemoteWork};
use super::super::upstream::Launch;
use super::ears::Ears;
use super::lines::{Lines, Overflow};
use super::{Failed, begin, either};
use crate::process::Piped;

/// How long a server may take to answer the 2026 handshake, before the older one is tried over the
/// same streams.
const MEETING: Duration = Duration::from_secs(2);

/// Starts a program and connects to it.
pub(in super::super) fn launch<'a>(
    launch: &'a Launch,
    questions: &'a Questions,
) -> RemoteWork<'a, Arc<dyn Remote>> {
    let run = launch.run();
    let meet = move |mode| {
        let started = Piped::start(&run);
        let ears = Arc::new(Ears::new(questions.clone()));
        async move {
            let (child, output, input) = started
                .map_err(|error| RemoteError::connection(error.to_string()).because(error))?;
            over(output, input, Some(child), ears, mode).await
        }
    };
    // A program that starts slowly must not be started twice.
    Box::pin(either(meet, Duration::MAX))
}

/// A pending connection. Boxed, so that it is `Send` for any two streams.
type Beginning = Pin<Box<dyn Future<Output = Result<Arc<dyn Remote>, Failed>> + Send>>;

/// Connects over two streams.
pub(super) fn over<R, W>(
    read: R,
    write: W,
    child: Option<Piped>,
    ears: Arc<Ears>,
    mode: ClientLifecycleMode,
) -> Beginning
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let overflow = Overflow::default();
    let lines = Lines::new(read, write, overflow.clone());
    Box::pin(begin(lines, patience(&mode), overflow, child, ears, mode))
}

/// Returns no timeout for a server that already failed the older handshake: it is only slow.
pub(super) fn patience(mode: &ClientLifecycleMode) -> Option<Duration> {
    match mode {
        ClientLifecycleMode::Discover { .. } => None,
        _ => Some(MEETING),
    }
}
