//! The process group of a child, which is signalled as a whole.
//!
//! **Invariant:** no signal is sent after the group was closed, because the kernel may reuse its
//! id.

#[cfg(unix)]
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};

use super::spawn::ChildProcess;

/// A child's process group, identified by the pid of its leader. Clones share the group.
///
/// The kernel does not reuse the id before the leader is reaped, even if it has exited. So the
/// owner closes the group before it reaps the leader. On Linux an exit is observed without
/// reaping; on other systems tokio reaps the leader, and the rest of the group is killed right
/// after that.
#[cfg(unix)]
#[derive(Clone, Debug)]
pub(super) struct ProcessGroup(Arc<Mutex<Option<Pid>>>);

#[cfg(unix)]
impl ProcessGroup {
    /// Returns the group that `child` leads; a child is always a session leader.
    pub(super) fn of_child(child: &ChildProcess) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(Arc::new(Mutex::new(id.and_then(Pid::from_raw))))
    }

    /// Returns the process group id, which is the pid of the leader.
    pub(super) fn pgid(&self) -> Option<i32> {
        self.lock_leader().map(|group| group.as_raw_nonzero().get())
    }

    /// Sends `SIGINT` to every member, as a terminal does.
    pub(super) fn interrupt(&self) {
        self.send_signal(Signal::INT);
    }

    /// Sends `SIGTERM` to every member.
    pub(super) fn terminate(&self) {
        self.send_signal(Signal::TERM);
    }

    /// Sends `SIGKILL` to every member.
    pub(super) fn kill(&self, _leader: &mut ChildProcess) {
        self.send_signal(Signal::KILL);
    }

    /// Closes the group; no more signals are sent.
    pub(super) fn close(&self) {
        *self.lock_leader() = None;
    }

    fn send_signal(&self, signal: Signal) {
        // The lock keeps the group from being closed between the check and the signal.
        let leader = self.lock_leader();
        if let Some(group) = *leader {
            // An error means that the group has exited already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn lock_leader(&self) -> MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without Unix there are no process groups: only the child itself can be killed.
#[cfg(not(unix))]
#[derive(Clone, Debug)]
pub(super) struct ProcessGroup;

#[cfg(not(unix))]
impl ProcessGroup {
    pub(super) fn of_child(_child: &ChildProcess) -> Self {
        Self
    }

    pub(super) fn pgid(&self) -> Option<i32> {
        None
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn close(&self) {}

    pub(super) fn kill(&self, leader: &mut ChildProcess) {
        // An error means that the child has exited already.
        let _ = leader.start_kill();
    }
}
