//! Background processes of a session, addressed by id.
//!
//! The shell tools of the standard library start, read, write and kill them between calls. At
//! most `MAX_PROCESSES` are kept; the least recently used one is evicted.
//!
//! **Invariant:** dropping the last handle kills every process that was started here, with all
//! descendants, also those of processes that have exited. Only a process that evades tracking on
//! purpose, outside of a sandbox, survives.

mod command;
mod process;
mod pty_input;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::command::BackgroundCommand;
pub use self::process::{AttachedProgram, BackgroundProcess, ProcessOutput, PtyInputError};
use super::RunError;
use super::sandbox::{PlaceholderDirs, SandboxPolicy};
use super::tag::ProcessTag;

/// How many processes are kept, including exited ones. When all are kept, one of them is not in use
/// by a call, so that there is room for one more.
const MAX_PROCESSES: usize = MAX_ATTENDED + MAX_CONCURRENT + NEVER_EVICTED;

/// How many processes that may run on after their call are started, and waited for, by calls at the
/// same time.
pub const MAX_ATTENDED: usize = 64;

/// How many processes that end with their call run at the same time.
const MAX_CONCURRENT: usize = 16;

/// How many of the most recently used processes are never evicted.
const NEVER_EVICTED: usize = 8;

/// The ids that models see: short, and random so that they are not guessed.
const ID_RANGE: std::ops::Range<u32> = 1_000..100_000;

/// The time between `SIGTERM` and `SIGKILL` for leftover processes at the end of the session.
const FINAL_GRACE: Duration = Duration::from_secs(2);

/// The background processes of a session.
///
/// Cheap to clone: clones share the processes. A tool gets those of its session with
/// `session.extension::<BackgroundProcesses>()`: the ones that the host attached, or the session's
/// own, which end with its last clone. Sessions of different users or agents never share them.
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
pub struct BackgroundProcesses(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: Mutex<ProcessTable>,
    slots: Arc<Semaphore>,
    attended: Arc<Semaphore>,
}

/// A slot for running one process, released when it is dropped.
#[derive(Debug)]
pub struct ProcessSlot {
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Default)]
struct ProcessTable {
    /// Least recently used first.
    processes: Vec<Arc<BackgroundProcess>>,
    /// The parent tag of all processes; created with the first process.
    tag: Option<ProcessTag>,
    started: u64,
    /// The sandbox placeholders, which descendants of exited processes need as well.
    placeholders: HashMap<SandboxPolicy, PlaceholderDirs>,
}

impl BackgroundProcesses {
    /// Waits in FIFO order for one of `MAX_CONCURRENT` slots.
    ///
    /// For processes that end with their call; for others see
    /// [`acquire_attended_slot`](Self::acquire_attended_slot).
    pub async fn acquire_slot(&self) -> ProcessSlot {
        // Cannot fail: the semaphore is never closed.
        ProcessSlot { _permit: Arc::clone(&self.0.slots).acquire_owned().await.ok() }
    }

    /// Waits in FIFO order for one of [`MAX_ATTENDED`] slots, for a call that starts a process and
    /// waits for its output. The process may run on when the slot is released.
    pub async fn acquire_attended_slot(&self) -> ProcessSlot {
        ProcessSlot { _permit: Arc::clone(&self.0.attended).acquire_owned().await.ok() }
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
    pub fn spawn(&self, spawn: &BackgroundCommand) -> Result<Arc<BackgroundProcess>, RunError> {
        let cannot = |source| spawn.spawn_error(source);
        let mut table = self.0.lock_table();
        let removed = table.evict_one().map_err(cannot)?;
        let id = table.allocate_id().map_err(cannot)?;
        let mark = table.next_tag().map_err(cannot)?;
        let process = Arc::new(BackgroundProcess::spawn(id, spawn, mark)?);
        if let Some(stand_ins) = process.placeholders() {
            let policy = spawn.spec.sandbox.without_unreadable_paths();
            table.placeholders.insert(policy, stand_ins);
        }
        table.processes.push(Arc::clone(&process));
        drop(table);
        // Dropping it terminates it; do that without the lock.
        drop(removed);
        Ok(process)
    }

    /// Returns the process with this id and marks it as recently used.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<Arc<BackgroundProcess>> {
        let mut table = self.0.lock_table();
        let at = table.processes.iter().position(|process| process.id() == id)?;
        let process = table.processes.remove(at);
        table.processes.push(Arc::clone(&process));
        Some(process)
    }

    /// Removes a process; it is terminated with its last handle.
    pub fn remove(&self, id: u32) -> Option<Arc<BackgroundProcess>> {
        let mut table = self.0.lock_table();
        let at = table.processes.iter().position(|process| process.id() == id)?;
        Some(table.processes.remove(at))
    }

    /// Terminates all processes and their descendants, as dropping the last handle does.
    pub fn end_all(&self) {
        let table = std::mem::take(&mut *self.0.lock_table());
        drop(table);
    }

    /// Terminates all processes and their descendants, and waits until they have ended: at most for
    /// the grace period of each, and two seconds more for descendants of processes that had exited
    /// before.
    pub async fn shut_down(&self) {
        let mut table = std::mem::take(&mut *self.0.lock_table());
        join_all(table.processes.iter().map(|process| process.kill())).await;
        let Some(mark) = table.tag.take() else { return };
        // Dropping this future kills what is left.
        let left = RemainingProcesses(mark);
        if left.0.terminate(None) > 0 {
            tokio::time::sleep(FINAL_GRACE).await;
        }
    }

    /// Returns a handle that keeps no process running.
    #[must_use]
    pub fn downgrade(&self) -> WeakBackgroundProcesses {
        WeakBackgroundProcesses(Arc::downgrade(&self.0))
    }

    /// Returns all processes, least recently used first.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<BackgroundProcess>> {
        self.0.lock_table().processes.clone()
    }
}

/// The background processes of a session that may have ended.
#[derive(Clone, Debug)]
pub struct WeakBackgroundProcesses(Weak<Inner>);

impl WeakBackgroundProcesses {
    /// Returns the processes, unless the session has ended.
    #[must_use]
    pub fn upgrade(&self) -> Option<BackgroundProcesses> {
        self.0.upgrade().map(BackgroundProcesses)
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            slots: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            attended: Arc::new(Semaphore::new(MAX_ATTENDED)),
        }
    }
}

impl Inner {
    fn lock_table(&self) -> MutexGuard<'_, ProcessTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessTable {
    fn allocate_id(&self) -> io::Result<u32> {
        loop {
            let mut bytes = [0; 4];
            getrandom::fill(&mut bytes).map_err(io::Error::other)?;
            let id = ID_RANGE.start + u32::from_ne_bytes(bytes) % (ID_RANGE.end - ID_RANGE.start);
            if self.processes.iter().all(|process| process.id() != id) {
                return Ok(id);
            }
        }
    }

    fn next_tag(&mut self) -> io::Result<ProcessTag> {
        let mark = match self.tag.take() {
            Some(mark) => mark,
            None => ProcessTag::new_unique()?,
        };
        self.started += 1;
        let next = mark.derive_child(self.started);
        self.tag = Some(mark);
        Ok(next)
    }

    /// Removes a process if there is no room for one more.
    fn evict_one(&mut self) -> io::Result<Option<Arc<BackgroundProcess>>> {
        if self.processes.len() < MAX_PROCESSES {
            return Ok(None);
        }
        let idle = &self.processes[..self.processes.len().saturating_sub(NEVER_EVICTED)];
        // A call that waits for a process has a handle of its own.
        let free = |process: &Arc<BackgroundProcess>| Arc::strong_count(process) == 1;
        let ended = |process: &Arc<BackgroundProcess>| free(process) && process.exit().is_some();
        match idle.iter().position(ended).or_else(|| idle.iter().position(free)) {
            Some(place) => Ok(Some(self.processes.remove(place))),
            None => Err(io::Error::other("too many background processes are in use")),
        }
    }
}

impl Drop for ProcessTable {
    fn drop(&mut self) {
        // Each gets SIGTERM, and SIGKILL after its grace period.
        self.processes.clear();
        let Some(mark) = self.tag.take() else { return };
        if !self.placeholders.is_empty() {
            // The placeholders are removed now, so sandboxed processes must be killed before.
            return mark.kill();
        }
        mark.terminate(None);
        let left = RemainingProcesses(mark);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(FINAL_GRACE).await;
                drop(left);
            });
        }
    }
}

/// The tag of leftover processes; dropping it kills them.
struct RemainingProcesses(ProcessTag);

impl Drop for RemainingProcesses {
    fn drop(&mut self) {
        self.0.kill();
    }
}

#[cfg(test)]
mod tests;
