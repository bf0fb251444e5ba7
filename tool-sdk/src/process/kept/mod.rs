//! The processes that a conversation keeps: by number, within a limit, and no longer than
//! the conversation.
//!
//! **Invariant:** when the last handle is dropped, nothing that was started here is left,
//! also not what an ended process had put into the background. Only what hides on purpose, and
//! without a sandbox, is not found any more.

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

/// How many processes are kept, ended ones whose output nobody took among them.
const MOST: usize = 64;

/// How many run at once of those that end with the call.
const AT_ONCE: usize = 16;

/// How many of the last used ones are never ended for a new one.
const PROTECTED: usize = 8;

/// Numbers that models are given: easy to copy, and hard to guess from one another.
const IDS: std::ops::Range<u32> = 1_000..100_000;

/// How long what is left may tidy up at the end.
const GRACE: Duration = Duration::from_secs(2);

/// No pipeline has this number.
const KEPT: usize = usize::MAX;

/// The processes of a conversation.
///
/// Cheap to clone: clones keep the same processes.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
/// use tool_sdk::process::{Exit, Processes, Spawn};
///
/// let processes = Processes::default();
/// let cat = processes.start(&Spawn::exec("cat", ["-"]).terminal(true))?;
/// cat.type_in("hello\n\u{4}").await.expect("it reads");
///
/// let look = cat.look(Duration::from_secs(30), |_| {}).await;
/// assert_eq!(look.exit, Some(Exit::Code(0)));
/// assert!(look.output.text().contains("hello"));
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

/// The right to run one more program at the same time, given back when it is dropped.
#[derive(Debug)]
pub struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Default)]
struct Table {
    /// The least recently used first.
    processes: Vec<Arc<Process>>,
    /// What everything that was started here carries; made for the first process.
    mark: Option<Mark>,
    started: u64,
    /// What the sandboxes need, for what ended processes left running as well.
    stand_ins: HashMap<Policy, StandIns>,
}

impl Processes {
    /// Those of `session`: what the host lent, or its own, which end with its last clone.
    ///
    /// Sessions of different users or agents never share them.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        match session.lent().get::<Self>() {
            Some(lent) => (*lent).clone(),
            None => session.kept::<Self>(KEPT).clone(),
        }
    }

    /// Waits, first come, first served, until there are few enough that hold a turn.
    ///
    /// It is for programs that end with the call that started them; those that run on are
    /// limited by what is kept.
    pub async fn turn(&self) -> Turn {
        // Nobody closes it.
        Turn { _permit: Arc::clone(&self.0.turns).acquire_owned().await.ok() }
    }

    /// Starts a process and keeps it; when there are too many, one that has ended or was not
    /// used for long makes room, unless somebody waits for it.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be started, and when there are too many that somebody waits for.
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
        // Dropped without the lock: that ends it.
        drop(removed);
        Ok(process)
    }

    /// The process of this number, which counts as used.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<Arc<Process>> {
        let mut table = self.0.table();
        let at = table.processes.iter().position(|process| process.id() == id)?;
        let process = table.processes.remove(at);
        table.processes.push(Arc::clone(&process));
        Some(process)
    }

    /// Takes a process out; it ends with its last handle.
    pub fn forget(&self, id: u32) -> Option<Arc<Process>> {
        let mut table = self.0.table();
        let at = table.processes.iter().position(|process| process.id() == id)?;
        Some(table.processes.remove(at))
    }

    /// Ends all of them, and everything below them; who drops the last handle need not.
    pub fn end_all(&self) {
        let table = std::mem::take(&mut *self.0.table());
        drop(table);
    }

    /// All of them, the least recently used first.
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

    /// Takes out what has to go for one more.
    fn make_room(&mut self) -> io::Result<Option<Arc<Process>>> {
        if self.processes.len() < MOST {
            return Ok(None);
        }
        let idle = &self.processes[..self.processes.len().saturating_sub(PROTECTED)];
        // Whoever waits for a process has a handle of its own.
        let free = |process: &Arc<Process>| Arc::strong_count(process) == 1;
        let ended = |process: &Arc<Process>| free(process) && process.exit().is_some();
        match idle.iter().position(ended).or_else(|| idle.iter().position(free)) {
            Some(place) => Ok(Some(self.processes.remove(place))),
            None => Err(io::Error::other("too many programs are waited for at once")),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // Each is asked to end, and ended after its grace.
        self.processes.clear();
        let Some(mut mark) = self.mark.take() else { return };
        if !self.stand_ins.is_empty() {
            // What holds their sandbox together goes now, and they go before.
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

/// Whatever is left: dropping it gives no more grace.
struct Left(Mark);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.kill();
    }
}

#[cfg(test)]
mod tests;
