//! A running child and what it started: nothing of it outlives who wanted it.
//!
//! **Invariant:** a [`Tree`] that is dropped before its child has ended is asked to end,
//! and after the grace it is ended.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

use super::group::Group;
use super::mark::Mark;
use super::program::Program;
use super::start::{Child, Started, Streams, Wiring, start};

/// How long a killed child is waited for. One that hangs in the kernel is left to the
/// runtime, which reaps it when it goes.
const REAP: Duration = Duration::from_millis(500);

/// A child with everything below it.
#[derive(Debug)]
pub(super) struct Tree {
    /// Taken when it is ended.
    running: Option<Running>,
    grace: Duration,
}

impl Tree {
    /// Starts `program`, which carries `mark`; when it has to end early, its tree has `grace`
    /// to tidy up.
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

    /// Waits for the child, not for what it started.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.running {
            Some(running) => running.child.wait().await,
            None => Err(io::Error::other("the child was ended")),
        }
    }

    /// Ends the tree; how its child ended, where that can be known.
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

/// A child that is on its way out: dropping it gives no more grace.
#[derive(Debug)]
struct Running {
    child: Child,
    group: Group,
    mark: Mark,
}

impl Running {
    /// Whether nobody knows of the child's end yet.
    fn is_alive(&self) -> bool {
        self.child.id().is_some()
    }

    /// Those outside of the group come first: it is their parents that lead to them.
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
        // What the child left behind does not outlive it.
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
        // The child goes with this, and then its number may be another's.
        self.group.close();
    }
}
