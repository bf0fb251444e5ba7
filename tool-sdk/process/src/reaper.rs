//! Kills the children of this process when it dies without cleaning up, for example by
//! `SIGKILL`.
//!
//! A shell script, the reaper, waits for end of file on a pipe whose other end only this process
//! holds. It then kills the registered children, every process with this host's tag, and all
//! their descendants.
//!
//! Children are registered by pid in shared memory (a memfd), because a child that drops its tag
//! cannot be found through its parent any more. Each record has the time of registration: a
//! process that started later has reused the pid.
//!
//! `PR_SET_PDEATHSIG` would be simpler, but it fires when the *thread* that started the child
//! exits, and it does not reach grandchildren.
//!
//! **Invariant:** on Linux no child is started before the reaper runs, unless there is no
//! `/bin/sh`.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::WaitIdOptions;
use rustix::time::{ClockId, clock_gettime};

use super::program::CommandSpec;
use super::spawn::linux::{PidFd, spawn_untracked};
use super::spawn::stdio::ChildStdio;
use super::tag::{self, ProcessTag, RlimitTag};
use super::working_dir::WorkingDir;

/// Kills process trees by pid. Each process is stopped before its children are listed, so that it
/// cannot start more.
///
/// A pidfd would exclude pid reuse, but shell scripts have none. The race matters only when a
/// pid is reused within moments of being found.
const REAPER_SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
read -r _
variable=$1 limit=$2
end() {
    kill -STOP "$1"
    for child in $(cat "/proc/$1/task/"*/children); do
        end "$child"
    done
    kill -KILL "$1" "-$1"
}
while read -r number until; do
    told=$(cat "/proc/$number/stat") || continue
    set -- ${told##*)}
    [ "${20}" -gt "$until" ] || end "$number"
done <&1
for round in 1 2 3 4 5 6 7 8; do
    found=$(
        grep -lsF "$variable" /proc/[0-9]*/environ
        [ -z "$limit" ] || grep -ls "$limit" /proc/[0-9]*/limits
    )
    [ -n "$found" ] || break
    for place in $found; do
        number=${place#/proc/}
        end "${number%/*}"
    done
done
"#;

static REAPER: Mutex<ReaperTable> =
    Mutex::new(ReaperTable { state: ReaperState::NotStarted, children: Vec::new() });

struct ReaperTable {
    state: ReaperState,
    /// The running children, each at the index of its record in the shared memory.
    children: Vec<Option<ChildRecord>>,
}

enum ReaperState {
    NotStarted,
    Running(OrphanReaper),
    /// There is no shell on this system, so orphaned children are not killed.
    Unavailable,
}

struct OrphanReaper {
    process: PidFd,
    _alive_pipe: PipeWriter,
    /// The shared memory with the records of the children; `None` without memfd support.
    records: Option<File>,
}

/// The record of a child: its pid and the time of registration, in ticks of 10 ms since boot as
/// in `/proc/<pid>/stat`. All records have the same length, so an index gives the offset.
type ChildRecord = [u8; RECORD_LEN];

const RECORD_LEN: usize = 32;

/// The registration of a child; dropping it frees the record.
#[derive(Debug)]
pub(super) struct RegisteredChild(usize);

/// Starts the reaper unless it is running.
pub(super) fn ensure_running() -> io::Result<()> {
    let mut watch = lock_table();
    let is_needed = match &watch.state {
        ReaperState::NotStarted => true,
        // The user may have killed it.
        ReaperState::Running(guardian) => {
            !matches!(guardian.process.try_wait(WaitIdOptions::NOHANG), Ok(None))
        }
        ReaperState::Unavailable => false,
    };
    if is_needed {
        watch.state = match OrphanReaper::spawn() {
            Ok(guardian) => ReaperState::Running(guardian),
            Err(error) if error.kind() == io::ErrorKind::NotFound => ReaperState::Unavailable,
            Err(error) => return Err(error),
        };
        for (place, child) in watch.children.iter().enumerate() {
            watch.state.write_record(place, child.as_ref());
        }
    }
    Ok(())
}

/// Registers a child that was just started.
pub(super) fn register_child(child: i32) -> RegisteredChild {
    let line = format_record(child);
    let mut watch = lock_table();
    let free = watch.children.iter().position(Option::is_none);
    let place = free.unwrap_or_else(|| {
        watch.children.push(None);
        watch.children.len() - 1
    });
    watch.children[place] = Some(line);
    watch.state.write_record(place, Some(&line));
    RegisteredChild(place)
}

impl Drop for RegisteredChild {
    fn drop(&mut self) {
        // The record may stay: a process that reuses the pid starts after the time in it.
        lock_table().children[self.0] = None;
    }
}

fn lock_table() -> MutexGuard<'static, ReaperTable> {
    REAPER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn format_record(child: i32) -> ChildRecord {
    let now = clock_gettime(ClockId::Boottime);
    let ticks = now.tv_sec * 100 + now.tv_nsec / 10_000_000;
    let text = format!("{child} {ticks}");
    let mut line = [b' '; RECORD_LEN];
    for (place, byte) in line.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
    line[RECORD_LEN - 1] = b'\n';
    line
}

impl ReaperState {
    fn write_record(&self, place: usize, child: Option<&ChildRecord>) {
        let (Self::Running(OrphanReaper { records: Some(told), .. }), Some(line)) = (self, child)
        else {
            return;
        };
        // If writing fails, the reaper still finds the child by its tag.
        let _ = told.write_all_at(line, (place * RECORD_LEN) as u64);
    }
}

impl OrphanReaper {
    fn spawn() -> io::Result<Self> {
        let (wait, alive) = io::pipe()?;
        let none = OwnedFd::from(File::options().write(true).open("/dev/null")?);
        let told = memfd_create("children", MemfdFlags::CLOEXEC).map(File::from).ok();
        let (output, complaints) = match &told {
            Some(told) => (told.try_clone()?.into(), Some(none)),
            None => (none, None),
        };
        let ends = ChildStdio {
            stdin: wait.into(),
            stdout: output,
            stderr: complaints,
            is_terminal: false,
        };
        let mark = ProcessTag::of_host_process()?;
        let variable = format!("{}={}", tag::TAG_VARIABLE, mark.as_str());
        let limit = mark.rlimit_tag().map(RlimitTag::grep_pattern).unwrap_or_default();
        let mut spec =
            CommandSpec::new("/bin/sh", ["-c", REAPER_SCRIPT, "reaper", &variable, &limit]);
        spec.current_dir = Some(WorkingDir::from_path("/"));
        let process = spawn_untracked(&spec, tag::inherited_tag().as_deref(), None, &ends)?;
        Ok(Self { process, _alive_pipe: alive, records: told })
    }
}
