//! A long-running child whose standard input and output are a transport, such as an MCP server
//! over stdio.
//!
//! **Invariant:** standard error is always drained, and only its head and tail are kept.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::capture::{CapturedOutput, OutputCapture, read_chunks};
use super::program::ActiveSandbox;
use super::sandbox::SandboxStatus;
use super::spawn::{HostStdio, InputWriter, OutputReader, StdioMode};
use super::tag::ProcessTag;
use super::tree::ProcessTree;
use super::{Command, RunError};

/// A running child with piped stdio.
///
/// The child is expected to exit when its standard input is closed. [`shut_down`](Self::shut_down)
/// waits for that; dropping the child waits in the background. Then the process tree gets `SIGTERM`,
/// and after the grace period `SIGKILL`.
pub struct PipedChild {
    /// `None` once it is shut down.
    running: Option<RunningChild>,
    exit_timeout: Duration,
    /// The status of the sandbox when it enforces less than the policy.
    sandbox_shortfall: Option<SandboxStatus>,
    stderr: StderrCapture,
    /// Triggered when standard error is closed.
    stderr_closed: CancellationToken,
}

impl fmt::Debug for PipedChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piped").finish_non_exhaustive()
    }
}

/// The processes of a child, and what must exist as long as they run.
struct RunningChild {
    tree: ProcessTree,
    _confinement: ActiveSandbox,
}

impl RunningChild {
    /// Waits for the child to exit by itself, then ends the process tree.
    async fn shut_down(mut self, exit_timeout: Duration) {
        let _ = tokio::time::timeout(exit_timeout, self.tree.wait()).await;
        self.tree.shut_down().await;
    }
}

impl Drop for PipedChild {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        // Without a runtime, dropping the process tree ends it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(running.shut_down(self.exit_timeout));
        }
    }
}

/// The captured standard error of a running child: head and tail.
#[derive(Clone, Debug)]
pub struct StderrCapture(Arc<Mutex<OutputCapture>>);

impl StderrCapture {
    fn with_limit(keep: usize) -> Self {
        Self(Arc::new(Mutex::new(OutputCapture::new(keep))))
    }

    /// Returns what was captured so far.
    pub fn snapshot(&self) -> CapturedOutput {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().finish()
    }

    fn push(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

impl PipedChild {
    /// Starts the command; ignores its timeout and standard input. `exit_timeout` is how long the
    /// child may take to exit once its standard input is closed.
    pub fn spawn(
        run: &Command,
        exit_timeout: Duration,
    ) -> Result<(Self, OutputReader, InputWriter), RunError> {
        let failed = |source| RunError::Spawn {
            program: run.spec.program.to_string_lossy().into_owned(),
            source,
        };
        let mark = ProcessTag::new_unique().map_err(failed)?;
        let (confined, confinement) = run.spec.wrap_in_sandbox()?;
        let (tree, streams) =
            ProcessTree::spawn(&confined, mark, StdioMode::PipedStdin, run.grace_period)
                .map_err(failed)?;
        let HostStdio { stdin: Some(stdin), stdout, stderr: Some(stderr), .. } = streams else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let complaints = StderrCapture::with_limit(run.output_limit);
        let kept = complaints.clone();
        let heard = CancellationToken::new();
        let end = heard.clone().drop_guard();
        tokio::spawn(async move {
            let _end = end;
            read_chunks(stderr, |part| kept.push(part)).await;
        });
        let shortfall = run.spec.sandbox.find_shortfall(confinement.status.as_ref());
        let piped = Self {
            running: Some(RunningChild { tree, _confinement: confinement }),
            exit_timeout,
            sandbox_shortfall: shortfall,
            stderr: complaints,
            stderr_closed: heard,
        };
        Ok((piped, stdout, stdin))
    }

    /// Waits until the child exits by itself, because its standard input is closed, or ends it with
    /// all that it started.
    pub async fn shut_down(mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down(self.exit_timeout).await;
        }
    }

    /// Returns the standard error of a child that exited, waiting up to 500 ms for its end.
    pub async fn final_stderr(&self) -> String {
        const SOON: Duration = Duration::from_millis(500);
        let _ = tokio::time::timeout(SOON, self.stderr_closed.cancelled()).await;
        self.stderr.snapshot().to_text()
    }

    /// Returns the status of the sandbox when it enforces less than the policy.
    pub fn sandbox_shortfall(&self) -> Option<&SandboxStatus> {
        self.sandbox_shortfall.as_ref()
    }

    /// Returns the capture of standard error.
    pub fn stderr(&self) -> &StderrCapture {
        &self.stderr
    }
}
