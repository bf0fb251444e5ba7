//! A long-running child whose standard input and output are a transport, such as an MCP server
//! over stdio.
//!
//! **Invariant:** standard error is always drained, and only its head and tail are kept.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::capture::{Capture, Captured, read};
use super::mark::Mark;
use super::program::Confinement;
use super::sandbox::Status;
use super::start::{Reader, Streams, Wiring, Writer};
use super::tree::Tree;
use super::{Run, RunError};

/// A running child with piped stdio; dropping it terminates the process tree.
pub(crate) struct Piped {
    _tree: Tree,
    _confinement: Confinement,
    /// The status of the sandbox when it enforces less than the policy.
    shortfall: Option<Status>,
    complaints: Complaints,
    /// Triggered when standard error is closed.
    heard: CancellationToken,
}

impl fmt::Debug for Piped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piped").finish_non_exhaustive()
    }
}

/// The captured standard error of a running child: head and tail.
#[derive(Clone, Debug)]
pub(crate) struct Complaints(Arc<Mutex<Capture>>);

impl Complaints {
    fn keep(keep: usize) -> Self {
        Self(Arc::new(Mutex::new(Capture::new(keep))))
    }

    /// Returns what was captured so far.
    pub(crate) fn captured(&self) -> Captured {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().finish()
    }

    fn push(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

impl Piped {
    /// Starts the command; ignores its timeout and standard input.
    pub(crate) fn start(run: &Run) -> Result<(Self, Reader, Writer), RunError> {
        let failed = |source| RunError::Spawn {
            program: run.program.name.to_string_lossy().into_owned(),
            source,
        };
        let mark = Mark::fresh().map_err(failed)?;
        let (confined, confinement) = run.program.confined()?;
        let (tree, streams) =
            Tree::start(&confined, mark, Wiring::Fed, run.grace).map_err(failed)?;
        let Streams { input: Some(stdin), output: stdout, complaints: Some(stderr), .. } = streams
        else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let complaints = Complaints::keep(run.keep);
        let kept = complaints.clone();
        let heard = CancellationToken::new();
        let end = heard.clone().drop_guard();
        tokio::spawn(async move {
            let _end = end;
            read(stderr, |part| kept.push(part)).await;
        });
        let shortfall = run.program.sandbox.shortfall(confinement.status.as_ref());
        let piped = Self { _tree: tree, _confinement: confinement, shortfall, complaints, heard };
        Ok((piped, stdout, stdin))
    }

    /// Returns the standard error of a child that exited, waiting up to 500 ms for its end.
    pub(crate) async fn last_words(&self) -> String {
        const SOON: Duration = Duration::from_millis(500);
        let _ = tokio::time::timeout(SOON, self.heard.cancelled()).await;
        self.complaints.captured().text()
    }

    /// Returns the status of the sandbox when it enforces less than the policy.
    pub(crate) fn shortfall(&self) -> Option<&Status> {
        self.shortfall.as_ref()
    }

    /// Returns the capture of standard error.
    pub(crate) fn complaints(&self) -> &Complaints {
        &self.complaints
    }
}
