//! Creates the namespaces of the sandbox: user, mount, IPC and PID.
//!
//! **Invariant:** the user and group ids inside are those outside.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Which namespaces could be created.
#[derive(Debug)]
pub(super) struct NamespaceReport {
    /// User, mount and IPC namespaces.
    pub(super) mounts: io::Result<()>,
    /// A PID namespace, of which the next child of this process becomes the init process.
    pub(super) processes: io::Result<()>,
}

/// Creates all namespaces; without a PID namespace at least the others.
pub(super) fn unshare_all() -> NamespaceReport {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let most = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    let processes = unshare_flags(most | UnshareFlags::NEWPID);
    // `unshare` creates all or none.
    let others = if processes.is_ok() { Ok(()) } else { unshare_flags(most) };
    NamespaceReport { mounts: others.and_then(|()| map_own_ids(user, group)), processes }
}

fn unshare_flags(flags: UnshareFlags) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the call is unsafe because of one flag")]
    // SAFETY: without `UnshareFlags::FILES` the descriptors do not change.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

fn map_own_ids(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
