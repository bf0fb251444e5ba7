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
mod pty;
#[cfg(unix)]
pub(super) mod stdio;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;

use std::io;

#[cfg(unix)]
pub(super) use self::pty::{INTERRUPT_CHAR, PtyMaster};
#[cfg(target_os = "linux")]
pub(super) use self::pty::{pgid_of_pid, sid_of_pid};
#[cfg(not(target_os = "linux"))]
pub(super) use tokio::process::Child as ChildProcess;

#[cfg(not(unix))]
use self::elsewhere::spawn_with_stdio;
#[cfg(target_os = "linux")]
use self::linux::spawn_with_stdio;
#[cfg(target_os = "linux")]
pub(super) use self::linux::{ChildProcess, rlimit_of_pid};
#[cfg(all(unix, not(target_os = "linux")))]
use self::unix::spawn_with_stdio;
use super::program::CommandSpec;
use super::tag::ProcessTag;

/// The read end of a child's output.
pub(super) type OutputReader = Box<dyn tokio::io::AsyncRead + Send + Unpin>;

/// The write end of a child's input.
pub(super) type InputWriter = Box<dyn tokio::io::AsyncWrite + Send + Sync + Unpin>;

/// A file descriptor of the child that the host keeps open while the child runs.
#[cfg(unix)]
pub(super) type HeldFd = std::os::fd::OwnedFd;

/// Without Unix there is none.
#[cfg(not(unix))]
pub(super) type HeldFd = std::convert::Infallible;

/// How the stdio of a child is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdioMode {
    /// A pipe for standard input, and separate pipes for standard output and standard error.
    PipedStdin,
    /// No standard input, and separate pipes for standard output and standard error.
    NullStdin,
    /// No standard input, and one pipe for standard output and standard error, which keeps the
    /// order in which they were written.
    #[cfg(unix)]
    MergedOutput,
    /// A pseudoterminal of its own.
    #[cfg(unix)]
    Terminal,
}

/// A running child and the host's ends of its stdio.
pub(super) struct SpawnedChild {
    pub(super) child: ChildProcess,
    pub(super) streams: HostStdio,
}

/// The host's ends of a child's stdio.
pub(super) struct HostStdio {
    pub(super) stdin: Option<InputWriter>,
    pub(super) stdout: OutputReader,
    pub(super) stderr: Option<OutputReader>,
    /// The master side, if the child has a pseudoterminal.
    #[cfg(unix)]
    pub(super) terminal: Option<PtyMaster>,
    /// The child's output descriptors, to be dropped when it has exited. An open terminal keeps
    /// the output readable for a child that closes it and opens `/dev/tty` again. An open pipe
    /// avoids a wake-up for end of file just before the one for the exit.
    pub(super) child_fds: Vec<HeldFd>,
}

/// Starts `spec` with the tag `tag`.
pub(super) fn spawn_child(
    spec: &CommandSpec,
    tag: &ProcessTag,
    wiring: StdioMode,
) -> io::Result<SpawnedChild> {
    #[cfg(target_os = "linux")]
    super::reaper::ensure_running()?;
    spawn_with_stdio(spec, tag, wiring)
}
