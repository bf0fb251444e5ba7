//! The process group of a child: what is ended together with it.

#[cfg(unix)]
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};

use super::start::Child;

/// A child's process group, by the number of its leader. Clones are the same group.
///
/// The number is nobody else's for as long as the leader was not waited for, also when it has
/// ended. So whoever waits for it closes the group first, and after that no signal is sent.
/// Only Linux tells of an end without that; elsewhere the runtime waits for the leader, and
/// what is left of the group is ended right after.
#[cfg(unix)]
#[derive(Clone, Debug)]
pub(super) struct Group(Arc<Mutex<Option<Pid>>>);

#[cfg(unix)]
impl Group {
    /// That of a child, which leads one as it leads its session.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(Arc::new(Mutex::new(id.and_then(Pid::from_raw))))
    }

    /// The number of the group and of its leader.
    pub(super) fn number(&self) -> Option<i32> {
        self.leader().map(|group| group.as_raw_nonzero().get())
    }

    /// Interrupts every member, as a terminal does.
    pub(super) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Asks every member to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends every member.
    pub(super) fn kill(&self, _leader: &mut Child) {
        self.signal(Signal::KILL);
    }

    /// Sends nothing any more.
    pub(super) fn close(&self) {
        *self.leader() = None;
    }

    fn signal(&self, signal: Signal) {
        // Nobody closes the group meanwhile.
        let leader = self.leader();
        if let Some(group) = *leader {
            // A group that is gone already is what was wanted.
            let _ = kill_process_group(group, signal);
        }
    }

    fn leader(&self) -> MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Elsewhere there are no groups: only the child itself can be ended.
#[cfg(not(unix))]
#[derive(Clone, Debug)]
pub(super) struct Group;

#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_child: &Child) -> Self {
        Self
    }

    pub(super) fn number(&self) -> Option<i32> {
        None
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn close(&self) {}

    pub(super) fn kill(&self, leader: &mut Child) {
        // A child that is gone already is what was wanted.
        let _ = leader.start_kill();
    }
}
