//! A terminal for a child: what it writes there can be read, and what is typed it reads.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    LocalModes, QueueSelector, SpecialCodeIndex, Winsize, tcflush, tcgetattr, tcgetpgrp,
    tcsetwinsize,
};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Wide enough that programs do not wrap their lines.
const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };

/// As much as a terminal gives at once.
const CHUNK: usize = 4096;

/// What Ctrl-C types.
pub(in crate::process) const INTERRUPT: char = '\u{3}';

/// The host's end of a terminal. Clones are the same end.
#[derive(Clone, Debug)]
pub(in crate::process) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// The number of the group that reads what is typed now.
    pub(in crate::process) fn foreground(&self) -> Option<i32> {
        tcgetpgrp(self.0.get_ref()).ok().map(|group| group.as_raw_nonzero().get())
    }

    /// The character that interrupts, where one does.
    pub(in crate::process) fn interrupt_key(&self) -> Option<char> {
        let modes = tcgetattr(self.0.get_ref()).ok()?;
        let key = modes.special_codes[SpecialCodeIndex::VINTR];
        modes.local_modes.contains(LocalModes::ISIG).then(|| char::from(key))
    }

    /// Throws away what was typed and is not read yet, if Ctrl-C interrupts here; whether it
    /// does.
    ///
    /// Ctrl-C would throw it away as well, but a queue that is full keeps it from being seen.
    /// Whoever reads keys loses nothing.
    pub(in crate::process) fn make_way(&self) -> bool {
        let end = (self.interrupt_key() == Some(INTERRUPT)).then(|| end_of(self.0.get_ref()));
        end.is_some_and(|end| end.is_ok_and(|end| tcflush(end, QueueSelector::IFlush).is_ok()))
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
    let end = end_of(&terminal)?;
    rustix::io::ioctl_fionbio(&terminal, true)?;
    // SAFETY: it owns its descriptor, and nobody replaces or closes it before.
    #[expect(unsafe_code, reason = "what is waited for must be this very descriptor")]
    let terminal = unsafe { AsyncFd::register(terminal) }.map_err(io::Error::from)?;
    Ok((Terminal(Arc::new(terminal)), end))
}

/// Opens the child's end of a terminal.
fn end_of(terminal: &OwnedFd) -> io::Result<OwnedFd> {
    let name = ptsname(terminal, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name, flags, Mode::empty())?)
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
            let room = into.remaining().min(CHUNK);
            let read = |fd: &AsyncFd<OwnedFd>| {
                Ok(rustix::io::read(fd, into.initialize_unfilled_to(room))?)
            };
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
            // Tried first: nobody is woken when what was typed is thrown away.
            match rustix::io::write(self.0.get_ref(), bytes) {
                Err(Errno::AGAIN) => ready!(self.0.poll_write_ready(cx))?.clear_ready(),
                done => return Poll::Ready(Ok(done?)),
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
