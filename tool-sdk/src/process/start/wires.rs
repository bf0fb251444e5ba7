//! The two ends of each stream of a child.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe;

use super::{Reader, Streams, Wiring, Writer, terminal};

/// What a child reads and writes.
pub(in crate::process) struct Ends {
    pub(in crate::process) input: OwnedFd,
    pub(in crate::process) output: OwnedFd,
    pub(in crate::process) complaints: OwnedFd,
    /// Whether they are a terminal, which the child's session gets.
    pub(in crate::process) is_terminal: bool,
}

/// Makes both ends.
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
        Wiring::Together => (None, output.try_clone()?),
        _ => read().map(|(errors, complaints)| (Some(errors), complaints))?,
    };
    let ends = Ends { input, output, complaints, is_terminal: false };
    let streams =
        Streams { input: writer, output: reader, complaints: errors, terminal: None, held: None };
    Ok((ends, streams))
}

fn fed() -> io::Result<(OwnedFd, Writer)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), Box::new(pipe::Sender::from_owned_fd(writer.into())?)))
}

fn read() -> io::Result<(Reader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((Box::new(pipe::Receiver::from_owned_fd(reader.into())?), writer.into()))
}

fn on_terminal() -> io::Result<(Ends, Streams)> {
    let (terminal, end) = terminal::open()?;
    let held = Some(end.try_clone()?);
    let ends = Ends {
        output: end.try_clone()?,
        complaints: end.try_clone()?,
        input: end,
        is_terminal: true,
    };
    let streams = Streams {
        input: Some(Box::new(terminal.clone())),
        output: Box::new(terminal.clone()),
        complaints: None,
        terminal: Some(terminal),
        held,
    };
    Ok((ends, streams))
}
