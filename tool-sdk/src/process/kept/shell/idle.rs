//! The shells that wait for a script: few, and none for long.

use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Id;
use tokio::time::{Instant, sleep};

use super::super::live::{Process, Spawn};
use super::{Shell, is_for_kept_shell};
use crate::process::mark::Mark;

/// How many wait for scripts at most.
const MOST_IDLE: usize = 2;

/// How long one waits for a script at most, and how often that is looked at.
const LONGEST_IDLE: Duration = Duration::from_mins(5);
const TIDY: Duration = Duration::from_mins(1);

/// The shells of a conversation that wait for scripts.
#[derive(Default)]
pub(in super::super) struct Idle(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    shells: Vec<Shell>,
    /// The runtime in which somebody looks how long they wait.
    tidied_in: Option<Id>,
}

impl Idle {
    /// Runs `spawn` over a shell, where it wants one and can have one.
    pub(in super::super) fn start(
        self: &Arc<Self>,
        id: u32,
        spawn: &Spawn,
        mut mark: impl FnMut() -> io::Result<Mark>,
    ) -> Option<Process> {
        if !is_for_kept_shell(spawn) {
            return None;
        }
        let own = mark().ok()?;
        let waiting = self.take(spawn);
        let shell = waiting.or_else(|| Shell::start(spawn, mark().ok()?).ok())?;
        Some(shell.run(id, spawn, own, Arc::downgrade(self)))
    }

    /// Ends those that wait.
    pub(in super::super) fn end(&self) {
        // Dropped without the lock: that ends them.
        let shells = mem::take(&mut self.lock().shells);
        drop(shells);
    }

    fn take(&self, spawn: &Spawn) -> Option<Shell> {
        let mut waiting = self.lock();
        let shells = mem::take(&mut waiting.shells);
        // One that does not fit now never will: somebody ended it, or the host is another.
        let (mut fit, unfit): (Vec<Shell>, Vec<Shell>) =
            shells.into_iter().partition(|shell| shell.fits(spawn));
        let shell = fit.pop();
        waiting.shells = fit;
        drop(waiting);
        drop(unfit);
        shell
    }

    /// Takes a shell that is done.
    pub(super) fn put(self: &Arc<Self>, mut shell: Shell) {
        shell.idle_since = Instant::now();
        let runtime = shell.runtime;
        let mut waiting = self.lock();
        let surplus = (waiting.shells.len() >= MOST_IDLE).then(|| waiting.shells.remove(0));
        waiting.shells.push(shell);
        if waiting.tidied_in != Some(runtime) {
            waiting.tidied_in = Some(runtime);
            tokio::spawn(tidy(Arc::downgrade(self)));
        }
        drop(waiting);
        drop(surplus);
    }

    /// Ends those that wait for too long, and says whether others wait on.
    pub(super) fn end_old(&self) -> bool {
        let mut waiting = self.lock();
        let shells = mem::take(&mut waiting.shells);
        let (young, old): (Vec<Shell>, Vec<Shell>) =
            shells.into_iter().partition(|shell| shell.idle_since.elapsed() < LONGEST_IDLE);
        let goes_on = !young.is_empty();
        if !goes_on {
            waiting.tidied_in = None;
        }
        waiting.shells = young;
        drop(waiting);
        drop(old);
        goes_on
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Idle {
    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().shells.len()
    }

    /// Makes all of them wait for too long.
    pub(super) fn age(&self) {
        self.lock().shells.iter_mut().for_each(|shell| shell.idle_since -= LONGEST_IDLE);
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle").field("shells", &self.lock().shells.len()).finish_non_exhaustive()
    }
}

async fn tidy(idle: Weak<Idle>) {
    loop {
        sleep(TIDY).await;
        if !idle.upgrade().is_some_and(|idle| idle.end_old()) {
            return;
        }
    }
}
