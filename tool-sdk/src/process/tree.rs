//! A running child with its descendants, which are terminated together.
//!
//! **Invariant:** dropping a [`ProcessTree`] whose child is running sends `SIGTERM`, and after
//! the grace period `SIGKILL`.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

use super::group::Group;
use super::mark::Mark;
use super::program::Program;
use super::start::{Child, Started, Streams, Wiring, start};

/// How long to wait for a killed child. One that hangs in the kernel is reaped in the
/// background.
const REAP: Duration = Duration::from_millis(500);

/// A child with all its descendants.
#[derive(Debug)]
pub(super) struct Tree {
    /// `None` after [`shut_down`](ProcessTree::shut_down).
    running: Option<Running>,
    grace: Duration,
}

impl Tree {
    /// Starts `program` with the tag `mark`; `grace` is the time between `SIGTERM` and `SIGKILL`.
    pub(super) fn start(
        program: &Program,
        mark: Mark,
        wiring: Wiring,
        grace: Duration,
    ) -> io::Result<(Self, Streams)> {
        let Started { child, streams } = start(program, &mark, wiring)?;
        let group = Group::of(&child);
        Ok((Self { running: Some(Running { child, group, mark }), grace }, streams))
    }

    #[cfg(unix)]
    pub(super) fn group(&self) -> Option<Group> {
        self.running.as_ref().map(|running| running.group.clone())
    }

    /// Waits for the child, not for its descendants.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.running {
            Some(running) => running.child.wait().await,
            None => Err(io::Error::other("the child was ended")),
        }
    }

    /// Terminates the tree; returns the exit status of the child if it is known.
    pub(super) async fn end(&mut self) -> Option<ExitStatus> {
        let mut running = self.running.take()?;
        running.terminate();
        running.end_after(self.grace).await
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take().filter(Running::is_alive) else { return };
        running.terminate();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(running.end_after(self.grace));
        }
    }
}

/// The running processes of a tree; dropping this kills them without a grace period.
#[derive(Debug)]
struct Running {
    child: Child,
    group: Group,
    mark: Mark,
}

impl Running {
    /// Returns whether no exit of the child was observed.
    fn is_alive(&self) -> bool {
        self.child.id().is_some()
    }

    /// Signals processes outside of the group first: they are found through their parents, which
    /// are in the group.
    fn terminate(&mut self) {
        self.mark.terminate(self.group.number());
        self.group.terminate();
    }

    fn kill(&mut self) {
        self.mark.kill();
        self.group.kill(&mut self.child);
    }

    async fn end_after(mut self, grace: Duration) -> Option<ExitStatus> {
        let early = timeout(grace, self.child.wait()).await;
        // Descendants must not outlive the child.
        self.kill();
        match early {
            Ok(status) => status.ok(),
            Err(_) => timeout(REAP, self.child.wait()).await.ok()?.ok(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_alive() {
            self.kill();
        }
        // Dropping the child reaps it, and then its pid may be reused.
        self.group.close();
    }
}
