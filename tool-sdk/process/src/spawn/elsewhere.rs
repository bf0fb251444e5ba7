//! Starts a child on systems without Unix: no session, no process group, no limits.

use std::io;
use std::process::Stdio;

use tokio::process::Command;

use super::{HostStdio, InputWriter, OutputReader, SpawnedChild, StdioMode};
use crate::ResourceLimits;
use crate::program::CommandSpec;
use crate::tag::{self, ProcessTag};

pub(super) fn spawn_with_stdio(
    spec: &CommandSpec,
    tag: &ProcessTag,
    mode: StdioMode,
) -> io::Result<SpawnedChild> {
    if spec.limits != ResourceLimits::default() {
        let message = "resource limits are not supported on this system";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().envs(spec.effective_env().as_map());
    command.env(tag::TAG_VARIABLE, tag.as_str()).kill_on_drop(true);
    command.stdin(match mode {
        StdioMode::PipedStdin => Stdio::piped(),
        StdioMode::NullStdin => Stdio::null(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = &spec.current_dir {
        command.current_dir(&folder.path);
    }
    let mut child = command.spawn()?;
    let stdin = child.stdin.take().map(|stdin| Box::new(stdin) as InputWriter);
    let stdout: OutputReader = match child.stdout.take() {
        Some(stdout) => Box::new(stdout),
        None => Box::new(tokio::io::empty()),
    };
    let stderr = child.stderr.take().map(|stderr| Box::new(stderr) as OutputReader);
    Ok(SpawnedChild { child, streams: HostStdio { stdin, stdout, stderr, child_fds: Vec::new() } })
}
