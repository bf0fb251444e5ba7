//! Starts a child on Unix systems other than Linux, with tokio's `fork` and `exec`.
//!
//! **Invariant:** between `fork` and `exec` only async-signal-safe system calls are made.

use std::io;
use std::process::Stdio;

use tokio::process::Command;

use super::super::mark::{self, Mark};
use super::super::program::Program;
use super::wires::wires;
use super::{Started, Wiring};

pub(super) fn start_wired(program: &Program, mark: &Mark, wiring: Wiring) -> io::Result<Started> {
    let (ends, mut streams) = wires(wiring)?;
    if ends.is_terminal {
        streams.held.push(ends.output.try_clone()?);
    }
    let mut command = Command::new(&program.name);
    command.args(&program.args).env_clear().envs(program.env().vars());
    command.env(mark::NAME, mark.as_str());
    let complaints = ends.complaints.map_or_else(|| ends.output.try_clone(), Ok)?;
    command.stdin(Stdio::from(ends.input));
    command.stdout(Stdio::from(ends.output)).stderr(Stdio::from(complaints));
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    let (limits, is_terminal) = (program.limits, ends.is_terminal);
    let prepare = move || {
        rustix::process::setsid()?;
        if is_terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        Ok(limits.apply()?)
    };
    // SAFETY: between fork and exec it makes system calls only, and takes no lock.
    #[expect(unsafe_code, reason = "session and limits are set in the child")]
    unsafe {
        command.pre_exec(prepare);
    }
    let child = command.spawn()?;
    Ok(Started { child, streams })
}
