//! A running child and what it started: nothing of it outlives who wanted it.
//!
//! **Invariant:** a [`Tree`] that is dropped before its child has ended is asked to end,
//! and after the grace it is ended.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::group::Group;

/// How long a killed child is waited for. One that hangs in the kernel is left to the
/// runtime, which reaps it when it goes.
const REAP: Duration = Duration::from_millis(500);

/// A child with its process group.
#[derive(Debug)]
pub(super) struct Tree {
    /// Taken when it is ended.
    running: Option<Running>,
    grace: Duration,
}

impl Tree {
    /// Starts `command`; when it has to end early, its group has `grace` to tidy up.
    pub(super) fn spawn(command: &mut Command, grace: Duration) -> io::Result<Self> {
        Group::lead(command);
        let child = command.spawn()?;
        let group = Group::of(&child);
        Ok(Self { running: Some(Running { child, group }), grace })
    }

    pub(super) fn child(&mut self) -> Option<&mut Child> {
        self.running.as_mut().map(|running| &mut running.child)
    }

    /// Waits for the child, not for what it started.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self.child() {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("the child was ended")),
        }
    }

    /// Ends the group.
    pub(super) async fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.group.terminate();
            running.end_after(self.grace).await;
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let Some(running) = self.running.take().filter(Running::is_alive) else { return };
        running.group.terminate();
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
}

impl Running {
    /// Whether the child was not waited for yet.
    fn is_alive(&self) -> bool {
        self.child.id().is_some()
    }

    async fn end_after(mut self, grace: Duration) {
        // What comes of the waiting is the same either way: the group is ended.
        let _ = timeout(grace, self.child.wait()).await;
        self.group.kill(&mut self.child);
        let _ = timeout(REAP, self.child.wait()).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_alive() {
            self.group.kill(&mut self.child);
        }
    }
}
