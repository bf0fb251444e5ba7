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

use super::mark::{self, Mark, Row};
use super::program::Program;
use super::start::linux::{Handle, launch};
use super::start::wires::Ends;

/// Kills process trees by pid. Each process is stopped before its children are listed, so that it
/// cannot start more.
///
/// A pidfd would exclude pid reuse, but shell scripts have none. The race matters only when a
/// pid is reused within moments of being found.
const SCRIPT: &str = r#"
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

static GUARDIAN: Mutex<Watch> = Mutex::new(Watch { state: State::None, children: Vec::new() });

struct Watch {
    state: State,
    /// The running children, each at the index of its record in the shared memory.
    children: Vec<Option<Line>>,
}

enum State {
    None,
    Watching(Guardian),
    /// There is no shell on this system, so orphaned children are not killed.
    Impossible,
}

struct Guardian {
    process: Handle,
    _alive: PipeWriter,
    /// The shared memory with the records of the children; `None` without memfd support.
    told: Option<File>,
}

/// The record of a child: its pid and the time of registration, in ticks of 10 ms since boot as
/// in `/proc/<pid>/stat`. All records have the same length, so an index gives the offset.
type Line = [u8; LINE];

const LINE: usize = 32;

/// The registration of a child; dropping it frees the record.
#[derive(Debug)]
pub(super) struct Told(usize);

/// Starts the reaper unless it is running.
pub(super) fn watch() -> io::Result<()> {
    let mut watch = watched();
    let is_needed = match &watch.state {
        State::None => true,
        // The user may have killed it.
        State::Watching(guardian) => {
            !matches!(guardian.process.status(WaitIdOptions::NOHANG), Ok(None))
        }
        State::Impossible => false,
    };
    if is_needed {
        watch.state = match Guardian::start() {
            Ok(guardian) => State::Watching(guardian),
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::Impossible,
            Err(error) => return Err(error),
        };
        for (place, child) in watch.children.iter().enumerate() {
            watch.state.tell(place, child.as_ref());
        }
    }
    Ok(())
}

/// Registers a child that was just started.
pub(super) fn tell(child: i32) -> Told {
    let line = line(child);
    let mut watch = watched();
    let free = watch.children.iter().position(Option::is_none);
    let place = free.unwrap_or_else(|| {
        watch.children.push(None);
        watch.children.len() - 1
    });
    watch.children[place] = Some(line);
    watch.state.tell(place, Some(&line));
    Told(place)
}

impl Drop for Told {
    fn drop(&mut self) {
        // The record may stay: a process that reuses the pid starts after the time in it.
        watched().children[self.0] = None;
    }
}

fn watched() -> MutexGuard<'static, Watch> {
    GUARDIAN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(child: i32) -> Line {
    let now = clock_gettime(ClockId::Boottime);
    let ticks = now.tv_sec * 100 + now.tv_nsec / 10_000_000;
    let text = format!("{child} {ticks}");
    let mut line = [b' '; LINE];
    for (place, byte) in line.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
    line[LINE - 1] = b'\n';
    line
}

impl State {
    fn tell(&self, place: usize, child: Option<&Line>) {
        let (Self::Watching(Guardian { told: Some(told), .. }), Some(line)) = (self, child) else {
            return;
        };
        // If writing fails, the reaper still finds the child by its tag.
        let _ = told.write_all_at(line, (place * LINE) as u64);
    }
}

impl Guardian {
    fn start() -> io::Result<Self> {
        let (wait, alive) = io::pipe()?;
        let none = OwnedFd::from(File::options().write(true).open("/dev/null")?);
        let told = memfd_create("children", MemfdFlags::CLOEXEC).map(File::from).ok();
        let (output, complaints) = match &told {
            Some(told) => (told.try_clone()?.into(), Some(none)),
            None => (none, None),
        };
        let ends = Ends { input: wait.into(), output, complaints, is_terminal: false };
        let mark = Mark::of_host()?;
        let variable = format!("{}={}", mark::NAME, mark.as_str());
        let limit = mark.row().map(Row::pattern).unwrap_or_default();
        let mut program = Program::new("/bin/sh", ["-c", SCRIPT, "reaper", &variable, &limit]);
        program.folder = Some("/".into());
        let process = launch(&program, mark::inherited().as_deref(), None, &ends)?;
        Ok(Self { process, _alive: alive, told })
    }
}
