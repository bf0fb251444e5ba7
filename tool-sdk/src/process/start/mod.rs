//! Starts children: stdio, session, limits, environment.
//!
//! Every child gets three file descriptors and no others, and leads a session of its own where
//! the system has sessions. On Linux this uses `clone` with shared memory in place of `fork`,
//! whose cost grows with the memory of the host.
//!
//! **Invariant:** every child is reaped, also when its handle is dropped.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(target_os = "linux")]
pub(super) mod linux;
#[cfg(unix)]
mod terminal;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(unix)]
pub(super) mod wires;

use std::io;

#[cfg(unix)]
pub(super) use self::terminal::{INTERRUPT, Terminal};
#[cfg(target_os = "linux")]
pub(super) use self::terminal::{group_of, session_of};
#[cfg(not(target_os = "linux"))]
pub(super) use tokio::process::Child;

#[cfg(not(unix))]
use self::elsewhere::start_wired;
#[cfg(target_os = "linux")]
use self::linux::start_wired;
#[cfg(target_os = "linux")]
pub(super) use self::linux::{Child, limit_of};
#[cfg(all(unix, not(target_os = "linux")))]
use self::unix::start_wired;
use super::mark::Mark;
use super::program::Program;

/// The read end of a child's output.
pub(super) type Reader = Box<dyn tokio::io::AsyncRead + Send + Unpin>;

/// The write end of a child's input.
pub(super) type Writer = Box<dyn tokio::io::AsyncWrite + Send + Sync + Unpin>;

/// A file descriptor of the child that the host keeps open while the child runs.
#[cfg(unix)]
pub(super) type Held = std::os::fd::OwnedFd;

/// Without Unix there is none.
#[cfg(not(unix))]
pub(super) type Held = std::convert::Infallible;

/// How the stdio of a child is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wiring {
    /// A pipe for standard input, and separate pipes for standard output and standard error.
    Fed,
    /// No standard input, and separate pipes for standard output and standard error.
    Apart,
    /// No standard input, and one pipe for standard output and standard error, which keeps the
    /// order in which they were written.
    #[cfg(unix)]
    Together,
    /// A pseudoterminal of its own.
    #[cfg(unix)]
    Terminal,
}

/// A running child and the host's ends of its stdio.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) streams: Streams,
}

/// The host's ends of a child's stdio.
pub(super) struct Streams {
    pub(super) input: Option<Writer>,
    pub(super) output: Reader,
    pub(super) complaints: Option<Reader>,
    /// The master side, if the child has a pseudoterminal.
    #[cfg(unix)]
    pub(super) terminal: Option<Terminal>,
    /// The child's output descriptors, to be dropped when it has exited. An open terminal keeps
    /// the output readable for a child that closes it and opens `/dev/tty` again. An open pipe
    /// avoids a wake-up for end of file just before the one for the exit.
    pub(super) held: Vec<Held>,
}

/// Starts `program` with the tag `mark`.
pub(super) fn start(program: &Program, mark: &Mark, wiring: Wiring) -> io::Result<Started> {
    #[cfg(target_os = "linux")]
    super::guardian::watch()?;
    start_wired(program, mark, wiring)
}
