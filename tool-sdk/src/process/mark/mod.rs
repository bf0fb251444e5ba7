//! Finding what a child started, wherever it went.
//!
//! A program that starts a session of its own, or lets its parent end, leaves the process
//! group. So every child carries a [`Mark`], which everything below it inherits: in its
//! environment, and as a limit that nobody is held to ([`row`]). Either tells whose it is. The
//! limit goes with a program that drops its environment; the variable is for where no such limit
//! can be set. A descendant without both is found by its parents, and remembered. Only Linux
//! shows all that, in `/proc`; elsewhere the group is all there is.
//!
//! **Invariant:** a signal goes through a handle on the very process that was looked at, so
//! that no other one gets it that took its number.

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

/// The variable that holds a mark.
pub(super) const NAME: &str = "TOOL_SDK_PROCESS";

/// What a child and everything below it carries.
#[derive(Debug)]
pub(super) struct Mark {
    text: String,
    /// Nothing where the limit cannot be had.
    #[cfg(target_os = "linux")]
    row: Option<Row>,
    /// Where there was no room for a row, that of the mark above.
    #[cfg(target_os = "linux")]
    limit: Option<Rlimit>,
    /// What was found: its parents may end before it does.
    #[cfg(target_os = "linux")]
    found: HashSet<(i32, u64)>,
}

impl Mark {
    /// A mark that nothing else has.
    pub(super) fn fresh() -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Ok(Self::of_host()?.below(COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// What all marks of this process are below. Where it is itself a marked child, this one is
    /// below the mark that it carries.
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

    /// A mark below this one: what ends this one ends that one too.
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

    /// The mark as a limit, where it can be had.
    #[cfg(target_os = "linux")]
    pub(super) fn row(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    /// The limit that a child with this mark takes.
    #[cfg(target_os = "linux")]
    pub(super) fn limit(&self) -> Option<Rlimit> {
        self.limit
    }

    /// Asks all that carry it to end, but for those in `group`, who are asked together.
    pub(super) fn terminate(&mut self, group: Option<i32>) {
        self.sweep(Ending::Gently { group });
    }

    /// Ends all that carry it, also what they start meanwhile.
    pub(super) fn kill(&mut self) {
        // Whoever starts processes faster than they are ended is met again and again.
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

/// The programs of a session: here nobody tells.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn of_session(_session: i32) -> Option<Vec<super::kept::Attached>> {
    None
}

/// What runs as `pid`: here nobody tells.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn attached(_pid: i32) -> Option<super::kept::Attached> {
    None
}

/// Whether the process that leads a group is all that lives of it: here nobody tells.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn is_alone(_group: i32) -> bool {
    false
}

/// Whether one of a group may ignore it when it is interrupted.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn ignores_interrupts(_group: i32) -> bool {
    true
}

/// The mark that this process carries itself.
pub(super) fn inherited() -> Option<OsString> {
    std::env::var_os(NAME)
}

/// Whether nothing is in it that means something to a program that searches for it.
fn is_mark(text: &str) -> bool {
    text.len() < 256 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
}

/// How often is looked again for what was started meanwhile.
const ROUNDS: usize = 32;

#[derive(Clone, Copy)]
enum Ending {
    Gently {
        #[cfg_attr(
            not(target_os = "linux"),
            expect(dead_code, reason = "nothing is found beside the group")
        )]
        group: Option<i32>,
    },
    AtOnce,
}
