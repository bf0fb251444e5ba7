//! A terminal for a child: what it writes there can be read, and what is typed it reads.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Wide enough that programs do not wrap their lines.
const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };

/// The host's end of a terminal. Clones are the same end.
#[derive(Clone, Debug)]
pub(in crate::process) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// The number of the group that reads what is typed now.
    pub(in crate::process) fn foreground(&self) -> Option<i32> {
        tcgetpgrp(self.0.get_ref()).ok().map(|group| group.as_raw_nonzero().get())
    }
}

/// The group that a process belongs to; nothing where there is no such process, or it is one of
/// the system's own.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the safe call takes it that every process has a group")]
pub(in crate::process) fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: it takes a number and gives one.
    let group = unsafe { libc::getpgid(pid) };
    (group > 0).then_some(group)
}

/// Opens a terminal, with the child's end of it.
pub(super) fn open() -> io::Result<(Terminal, OwnedFd)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSING)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    tcsetwinsize(&terminal, SIZE)?;
    let name = ptsname(&terminal, Vec::new())?;
    let end =
        rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::ioctl_fionbio(&terminal, true)?;
    // SAFETY: it owns its descriptor, and nobody replaces or closes it before.
    #[expect(unsafe_code, reason = "what is waited for must be this very descriptor")]
    let terminal = unsafe { AsyncFd::register(terminal) }.map_err(io::Error::from)?;
    Ok((Terminal(Arc::new(terminal)), end))
}

/// Nobody else's children get it. Only Linux can say so at once.
#[cfg(target_os = "linux")]
const CLOSING: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSING: OpenptFlags = OpenptFlags::empty();

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let read =
                |fd: &AsyncFd<OwnedFd>| Ok(rustix::io::read(fd, into.initialize_unfilled())?);
            if let Ok(count) = guard.try_io(read) {
                into.advance(count?);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            if let Ok(count) = guard.try_io(|fd| Ok(rustix::io::write(fd, bytes)?)) {
                return Poll::Ready(count);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
