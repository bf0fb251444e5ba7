//! Reads `/proc`: finds and signals tagged processes, and describes those of a terminal.
//!
//! **Invariant:** a process is identified by pid and start time, never by pid alone.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getrlimit, pidfd_open, pidfd_send_signal,
    setrlimit, test_kill_process,
};

use super::{MemberSignal, ProcessTag, RlimitTag, TAG_VARIABLE};
use crate::background::AttachedProgram;
use crate::spawn::{pgid_of_pid, rlimit_of_pid, sid_of_pid};

/// The rlimit that holds the tag.
pub(crate) const TAG_RLIMIT: Resource = Resource::Locks;

/// How much of an environment is searched, in bytes.
const MAX_ENVIRON_BYTES: u64 = 4 << 20;

/// Signals every process with `mark` or a tag derived from it; returns their number.
pub(super) fn signal_tagged(mark: &ProcessTag, ending: MemberSignal) -> usize {
    let (signal, except_group) = match ending {
        MemberSignal::Terminate { except_group: group } => (Signal::TERM, group),
        MemberSignal::Kill => (Signal::KILL, None),
    };
    find_tagged(mark)
        .into_iter()
        .filter(|(_, process)| Some(process.group) != except_group)
        .filter(|(pid, process)| send_if_same(*pid, process.start, signal))
        .count()
}

/// Returns whether the leader of a process group is its only running member.
pub(crate) fn is_only_member(group: i32) -> bool {
    // `getpgid` takes a tenth of the time of reading `/proc/<pid>/stat`.
    let of_group = list_pids().into_iter().filter(|pid| pgid_of_pid(*pid) == Some(group));
    of_group.filter(|pid| ProcStat::read(*pid).is_some()).eq([group])
}

/// Returns the programs of a session.
pub(crate) fn programs_of_session(session: i32) -> Option<Vec<AttachedProgram>> {
    let of_session = list_pids().into_iter().filter(|pid| sid_of_pid(*pid) == Some(session));
    Some(of_session.filter_map(program_of_pid).collect())
}

/// Returns the program that runs as `pid`; `None` if it has exited.
pub(crate) fn program_of_pid(pid: i32) -> Option<AttachedProgram> {
    let program = match fs::read_link(format!("/proc/{pid}/exe")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        program => program.ok(),
    };
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    let words = line.split(|&byte| byte == 0);
    let words = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
    Some(AttachedProgram { program, argv: words })
}

/// Returns whether any member of a process group ignores `SIGINT`.
pub(crate) fn group_ignores_sigint(group: i32) -> bool {
    let mut ignored = list_pids().into_iter().filter_map(|pid| {
        ProcStat::read(pid).filter(|it| it.group == group)?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let signals = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(signals.trim(), 16).ok()
    });
    ignored.any(|signals| signals & 1 << (Signal::INT.as_raw() - 1) != 0)
}

/// Signals the process `pid`, if it is still the one that started at `start`.
fn send_if_same(pid: i32, start: u64, signal: Signal) -> bool {
    let Some(id) = Pid::from_raw(pid) else { return false };
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return false };
    ProcStat::read(pid).is_some_and(|now| now.start == start)
        && pidfd_send_signal(handle, signal).is_ok()
}

/// Finds all processes with `mark` or a tag derived from it, and their descendants.
fn find_tagged(mark: &ProcessTag) -> Vec<(i32, ProcStat)> {
    let all: HashMap<i32, ProcStat> = list_pids()
        .into_iter()
        .filter(|&pid| pid != getpid().as_raw_nonzero().get())
        .filter_map(|pid| Some((pid, ProcStat::read(pid)?)))
        .collect();
    let mut known: HashMap<i32, bool> = all.keys().map(|&pid| (pid, has_tag(pid, mark))).collect();
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

fn list_pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(number).collect()
}

/// Returns the tag in the rlimit of this process; `None` when the limit was set for another
/// purpose or cannot be changed.
pub(super) fn own_rlimit_tag() -> Option<RlimitTag> {
    let limit = getrlimit(TAG_RLIMIT);
    let row = RlimitTag::from_rlimit(&limit)?;
    setrlimit(TAG_RLIMIT, limit).is_ok().then_some(row)
}

/// Returns whether `pid` has `mark` or a tag derived from it.
fn has_tag(pid: i32, mark: &ProcessTag) -> bool {
    let is_below =
        |row: &RlimitTag| rlimit_tag_of(pid).is_some_and(|other| other.is_same_or_below(row));
    mark.rlimit_tag.as_ref().is_some_and(is_below) || environ_has_tag(pid, mark)
}

fn rlimit_tag_of(pid: i32) -> Option<RlimitTag> {
    match rlimit_of_pid(pid, TAG_RLIMIT) {
        Ok(limit) => RlimitTag::from_rlimit(&limit),
        // `prlimit` needs more than the same user (set-uid programs); the file does not.
        Err(Errno::PERM) if test_kill_process(Pid::from_raw(pid)?).is_ok() => {
            RlimitTag::from_rlimit(&read_proc_limit(pid)?)
        }
        Err(_) => None,
    }
}

/// Reads the same limit from `/proc/<pid>/limits`.
fn read_proc_limit(pid: i32) -> Option<Rlimit> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let told = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    let mut numbers = told.split_whitespace().map(|number| number.parse().ok());
    Some(Rlimit { current: numbers.next()?, maximum: numbers.next()? })
}

/// Returns whether the environment of `pid` contains `mark` or a tag derived from it.
fn environ_has_tag(pid: i32, mark: &ProcessTag) -> bool {
    let Ok(file) = File::open(format!("/proc/{pid}/environ")) else { return false };
    let mut environment = Vec::new();
    // The environment of another user's process cannot be read.
    let _ = file.take(MAX_ENVIRON_BYTES).read_to_end(&mut environment);
    environment.split(|&byte| byte == 0).any(|variable| {
        let value = variable
            .strip_prefix(TAG_VARIABLE.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .and_then(|value| value.strip_prefix(mark.as_str().as_bytes()));
        value.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    })
}

/// The fields of `/proc/<pid>/stat` of a running process.
struct ProcStat {
    parent: i32,
    group: i32,
    start: u64,
}

impl ProcStat {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain blanks and brackets, the fields after it do not.
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let is_dead = matches!(*fields.first()?, "Z" | "X");
        let parent = fields.get(1)?.parse().ok()?;
        let group = fields.get(2)?.parse().ok()?;
        let start = fields.get(19)?.parse().ok()?;
        (!is_dead).then_some(Self { parent, group, start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChildEnv, Command, has_rlimit_tags, run};

    #[test]
    fn a_limit_is_read_as_it_is_written() {
        let own = getpid().as_raw_nonzero().get();
        assert_eq!(rlimit_of_pid(own, TAG_RLIMIT), Ok(getrlimit(TAG_RLIMIT)));
        assert_eq!(read_proc_limit(own), Some(getrlimit(TAG_RLIMIT)));
        assert_eq!(rlimit_of_pid(i32::MAX, TAG_RLIMIT), Err(Errno::SRCH));
    }

    const OUTER: &str = "TOOL_SDK_OUTER";

    // F15: the tags of a nested host are derived from those of the outer host, in both forms.
    #[tokio::test]
    async fn a_host_in_a_command_has_marks_below_it() {
        let mark = ProcessTag::of_host_process().unwrap();
        let row = format!("{:?}", mark.rlimit_tag());
        if std::env::var_os(OUTER).is_some() {
            return println!("inner {} {row}", mark.as_str());
        }
        let name = "tag::procfs::tests::a_host_in_a_command_has_marks_below_it";
        let program = std::env::current_exe().unwrap();
        let inner = Command::new(program, ["--exact", name, "--nocapture"])
            .env(ChildEnv::from_host().with_var(OUTER, "1"));
        let told = run(inner).await.unwrap().stdout.to_text();
        assert!(told.contains(&format!("inner {}.", mark.as_str())), "{told}");
        if has_rlimit_tags() {
            assert!(told.contains(row.trim_end_matches("\"))")), "{told} is not below {row}");
        }
    }
}
