//! A running child with its descendants, which are terminated together.
//!
//! **Invariant:** dropping a [`ProcessTree`] whose child is running sends `SIGTERM`, and after
//! the grace period `SIGKILL`.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

use super::group::ProcessGroup;
use super::program::CommandSpec;
use super::spawn::{ChildProcess, HostStdio, SpawnedChild, StdioMode, spawn_child};
use super::tag::ProcessTag;

/// How long to wait for a killed child. One that hangs in the kernel is reaped in the
/// background.
const REAP_TIMEOUT: Duration = Duration::from_millis(500);

/// A child with all its descendants.
#[derive(Debug)]
pub(super) struct ProcessTree {
    /// `None` after [`shut_down`](ProcessTree::shut_down).
    running: Option<RunningTree>,
    grace: Duration,
}

impl ProcessTree {
    /// Starts `spec` with the tag `mark`; `grace` is the time between `SIGTERM` and `SIGKILL`.
    pub(super) fn spawn(
        spec: &CommandSpec,
        mark: ProcessTag,
        wiring: StdioMode,
        grace: Duration,
    ) -> io::Result<(Self, HostStdio)> {
        let SpawnedChild { child, streams } = spawn_child(spec, &mark, wiring)?;
        let group = ProcessGroup::of_child(&child);
        Ok((Self { running: Some(RunningTree { child, group, tag: mark }), grace }, streams))
    }

    #[cfg(unix)]
    pub(super) fn group(&self) -> Option<ProcessGroup> {
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
    pub(super) async fn shut_down(&mut self) -> Option<ExitStatus> {
        let mut running = self.running.take()?;
        running.terminate();
        running.kill_after(self.grace).await
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take().filter(RunningTree::is_alive) else { return };
        running.terminate();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(running.kill_after(self.grace));
        }
    }
}

/// The running processes of a tree; dropping this kills them without a grace period.
#[derive(Debug)]
struct RunningTree {
    child: ChildProcess,
    group: ProcessGroup,
    tag: ProcessTag,
}

impl RunningTree {
    /// Returns whether no exit of the child was observed.
    fn is_alive(&self) -> bool {
        self.child.id().is_some()
    }

    /// Signals processes outside of the group first: they are found through their parents, which
    /// are in the group.
    fn terminate(&mut self) {
        self.tag.terminate(self.group.pgid());
        self.group.terminate();
    }

    fn kill(&mut self) {
        self.tag.kill();
        self.group.kill(&mut self.child);
    }

    async fn kill_after(mut self, grace: Duration) -> Option<ExitStatus> {
        let early = timeout(grace, self.child.wait()).await;
        // Descendants must not outlive the child.
        self.kill();
        match early {
            Ok(status) => status.ok(),
            Err(_) => timeout(REAP_TIMEOUT, self.child.wait()).await.ok()?.ok(),
        }
    }
}

impl Drop for RunningTree {
    fn drop(&mut self) {
        if self.is_alive() {
            self.kill();
        }
        // Dropping the child reaps it, and then its pid may be reused.
        self.group.close();
    }
}
