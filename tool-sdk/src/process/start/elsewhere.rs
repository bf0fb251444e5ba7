//! Starts a child on systems without Unix: no session, no process group, no limits.

use std::io;
use std::process::Stdio;

use tokio::process::Command;

use super::super::Limits;
use super::super::mark::{self, Mark};
use super::super::program::Program;
use super::{Reader, Started, Streams, Wiring, Writer};

pub(super) fn start_wired(program: &Program, mark: &Mark, wiring: Wiring) -> io::Result<Started> {
    if program.limits != Limits::default() {
        let message = "resource limits are not supported on this system";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let mut command = Command::new(&program.name);
    command.args(&program.args).env_clear().envs(program.env().vars());
    command.env(mark::NAME, mark.as_str()).kill_on_drop(true);
    command.stdin(match wiring {
        Wiring::Fed => Stdio::piped(),
        Wiring::Apart => Stdio::null(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn()?;
    let input = child.stdin.take().map(|input| Box::new(input) as Writer);
    let output: Reader = match child.stdout.take() {
        Some(output) => Box::new(output),
        None => Box::new(tokio::io::empty()),
    };
    let complaints = child.stderr.take().map(|complaints| Box::new(complaints) as Reader);
    Ok(Started { child, streams: Streams { input, output, complaints, held: Vec::new() } })
}
