//! Starts a child on Unix systems other than Linux, with tokio's `fork` and `exec`.
//!
//! **Invariant:** between `fork` and `exec` only async-signal-safe system calls are made.

use std::io;
use std::process::Stdio;

use tokio::process::Command;

use super::wires::open_stdio;
use super::{SpawnedChild, StdioMode};
use crate::program::CommandSpec;
use crate::tag::{self, ProcessTag};

pub(super) fn spawn_with_stdio(
    spec: &CommandSpec,
    tag: &ProcessTag,
    mode: StdioMode,
) -> io::Result<SpawnedChild> {
    let (stdio, mut streams) = open_stdio(mode)?;
    if stdio.is_terminal {
        streams.child_fds.push(stdio.stdout.try_clone()?);
    }
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().envs(spec.effective_env().as_map());
    command.env(tag::TAG_VARIABLE, tag.as_str());
    let stderr = stdio.stderr.map_or_else(|| stdio.stdout.try_clone(), Ok)?;
    command.stdin(Stdio::from(stdio.stdin));
    command.stdout(Stdio::from(stdio.stdout)).stderr(Stdio::from(stderr));
    let handle = spec.current_dir.as_ref().and_then(|folder| folder.handle.clone());
    if let (Some(folder), None) = (&spec.current_dir, &handle) {
        command.current_dir(&folder.path);
    }
    let (limits, is_terminal) = (spec.limits, stdio.is_terminal);
    let prepare = move || {
        rustix::process::setsid()?;
        if is_terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        if let Some(folder) = &handle {
            rustix::process::fchdir(folder)?;
        }
        Ok(limits.apply_to_self()?)
    };
    // SAFETY: between fork and exec it makes system calls only, and takes no lock.
    #[expect(unsafe_code, reason = "session and limits are set in the child")]
    unsafe {
        command.pre_exec(prepare);
    }
    let child = command.spawn()?;
    Ok(SpawnedChild { child, streams })
}
