//! Namespaces of its own: which users, mounts, shared memory and processes a child knows.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// What could be had.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// Mounts that this process may change, and shared memory of its own.
    pub(super) mounts: io::Result<()>,
    /// Processes of its own, of which the next child of this process is the first.
    pub(super) processes: io::Result<()>,
}

/// Leaves those of the host, in a user namespace in which this user is who they are.
pub(super) fn own() -> Namespaces {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let most = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    let processes = leave(most | UnshareFlags::NEWPID);
    // All of them are there, or none is.
    let others = if processes.is_ok() { Ok(()) } else { leave(most) };
    Namespaces { mounts: others.and_then(|()| be_the_same(user, group)), processes }
}

fn leave(flags: UnshareFlags) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the call is unsafe for the sake of one flag")]
    // SAFETY: without `UnshareFlags::FILES` the descriptors stay as they are.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

fn be_the_same(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
