//! Background processes of a session, addressed by id.
//!
//! The shell tools of the standard library start, read, write and kill them between calls. At
//! most [`MAX_PROCESSES`] are kept; the least recently used one is evicted.
//!
//! **Invariant:** dropping the last handle kills every process that was started here, with all
//! descendants, also those of processes that have exited. Only a process that evades tracking on
//! purpose, outside of a sandbox, survives.

mod live;
mod spawn;
mod typed;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::live::{Attached, Look, Process, TypeError};
pub use self::spawn::Spawn;
use super::RunError;
use super::mark::Mark;
use super::sandbox::{Policy, StandIns};
use crate::context::Session;

/// How many processes are kept, including exited ones.
const MOST: usize = 64;

/// How many processes that end with their call run at the same time.
const AT_ONCE: usize = 16;

/// How many of the most recently used processes are never evicted.
const PROTECTED: usize = 8;

/// The ids that models see: short, and random so that they are not guessed.
const IDS: std::ops::Range<u32> = 1_000..100_000;

/// The time between `SIGTERM` and `SIGKILL` for leftover processes at the end of the session.
const GRACE: Duration = Duration::from_secs(2);

/// The key of these processes in the session; no pipeline has this number.
const KEPT: usize = usize::MAX;

/// The background processes of a session.
///
/// Cheap to clone: clones share the processes.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
/// use tool_sdk::process::{BackgroundCommand, BackgroundProcesses, ExitOutcome};
///
/// let processes = BackgroundProcesses::default();
/// let cat = processes.spawn(&BackgroundCommand::new("cat", ["-"]).terminal(true))?;
/// cat.type_text("hello\n\u{4}").await.expect("it reads");
///
/// let read = cat.read_output(Duration::from_secs(30), |_| {}).await;
/// assert_eq!(read.exit, Some(ExitOutcome::Code(0)));
/// assert!(read.output.to_text().contains("hello"));
/// # Ok::<(), tool_sdk::process::RunError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Processes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: Mutex<Table>,
    turns: Arc<Semaphore>,
}

/// A slot for running one process, released when it is dropped.
#[derive(Debug)]
pub struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Default)]
struct Table {
    /// Least recently used first.
    processes: Vec<Arc<Process>>,
    /// The parent tag of all processes; created with the first process.
    mark: Option<Mark>,
    started: u64,
    /// The sandbox placeholders, which descendants of exited processes need as well.
    stand_ins: HashMap<Policy, StandIns>,
}

impl Processes {
    /// Returns those of `session`: the ones that the host attached, or its own, which end with its
    /// last clone.
    ///
    /// Sessions of different users or agents never share processes.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        match session.lent().get::<Self>() {
            Some(lent) => (*lent).clone(),
            None => session.kept::<Self>(KEPT).clone(),
        }
    }

    /// Waits in FIFO order for one of [`MAX_CONCURRENT`] slots.
    ///
    /// For processes that end with their call; those that keep running are limited by
    /// [`MAX_PROCESSES`].
    pub async fn turn(&self) -> Turn {
        // Cannot fail: the semaphore is never closed.
        Turn { _permit: Arc::clone(&self.0.turns).acquire_owned().await.ok() }
    }

    /// Starts a process and keeps it. At the limit, an exited or the least recently used process
    /// without other handles is evicted.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be started, or when every process that could be evicted is in use.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(&self, spawn: &Spawn) -> Result<Arc<Process>, RunError> {
        let cannot = |source| spawn.failed(source);
        let mut table = self.0.table();
        let removed = table.make_room().map_err(cannot)?;
        let id = table.free_id().map_err(cannot)?;
        let mark = table.next_mark().map_err(cannot)?;
        let process = Arc::new(Process::start(id, spawn, mark)?);
        if let Some(stand_ins) = process.stand_ins() {
            table.stand_ins.insert(spawn.program.sandbox.clone(), stand_ins);
        }
        table.processes.push(Arc::clone(&process));
        drop(table);
        // Dropping it terminates it; do that without the lock.
        drop(removed);
        Ok(process)
    }

    /// Returns the process with this id and marks it as recently used.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<Arc<Process>> {
        let mut table = self.0.table();
        let at = table.processes.iter().position(|process| process.id() == id)?;
        let process = table.processes.remove(at);
        table.processes.push(Arc::clone(&process));
        Some(process)
    }

    /// Removes a process; it is terminated with its last handle.
    pub fn forget(&self, id: u32) -> Option<Arc<Process>> {
        let mut table = self.0.table();
        let at = table.processes.iter().position(|process| process.id() == id)?;
        Some(table.processes.remove(at))
    }

    /// Terminates all processes and their descendants, as dropping the last handle does.
    pub fn end_all(&self) {
        let table = std::mem::take(&mut *self.0.table());
        drop(table);
    }

    /// Returns all processes, least recently used first.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Process>> {
        self.0.table().processes.clone()
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self { table: Mutex::default(), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn free_id(&self) -> io::Result<u32> {
        loop {
            let mut bytes = [0; 4];
            getrandom::fill(&mut bytes).map_err(io::Error::other)?;
            let id = IDS.start + u32::from_ne_bytes(bytes) % (IDS.end - IDS.start);
            if self.processes.iter().all(|process| process.id() != id) {
                return Ok(id);
            }
        }
    }

    fn next_mark(&mut self) -> io::Result<Mark> {
        let mark = match self.mark.take() {
            Some(mark) => mark,
            None => Mark::fresh()?,
        };
        self.started += 1;
        let next = mark.below(self.started);
        self.mark = Some(mark);
        Ok(next)
    }

    /// Removes a process if there is no room for one more.
    fn make_room(&mut self) -> io::Result<Option<Arc<Process>>> {
        if self.processes.len() < MOST {
            return Ok(None);
        }
        let idle = &self.processes[..self.processes.len().saturating_sub(PROTECTED)];
        // A call that waits for a process has a handle of its own.
        let free = |process: &Arc<Process>| Arc::strong_count(process) == 1;
        let ended = |process: &Arc<Process>| free(process) && process.exit().is_some();
        match idle.iter().position(ended).or_else(|| idle.iter().position(free)) {
            Some(place) => Ok(Some(self.processes.remove(place))),
            None => Err(io::Error::other("too many background processes are in use")),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // Each gets SIGTERM, and SIGKILL after its grace period.
        self.processes.clear();
        let Some(mut mark) = self.mark.take() else { return };
        if !self.stand_ins.is_empty() {
            // The placeholders are removed now, so sandboxed processes must be killed before.
            return mark.kill();
        }
        mark.terminate(None);
        let left = Left(mark);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(GRACE).await;
                drop(left);
            });
        }
    }
}

/// The tag of leftover processes; dropping it kills them.
struct Left(Mark);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.kill();
    }
}

#[cfg(test)]
mod tests;
