//! What ends the children of this process when it ends and cannot do so itself.
//!
//! A small script waits for the end of a pipe that only this process holds, so for its end by
//! whatever cause. Then it ends everything that carries this process's mark, and everything
//! below that.
//!
//! A signal that children get from the system at their parent's end would be simpler. But it
//! comes when the *thread* ends that started them, and it does not reach what they started.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::process::WaitIdOptions;

use super::mark::{self, Mark};
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
end() {
    kill -STOP "$1"
    for child in $(cat "/proc/$1/task/"*/children); do
        end "$child"
    done
    kill -KILL "$1" "-$1"
}
for round in 1 2 3 4 5 6 7 8; do
    found=$(grep -lsF "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || break
    for place in $found; do
        number=${place#/proc/}
        end "${number%/environ}"
    done
done
"#;

static GUARDIAN: Mutex<State> = Mutex::new(State::None);

enum State {
    None,
    Watching(Guardian),
    /// There is no shell on this system; children are on their own then.
    Impossible,
}

struct Guardian {
    process: Handle,
    _alive: PipeWriter,
}

/// Makes sure that a guardian runs.
pub(super) fn watch() -> io::Result<()> {
    let mut state = GUARDIAN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_needed = match &*state {
        State::None => true,
        // Somebody may have ended it.
        State::Watching(guardian) => {
            !matches!(guardian.process.status(WaitIdOptions::NOHANG), Ok(None))
        }
        State::Impossible => false,
    };
    if is_needed {
        *state = match Guardian::start() {
            Ok(guardian) => State::Watching(guardian),
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::Impossible,
            Err(error) => return Err(error),
        };
    }
    Ok(())
}

impl Guardian {
    fn start() -> io::Result<Self> {
        let (wait, alive) = io::pipe()?;
        let none = OwnedFd::from(File::options().write(true).open("/dev/null")?);
        let ends = Ends { input: wait.into(), output: none, complaints: None, is_terminal: false };
        let variable = format!("{}={}", mark::NAME, Mark::of_host()?);
        let mut program = Program::new("/bin/sh", ["-c", SCRIPT, "guardian", &variable]);
        program.folder = Some("/".into());
        let process = launch(&program, mark::inherited().as_deref(), &ends)?;
        Ok(Self { process, _alive: alive })
    }
}
