//! Tags child processes, so that all their descendants can be found and killed.
//!
//! A process that starts a session of its own, or whose parent exits (a daemon), leaves the
//! process group. So every child gets a [`ProcessTag`] that its descendants inherit in two ways:
//! as an environment variable and as an unused rlimit ([`rlimit`]). The rlimit survives when a
//! program clears its environment; the variable works where the rlimit cannot be set. A
//! descendant without either is found through its parents and remembered. This reads `/proc`, so
//! it is Linux only; on other systems only the process group is killed.
//!
//! **Invariant:** signals are sent through a pidfd after the start time was compared, so a
//! process that reused the pid is never hit.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod row;

#[cfg(target_os = "linux")]
use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(target_os = "linux")]
use rustix::process::Rlimit;

#[cfg(target_os = "linux")]
pub(super) use self::linux::{MARKED, attached, ignores_interrupts, is_alone, of_session};
#[cfg(target_os = "linux")]
pub(super) use self::row::Row;

/// The environment variable that holds the tag.
pub(super) const NAME: &str = "TOOL_SDK_PROCESS";

/// A tag that a child and its descendants inherit.
#[derive(Debug)]
pub(super) struct Mark {
    text: String,
    /// `None` where the rlimit cannot be used.
    #[cfg(target_os = "linux")]
    row: Option<Row>,
    /// The rlimit to set; that of the parent tag when the digits are used up.
    #[cfg(target_os = "linux")]
    limit: Option<Rlimit>,
    /// Descendants found so far, as pid and start time: their parents may exit before them.
    #[cfg(target_os = "linux")]
    found: HashSet<(i32, u64)>,
}

impl Mark {
    /// Creates a tag that no other child has.
    pub(super) fn fresh() -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Ok(Self::of_host()?.below(COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the tag of the host, the parent of all tags that it creates. If the host is itself
    /// a tagged child, its tag is derived from the inherited one.
    pub(super) fn of_host() -> io::Result<&'static Self> {
        static HOST: OnceLock<Mark> = OnceLock::new();
        if let Some(host) = HOST.get() {
            return Ok(host);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let random = u128::from_ne_bytes(bytes);
        let own = format!("{random:032x}");
        let outer = inherited().and_then(|outer| outer.into_string().ok());
        let host = outer.filter(|outer| is_mark(outer)).map(|outer| format!("{outer}.{own}"));
        #[cfg(target_os = "linux")]
        let row = linux::own_row().and_then(|outer| outer.host(random));
        Ok(HOST.get_or_init(|| Self {
            text: host.unwrap_or(own),
            #[cfg(target_os = "linux")]
            limit: row.as_ref().map(Row::limit),
            #[cfg(target_os = "linux")]
            row,
            #[cfg(target_os = "linux")]
            found: HashSet::new(),
        }))
    }

    /// Derives a child tag. Killing the parent tag also kills processes with the child tag.
    pub(super) fn below(&self, number: u64) -> Self {
        #[cfg(target_os = "linux")]
        let row = self.row.as_ref().and_then(|row| row.below(number));
        Self {
            text: format!("{}.{number}", self.text),
            #[cfg(target_os = "linux")]
            limit: row.as_ref().map(Row::limit).or(self.limit),
            #[cfg(target_os = "linux")]
            row,
            #[cfg(target_os = "linux")]
            found: HashSet::new(),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the tag as an rlimit, if that is available.
    #[cfg(target_os = "linux")]
    pub(super) fn row(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    /// Returns the rlimit to set in a child with this tag.
    #[cfg(target_os = "linux")]
    pub(super) fn limit(&self) -> Option<Rlimit> {
        self.limit
    }

    /// Sends `SIGTERM` to all tagged processes, except those in `group`, which the caller signals
    /// as a group.
    pub(super) fn terminate(&mut self, group: Option<i32>) {
        self.sweep(Ending::Gently { group });
    }

    /// Sends `SIGKILL` to all tagged processes, also to those that they start meanwhile.
    pub(super) fn kill(&mut self) {
        // Repeat: a process may fork between the scan of `/proc` and the signal.
        for _ in 0..ROUNDS {
            if self.sweep(Ending::AtOnce) == 0 {
                break;
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn sweep(&mut self, ending: Ending) -> usize {
        linux::sweep(self, ending)
    }

    #[cfg(not(target_os = "linux"))]
    fn sweep(&mut self, _: Ending) -> usize {
        0
    }
}

/// Not supported on this system.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn of_session(_session: i32) -> Option<Vec<super::kept::Attached>> {
    None
}

/// Not supported on this system.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn attached(_pid: i32) -> Option<super::kept::Attached> {
    None
}

/// Not supported on this system, so callers assume other members.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn is_alone(_group: i32) -> bool {
    false
}

/// Not supported on this system, so callers assume that it is ignored.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn ignores_interrupts(_group: i32) -> bool {
    true
}

/// Returns the tag that this process inherited.
pub(super) fn inherited() -> Option<OsString> {
    std::env::var_os(NAME)
}

/// Returns whether `text` is short and has no characters that are special to `grep`.
fn is_mark(text: &str) -> bool {
    text.len() < 256 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
}

/// How often `/proc` is scanned again for processes started meanwhile.
const ROUNDS: usize = 32;

#[derive(Clone, Copy)]
enum Ending {
    Gently {
        #[cfg_attr(
            not(target_os = "linux"),
            expect(dead_code, reason = "only the process group is signalled")
        )]
        group: Option<i32>,
    },
    AtOnce,
}
