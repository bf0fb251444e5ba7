//! Tags child processes, so that all their descendants can be found and killed.
//!
//! A process that starts a session of its own, or whose parent exits (a daemon), leaves the
//! process group. So every child gets a [`ProcessTag`] that its descendants inherit in two ways:
//! as an environment variable and as an unused rlimit ([`rlimit`]). The rlimit survives when a
//! program clears its environment; the variable works where the rlimit cannot be set. A
//! descendant without either is found through its parents while they run. This reads `/proc`, so
//! it is Linux only; on other systems only the process group is killed.
//!
//! **Invariant:** signals are sent through a pidfd after the start time was compared, so a
//! process that reused the pid is never hit.

#[cfg(target_os = "linux")]
mod procfs;
#[cfg(target_os = "linux")]
mod rlimit;

use std::ffi::OsString;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(target_os = "linux")]
use rustix::process::Rlimit;

#[cfg(target_os = "linux")]
pub(super) use self::procfs::{
    TAG_RLIMIT, group_ignores_sigint, is_only_member, program_of_pid, programs_of_session,
};
#[cfg(target_os = "linux")]
pub(super) use self::rlimit::RlimitTag;

/// The environment variable that holds the tag.
pub(super) const TAG_VARIABLE: &str = "TOOL_SDK_PROCESS";

/// A tag that a child and its descendants inherit.
#[derive(Debug)]
pub(super) struct ProcessTag {
    text: String,
    /// `None` where the rlimit cannot be used.
    #[cfg(target_os = "linux")]
    rlimit_tag: Option<RlimitTag>,
    /// The rlimit to set; that of the parent tag when the digits are used up.
    #[cfg(target_os = "linux")]
    rlimit: Option<Rlimit>,
}

impl ProcessTag {
    /// Creates a tag that no other child has.
    pub(super) fn new_unique() -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Ok(Self::of_host_process()?.derive_child(COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the tag of the host, the parent of all tags that it creates. If the host is itself
    /// a tagged child, its tag is derived from the inherited one.
    pub(super) fn of_host_process() -> io::Result<&'static Self> {
        static HOST: OnceLock<ProcessTag> = OnceLock::new();
        if let Some(host) = HOST.get() {
            return Ok(host);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let random = u128::from_ne_bytes(bytes);
        let own = format!("{random:032x}");
        let outer = inherited_tag().and_then(|outer| outer.into_string().ok());
        let host = outer.filter(|outer| is_valid_tag(outer)).map(|outer| format!("{outer}.{own}"));
        #[cfg(target_os = "linux")]
        let row = procfs::own_rlimit_tag().and_then(|outer| outer.derive_host(random));
        Ok(HOST.get_or_init(|| Self {
            text: host.unwrap_or(own),
            #[cfg(target_os = "linux")]
            rlimit: row.as_ref().map(RlimitTag::to_rlimit),
            #[cfg(target_os = "linux")]
            rlimit_tag: row,
        }))
    }

    /// Derives a child tag. Killing the parent tag also kills processes with the child tag.
    pub(super) fn derive_child(&self, number: u64) -> Self {
        #[cfg(target_os = "linux")]
        let row = self.rlimit_tag.as_ref().and_then(|row| row.derive_child(number));
        Self {
            text: format!("{}.{number}", self.text),
            #[cfg(target_os = "linux")]
            rlimit: row.as_ref().map(RlimitTag::to_rlimit).or(self.rlimit),
            #[cfg(target_os = "linux")]
            rlimit_tag: row,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the tag as an rlimit, if that is available.
    #[cfg(target_os = "linux")]
    pub(super) fn rlimit_tag(&self) -> Option<&RlimitTag> {
        self.rlimit_tag.as_ref()
    }

    /// Returns the rlimit to set in a child with this tag.
    #[cfg(target_os = "linux")]
    pub(super) fn rlimit(&self) -> Option<Rlimit> {
        self.rlimit
    }

    /// Sends `SIGTERM` to all tagged processes, except those in `group`, which the caller signals
    /// as a group; returns to how many.
    pub(super) fn terminate(&self, group: Option<i32>) -> usize {
        self.signal_members(MemberSignal::Terminate { except_group: group })
    }

    /// Sends `SIGKILL` to all tagged processes, also to those that they start meanwhile.
    pub(super) fn kill(&self) {
        // Repeat: a process may fork between the scan of `/proc` and the signal.
        for _ in 0..KILL_ROUNDS {
            if self.signal_members(MemberSignal::Kill) == 0 {
                break;
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn signal_members(&self, ending: MemberSignal) -> usize {
        procfs::signal_tagged(self, ending)
    }

    #[cfg(not(target_os = "linux"))]
    fn signal_members(&self, _: MemberSignal) -> usize {
        0
    }
}

/// Not supported on this system.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn programs_of_session(
    _session: i32,
) -> Option<Vec<super::background::AttachedProgram>> {
    None
}

/// Not supported on this system.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn program_of_pid(_pid: i32) -> Option<super::background::AttachedProgram> {
    None
}

/// Not supported on this system, so callers assume other members.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn is_only_member(_group: i32) -> bool {
    false
}

/// Not supported on this system, so callers assume that it is ignored.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn group_ignores_sigint(_group: i32) -> bool {
    true
}

/// Returns the tag that this process inherited.
pub(super) fn inherited_tag() -> Option<OsString> {
    std::env::var_os(TAG_VARIABLE)
}

/// Returns whether `text` is short and has no characters that are special to `grep`.
fn is_valid_tag(text: &str) -> bool {
    text.len() < 256 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
}

/// How often `/proc` is scanned again for processes started meanwhile.
const KILL_ROUNDS: usize = 32;

#[derive(Clone, Copy)]
enum MemberSignal {
    Terminate {
        #[cfg_attr(
            not(target_os = "linux"),
            expect(dead_code, reason = "only the process group is signalled")
        )]
        except_group: Option<i32>,
    },
    Kill,
}
