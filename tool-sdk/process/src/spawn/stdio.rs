//! Creates the pipes or the pseudoterminal of a child.
//!
//! **Invariant:** the host's ends are non-blocking, the child's ends are blocking.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

use super::{HostStdio, InputWriter, OutputReader, StdioMode, pty};

/// The child's ends of its stdio.
pub(crate) struct ChildStdio {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    /// `None` when standard error is merged into standard output.
    pub(crate) stderr: Option<OwnedFd>,
    /// Whether they are a terminal, which becomes the controlling terminal of the child.
    pub(crate) is_terminal: bool,
}

/// Opens both ends.
pub(super) fn open_stdio(wiring: StdioMode) -> io::Result<(ChildStdio, HostStdio)> {
    if wiring == StdioMode::Terminal {
        return open_pty_stdio();
    }
    let (input, writer) = match wiring {
        StdioMode::PipedStdin => open_stdin_pipe().map(|(input, writer)| (input, Some(writer)))?,
        _ => (OwnedFd::from(File::open("/dev/null")?), None),
    };
    let (reader, output) = open_output_pipe()?;
    let (errors, complaints) = match wiring {
        StdioMode::MergedOutput => (None, None),
        _ => open_output_pipe().map(|(errors, complaints)| (Some(errors), Some(complaints)))?,
    };
    let ends = ChildStdio { stdin: input, stdout: output, stderr: complaints, is_terminal: false };
    let streams = HostStdio {
        stdin: writer,
        stdout: reader,
        stderr: errors,
        terminal: None,
        child_fds: Vec::new(),
    };
    Ok((ends, streams))
}

impl ChildStdio {
    /// Returns the descriptors that the child writes to.
    #[cfg(target_os = "linux")]
    pub(super) fn into_output_fds(self) -> Vec<OwnedFd> {
        std::iter::once(self.stdout).chain(self.stderr).collect()
    }
}

fn open_stdin_pipe() -> io::Result<(OwnedFd, InputWriter)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), Box::new(pipe::Sender::from_owned_fd(writer.into())?)))
}

fn open_output_pipe() -> io::Result<(OutputReader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    // `from_owned_fd` would check that it is a pipe and non-blocking.
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((Box::new(pipe::Receiver::from_owned_fd_unchecked(reader.into())?), writer.into()))
}

fn open_pty_stdio() -> io::Result<(ChildStdio, HostStdio)> {
    let (terminal, end) = pty::open_pty()?;
    let ends = ChildStdio { stdout: end.try_clone()?, stderr: None, stdin: end, is_terminal: true };
    let streams = HostStdio {
        stdin: Some(Box::new(terminal.clone())),
        stdout: Box::new(terminal.clone()),
        stderr: None,
        terminal: Some(terminal),
        child_fds: Vec::new(),
    };
    Ok((ends, streams))
}
