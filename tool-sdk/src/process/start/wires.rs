//! Creates the pipes or the pseudoterminal of a child.
//!
//! **Invariant:** the host's ends are non-blocking, the child's ends are blocking.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

use super::{Reader, Streams, Wiring, Writer, terminal};

/// The child's ends of its stdio.
pub(in crate::process) struct Ends {
    pub(in crate::process) input: OwnedFd,
    pub(in crate::process) output: OwnedFd,
    /// `None` when standard error is merged into standard output.
    pub(in crate::process) complaints: Option<OwnedFd>,
    /// Whether they are a terminal, which becomes the controlling terminal of the child.
    pub(in crate::process) is_terminal: bool,
}

/// Opens both ends.
pub(super) fn wires(wiring: Wiring) -> io::Result<(Ends, Streams)> {
    if wiring == Wiring::Terminal {
        return on_terminal();
    }
    let (input, writer) = match wiring {
        Wiring::Fed => fed().map(|(input, writer)| (input, Some(writer)))?,
        _ => (OwnedFd::from(File::open("/dev/null")?), None),
    };
    let (reader, output) = read()?;
    let (errors, complaints) = match wiring {
        Wiring::Together => (None, None),
        _ => read().map(|(errors, complaints)| (Some(errors), Some(complaints)))?,
    };
    let ends = Ends { input, output, complaints, is_terminal: false };
    let streams = Streams {
        input: writer,
        output: reader,
        complaints: errors,
        terminal: None,
        held: Vec::new(),
    };
    Ok((ends, streams))
}

impl Ends {
    /// Returns the descriptors that the child writes to.
    #[cfg(target_os = "linux")]
    pub(super) fn written(self) -> Vec<OwnedFd> {
        std::iter::once(self.output).chain(self.complaints).collect()
    }
}

fn fed() -> io::Result<(OwnedFd, Writer)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), Box::new(pipe::Sender::from_owned_fd(writer.into())?)))
}

fn read() -> io::Result<(Reader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    // `from_owned_fd` would check that it is a pipe and non-blocking.
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((Box::new(pipe::Receiver::from_owned_fd_unchecked(reader.into())?), writer.into()))
}

fn on_terminal() -> io::Result<(Ends, Streams)> {
    let (terminal, end) = terminal::open()?;
    let ends = Ends { output: end.try_clone()?, complaints: None, input: end, is_terminal: true };
    let streams = Streams {
        input: Some(Box::new(terminal.clone())),
        output: Box::new(terminal.clone()),
        complaints: None,
        terminal: Some(terminal),
        held: Vec::new(),
    };
    Ok((ends, streams))
}
