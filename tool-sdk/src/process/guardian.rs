//! What ends the children of this process when it ends and cannot do so itself.
//!
//! A small script waits for the end of a pipe that only this process holds, so for its end by
//! whatever cause. Then it ends the children of this process, everything that carries its mark,
//! and everything below those.
//!
//! The children are told by number, in memory that both hold: one that drops its mark has no parent
//! any more that would lead to it. A child that was told is not another one of its number as long
//! as it began before it was told.
//!
//! A signal that children get from the system at their parent's end would be simpler. But it
//! comes when the *thread* ends that started them, and it does not reach what they started.

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

/// Each member is stopped before those below it are looked for, so that no more come.
///
/// A handle on a process would be safer than its number, but scripts have none. It matters
/// only if another process gets the number of one that was found a moment ago.
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
    /// The children that live, each in the place where it was told.
    children: Vec<Option<Line>>,
}

enum State {
    None,
    Watching(Guardian),
    /// There is no shell on this system; children are on their own then.
    Impossible,
}

struct Guardian {
    process: Handle,
    _alive: PipeWriter,
    /// Where it reads of the children; nothing where the system gives no such memory.
    told: Option<File>,
}

/// A child as it is told: its number, and the time at which it was there already, in hundredths
/// of a second as `/proc` counts them. As long as all others, so that each has its place.
type Line = [u8; LINE];

const LINE: usize = 32;

/// That a child is told; dropping it makes room for another one.
#[derive(Debug)]
pub(super) struct Told(usize);

/// Makes sure that a guardian runs.
pub(super) fn watch() -> io::Result<()> {
    let mut watch = watched();
    let is_needed = match &watch.state {
        State::None => true,
        // Somebody may have ended it.
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

/// Tells of a child that was just started.
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
        // What is written there means nothing once the child has ended: whatever gets its number
        // begins later.
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
        // Without room for it, the child is found by its mark.
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
        let mut program = Program::new("/bin/sh", ["-c", SCRIPT, "guardian", &variable, &limit]);
        program.folder = Some("/".into());
        let process = launch(&program, mark::inherited().as_deref(), None, &ends)?;
        Ok(Self { process, _alive: alive, told })
    }
}
