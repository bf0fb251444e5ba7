//! The process group of a child: what is ended together with it.

use super::start::Child;

/// A child's process group, by the number of its leader.
///
/// The number cannot be given to another group while one member lives, so the group can be
/// ended after its leader was waited for.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    /// That of a child, which leads one as it leads its session.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(rustix::process::Pid::from_raw))
    }

    /// The number of the group and of its leader.
    pub(super) fn number(self) -> Option<i32> {
        self.0.map(|group| group.as_raw_nonzero().get())
    }

    /// Interrupts every member, as a terminal does.
    pub(super) fn interrupt(self) {
        self.signal(rustix::process::Signal::INT);
    }

    /// Asks every member to end.
    pub(super) fn terminate(self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Ends every member.
    pub(super) fn kill(self, _leader: &mut Child) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(self, signal: rustix::process::Signal) {
        if let Some(group) = self.0 {
            // A group that is gone already is what was wanted.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

/// Elsewhere there are no groups: only the child itself can be ended.
#[cfg(not(unix))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Group;

#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_child: &Child) -> Self {
        Self
    }

    pub(super) fn number(self) -> Option<i32> {
        None
    }

    pub(super) fn terminate(self) {}

    pub(super) fn kill(self, leader: &mut Child) {
        // A child that is gone already is what was wanted.
        let _ = leader.start_kill();
    }
}
