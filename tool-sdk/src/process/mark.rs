//! Finding what a child started, wherever it went.
//!
//! A program that starts a session of its own, or lets its parent end, leaves the process
//! group. So every child carries a [`Mark`] in its environment, which everything below it
//! inherits; a descendant that dropped it is found by its parents, and remembered. Only Linux shows both, in
//! `/proc`; elsewhere the group is all there is.
//!
//! **Invariant:** a signal goes through a handle on the very process that was looked at, so
//! that no other one gets it that took its number.

#[cfg(target_os = "linux")]
use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that holds a mark.
pub(super) const NAME: &str = "TOOL_SDK_PROCESS";

/// What a child and everything below it carries.
#[derive(Debug)]
pub(super) struct Mark {
    text: String,
    /// What was found: its parents may end before it does.
    #[cfg(target_os = "linux")]
    found: HashSet<(i32, u64)>,
}

impl Mark {
    /// A mark that nothing else has.
    pub(super) fn fresh() -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(Self::of(format!("{}.{number}", Self::of_host()?)))
    }

    /// What all marks of this process begin with. Where it is itself a marked child, that is
    /// the mark that it carries.
    pub(super) fn of_host() -> io::Result<&'static str> {
        static HOST: OnceLock<String> = OnceLock::new();
        if let Some(host) = HOST.get() {
            return Ok(host);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let own = format!("{:032x}", u128::from_ne_bytes(bytes));
        let outer = inherited().and_then(|outer| outer.into_string().ok());
        let host = outer.filter(|outer| is_mark(outer)).map(|outer| format!("{outer}.{own}"));
        Ok(HOST.get_or_init(|| host.unwrap_or(own)))
    }

    /// A mark below this one: what ends this one ends that one too.
    pub(super) fn below(&self, number: u64) -> Self {
        Self::of(format!("{}.{number}", self.text))
    }

    fn of(text: String) -> Self {
        Self {
            text,
            #[cfg(target_os = "linux")]
            found: HashSet::new(),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
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

#[cfg(target_os = "linux")]
pub(super) use self::linux::{attached, ignores_interrupts, is_alone, of_session};

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
#[cfg(not(target_os = "linux"))]
pub(super) fn is_alone(_group: i32) -> bool {
    false
}

/// Whether one of a group may ignore it when it is interrupted.
#[cfg(not(target_os = "linux"))]
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
    Gently { group: Option<i32> },
    AtOnce,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::io::{ErrorKind, Read as _};
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

    use super::super::kept::Attached;
    use super::super::start::{group_of, session_of};
    use super::{Ending, Mark, NAME};

    /// The longest environment that is looked through.
    const MOST_ENVIRONMENT: u64 = 4 << 20;

    /// Signals every process below `mark`, and says how many there were.
    pub(super) fn sweep(mark: &mut Mark, ending: Ending) -> usize {
        let (signal, spared) = match ending {
            Ending::Gently { group } => (Signal::TERM, group),
            Ending::AtOnce => (Signal::KILL, None),
        };
        let members = members(mark);
        mark.found.extend(members.iter().map(|(pid, process)| (*pid, process.start)));
        members
            .into_iter()
            .filter(|(_, process)| Some(process.group) != spared)
            .filter(|(pid, process)| send(*pid, process.start, signal))
            .count()
    }

    /// Whether the process that leads a group is all that lives of it.
    pub(in crate::process) fn is_alone(group: i32) -> bool {
        // To ask for its group takes a tenth of reading all that is told of a process.
        let of_group = numbers().into_iter().filter(|pid| group_of(*pid) == Some(group));
        of_group.filter(|pid| Process::of(*pid).is_some()).eq([group])
    }

    /// The programs of a session.
    pub(in crate::process) fn of_session(session: i32) -> Option<Vec<Attached>> {
        let of_session = numbers().into_iter().filter(|pid| session_of(*pid) == Some(session));
        Some(of_session.filter_map(attached).collect())
    }

    /// What runs as `pid`; nothing where that has ended.
    pub(in crate::process) fn attached(pid: i32) -> Option<Attached> {
        let program = match fs::read_link(format!("/proc/{pid}/exe")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            program => program.ok(),
        };
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        let words = line.split(|&byte| byte == 0);
        let words = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
        Some(Attached { program, words })
    }

    /// Whether one of a group ignores it when it is interrupted.
    pub(in crate::process) fn ignores_interrupts(group: i32) -> bool {
        let mut ignored = numbers().into_iter().filter_map(|pid| {
            Process::of(pid).filter(|it| it.group == group)?;
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let signals = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(signals.trim(), 16).ok()
        });
        ignored.any(|signals| signals & 1 << (Signal::INT.as_raw() - 1) != 0)
    }

    /// Signals the process `pid`, if it is still the one that began at `start`.
    fn send(pid: i32, start: u64, signal: Signal) -> bool {
        let Some(id) = Pid::from_raw(pid) else { return false };
        let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return false };
        Process::of(pid).is_some_and(|now| now.start == start)
            && pidfd_send_signal(handle, signal).is_ok()
    }

    /// What is below `mark`.
    fn members(mark: &Mark) -> Vec<(i32, Process)> {
        let all: HashMap<i32, Process> = numbers()
            .into_iter()
            .filter(|&pid| pid != getpid().as_raw_nonzero().get())
            .filter_map(|pid| Some((pid, Process::of(pid)?)))
            .collect();
        let mut known: HashMap<i32, bool> = all
            .iter()
            .map(|(&pid, it)| (pid, mark.found.contains(&(pid, it.start)) || carries(pid, mark)))
            .collect();
        loop {
            let more: Vec<i32> = all
                .iter()
                .filter(|(pid, process)| !known[*pid] && known.get(&process.parent) == Some(&true))
                .map(|(&pid, _)| pid)
                .collect();
            if more.is_empty() {
                break;
            }
            known.extend(more.into_iter().map(|pid| (pid, true)));
        }
        all.into_iter().filter(|(pid, _)| known[pid]).collect()
    }

    fn numbers() -> Vec<i32> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        entries.flatten().filter_map(number).collect()
    }

    /// Whether the environment of `pid` holds the mark, or one below it.
    fn carries(pid: i32, mark: &Mark) -> bool {
        let Ok(file) = File::open(format!("/proc/{pid}/environ")) else { return false };
        let mut environment = Vec::new();
        // The environment of a process of somebody else cannot be read.
        let _ = file.take(MOST_ENVIRONMENT).read_to_end(&mut environment);
        environment.split(|&byte| byte == 0).any(|variable| {
            let value = variable
                .strip_prefix(NAME.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .and_then(|value| value.strip_prefix(mark.as_str().as_bytes()));
            value.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        })
    }

    /// What `/proc` says of a process that lives.
    struct Process {
        parent: i32,
        group: i32,
        start: u64,
    }

    impl Process {
        fn of(pid: i32) -> Option<Self> {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name may hold blanks and brackets; what comes behind it does not.
            let (_, fields) = stat.rsplit_once(") ")?;
            let fields: Vec<&str> = fields.split(' ').collect();
            let is_dead = matches!(*fields.first()?, "Z" | "X");
            let parent = fields.get(1)?.parse().ok()?;
            let group = fields.get(2)?.parse().ok()?;
            let start = fields.get(19)?.parse().ok()?;
            (!is_dead).then_some(Self { parent, group, start })
        }
    }
}
