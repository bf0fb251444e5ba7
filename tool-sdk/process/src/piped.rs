//! A long-running child whose standard input and output are a transport, such as an MCP server
//! over stdio.
//!
//! **Invariant:** standard error is always drained, and only its head and tail are kept.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::capture::{CapturedOutput, OutputCapture, read_chunks};
use super::program::ActiveSandbox;
use super::sandbox::SandboxStatus;
use super::spawn::{HostStdio, InputWriter, OutputReader, StdioMode};
use super::tag::ProcessTag;
use super::tree::ProcessTree;
use super::{Command, RunError};

/// A running child with piped stdio; dropping it terminates the process tree.
pub struct PipedChild {
    _tree: ProcessTree,
    _confinement: ActiveSandbox,
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
    /// Starts the command; ignores its timeout and standard input.
    pub fn spawn(run: &Command) -> Result<(Self, OutputReader, InputWriter), RunError> {
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
            _tree: tree,
            _confinement: confinement,
            sandbox_shortfall: shortfall,
            stderr: complaints,
            stderr_closed: heard,
        };
        Ok((piped, stdout, stdin))
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
