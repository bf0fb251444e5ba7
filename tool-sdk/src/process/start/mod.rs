//! Starting a child: which streams it gets, and what is left of the host in it.
//!
//! Every child gets three descriptors and no other, and leads a session of its own where the
//! system has them. On Linux that costs no fork, whose price grows with the memory of the
//! host.
//!
//! **Invariant:** a child that was started is waited for, whatever becomes of its handle.

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

/// What can be read of a child.
pub(super) type Reader = Box<dyn tokio::io::AsyncRead + Send + Unpin>;

/// Where a child reads from.
pub(super) type Writer = Box<dyn tokio::io::AsyncWrite + Send + Sync + Unpin>;

/// A descriptor that is held for as long as the child runs.
#[cfg(unix)]
pub(super) type Held = std::os::fd::OwnedFd;

/// Elsewhere there is none.
#[cfg(not(unix))]
pub(super) type Held = std::convert::Infallible;

/// The streams of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wiring {
    /// Something to read, and an output apart from the complaints.
    Fed,
    /// Nothing to read, and an output apart from the complaints.
    Apart,
    /// Nothing to read, and both outputs in one pipe, so that they come in the order in
    /// which they were written.
    #[cfg(unix)]
    Together,
    /// A terminal of its own.
    #[cfg(unix)]
    Terminal,
}

/// A child that runs, and the host's ends of its streams.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) streams: Streams,
}

/// The host's ends of a child's streams.
pub(super) struct Streams {
    pub(super) input: Option<Writer>,
    pub(super) output: Reader,
    pub(super) complaints: Option<Reader>,
    /// Where there is one.
    #[cfg(unix)]
    pub(super) terminal: Option<Terminal>,
    /// The child's ends of what it writes to, for whoever waits for its end to drop then. As
    /// long as a terminal is held, a child that closes its own end and opens the terminal again
    /// is still heard; as long as a pipe is, its end wakes nobody a moment before the child's.
    pub(super) held: Vec<Held>,
}

/// Starts `program`, which carries `mark`.
pub(super) fn start(program: &Program, mark: &Mark, wiring: Wiring) -> io::Result<Started> {
    #[cfg(target_os = "linux")]
    super::guardian::watch()?;
    start_wired(program, mark, wiring)
}
