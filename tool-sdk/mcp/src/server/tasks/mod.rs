//! Calls that run as tasks: the client gets an id at once, and collects the result later, also after it
//! has connected again.
//!
//! ```text
//! call ─▶ SuspendableCall ─▶ task_run ─▶ CallTask ◀─ task_requests ◀─ tasks/get, result, update, cancel, list
//! ```
//!
//! A client of 2025-11-25 asks for a task in the call. For a modern client the server decides: a call
//! becomes a task once its tool runs and takes a moment, so that a question from before the tool runs
//! is asked by the result of the call itself.
//!
//! **Invariant:** a task is a call of the pipeline like any other; only its result is collected later. It
//! belongs to the principal that made the call, and for two streams to the connection.

mod task;
mod task_input;
mod task_notifications;
mod task_requests;
mod task_run;
mod task_trigger;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ErrorData;

pub(super) use self::task::{CallTask, TaskOwner};
pub(super) use self::task_notifications::notify_subscriber;
pub(super) use self::task_requests::TaskUse;
pub(super) use self::task_run::TaskRun;
pub(super) use self::task_trigger::TaskTrigger;

/// How many tasks a principal may have. An ended one makes room for a new one.
const MAX_TASKS: usize = 64;
/// The maximum size of a result that is kept, and of all results of a principal, in bytes of JSON.
const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// How long a task is kept from its creation on, and at most.
const DEFAULT_TTL: Duration = Duration::from_secs(60 * 60);
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a result is kept at least, if the call takes as long as it may.
const MIN_RESULT_TTL: Duration = Duration::from_secs(5 * 60);
/// How often a client should ask for the state of a task.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The key of `_meta` by which messages to clients of 2025-11-25 name their task.
pub(super) const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";

/// The tasks of a server, by id.
#[derive(Default)]
pub(super) struct TaskStore(Mutex<HashMap<String, Arc<CallTask>>>);

impl TaskStore {
    /// Adds a task. If its owner has as many as are kept, the oldest one that has ended is dropped, first
    /// of those whose results the client has read. Fails if all of them run.
    fn insert(&self, task: &Arc<CallTask>) -> Result<(), ErrorData> {
        let mut tasks = self.lock_tasks();
        let own: Vec<_> = tasks.values().filter(|known| known.owner == task.owner).collect();
        if own.len() >= MAX_TASKS {
            let ended = own.into_iter().filter(|known| known.has_ended_call());
            let oldest = ended.min_by_key(|known| (known.has_unread_result(), known.created_at));
            let Some(id) = oldest.map(|known| known.id.clone()) else {
                let words = format!(
                    "you have {MAX_TASKS} running tasks, which is as many as may run; wait until one \
                     ends, or cancel one"
                );
                return Err(ErrorData::invalid_request(words, None));
            };
            tasks.remove(&id);
        }
        tasks.insert(task.id.clone(), Arc::clone(task));
        Ok(())
    }

    /// Returns a task of this owner.
    fn find(&self, id: &str, owner: &TaskOwner) -> Result<Arc<CallTask>, ErrorData> {
        let tasks = self.lock_tasks();
        tasks.get(id).filter(|task| task.owner == *owner).cloned().ok_or_else(|| {
            ErrorData::invalid_params("`taskId` names no task; it may have expired", None)
        })
    }

    /// Returns the tasks of this owner, oldest first.
    fn list(&self, owner: &TaskOwner) -> Vec<Arc<CallTask>> {
        let tasks = self.lock_tasks();
        let mut own: Vec<_> = tasks.values().filter(|task| task.owner == *owner).cloned().collect();
        drop(tasks);
        own.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        own
    }

    /// Cancels the tasks of an owner that cannot come back.
    pub(super) fn cancel_all(&self, owner: &TaskOwner) {
        self.list(owner).iter().for_each(|task| task.cancel("the client has disconnected"));
    }

    fn remove(&self, id: &str) {
        self.lock_tasks().remove(id);
    }

    /// Returns true if a result of this size may be kept for the owner.
    fn has_room(&self, owner: &TaskOwner, size: usize) -> bool {
        let kept: usize = self.list(owner).iter().map(|task| task.result_bytes()).sum();
        size <= MAX_RESULT_BYTES && kept + size <= MAX_KEPT_BYTES
    }

    fn lock_tasks(&self) -> MutexGuard<'_, HashMap<String, Arc<CallTask>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how long the task of a call is kept: as long as the client wants, but not less than the call
/// may take.
fn task_ttl(wanted: Option<Duration>, call_limit: Option<Duration>) -> Duration {
    let least = call_limit.unwrap_or_default().saturating_add(MIN_RESULT_TTL);
    wanted.unwrap_or(DEFAULT_TTL).max(least).min(MAX_TTL)
}

#[cfg(test)]
mod tests;
