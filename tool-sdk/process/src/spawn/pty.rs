//! The pseudoterminal (PTY) of a child: its output is read, and input is typed into it.
//!
//! **Invariant:** the master side is non-blocking and is never inherited by other children.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, QueueSelector, SpecialCodeIndex, Termios, Winsize, tcflush, tcgetattr,
    tcgetpgrp, tcgetsid, tcsetwinsize,
};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The window size: wide enough that programs rarely wrap lines.
const WINDOW_SIZE: Winsize = Winsize { ws_row: 40, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };

/// The most bytes that a terminal returns in one read.
const READ_CHUNK: usize = 4096;

/// The character of Ctrl-C.
pub(crate) const INTERRUPT_CHAR: char = '\u{3}';

/// The master side of a pseudoterminal. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct PtyMaster(Arc<AsyncFd<OwnedFd>>);

impl PtyMaster {
    /// Returns the id of the foreground process group, which reads the input.
    pub(crate) fn foreground_group(&self) -> Option<i32> {
        tcgetpgrp(self.0.get_ref()).ok().map(|group| group.as_raw_nonzero().get())
    }

    /// Returns the id of the session that the terminal controls.
    pub(crate) fn session_id(&self) -> Option<i32> {
        tcgetsid(self.0.get_ref()).ok().map(|session| session.as_raw_nonzero().get())
    }

    /// Returns whether the terminal driver would alter `text` before it is read, for example by an
    /// erase character. Differences in line ends do not count. Returns `true` on errors.
    pub(crate) fn alters_text(&self, text: &str) -> bool {
        let Ok(modes) = tcgetattr(self.0.get_ref()) else { return true };
        let is_end =
            text == EOF_TEXT && control_char(&modes, SpecialCodeIndex::VEOF) == Some(EOF_KEY);
        let is_key = |key: u8| text.as_bytes().contains(&key);
        let has_key =
            SPECIAL_KEYS.iter().any(|index| control_char(&modes, *index).is_some_and(is_key));
        (has_key && !is_end) || alters_letters(&modes, text)
    }

    /// Returns whether the terminal is in noncanonical mode, in which each key is delivered at
    /// once, as to a program that edits lines itself.
    pub(crate) fn is_noncanonical(&self) -> bool {
        tcgetattr(self.0.get_ref())
            .is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ICANON))
    }

    /// Returns the character that sends `SIGINT` and discards unread input, if there is one.
    pub(crate) fn interrupt_key(&self) -> Option<char> {
        let modes = tcgetattr(self.0.get_ref()).ok()?;
        let key = modes.special_codes[SpecialCodeIndex::VINTR];
        let throws_away = !modes.local_modes.contains(LocalModes::NOFLSH);
        (throws_away && modes.local_modes.contains(LocalModes::ISIG)).then(|| char::from(key))
    }

    /// Returns whether typed input has not been read yet. Returns `true` on errors.
    pub(crate) fn has_unread_input(&self) -> bool {
        let waiting = open_slave(self.0.get_ref()).map(rustix::io::ioctl_fionread);
        !matches!(waiting, Ok(Ok(0)))
    }

    /// Discards unread input if Ctrl-C sends `SIGINT` on this terminal; returns whether it did.
    ///
    /// Ctrl-C itself would discard it as well, but the driver does not see it when the input queue
    /// is full. A program that reads keys in raw mode loses no input.
    pub(crate) fn flush_unread_input(&self) -> bool {
        let end =
            (self.interrupt_key() == Some(INTERRUPT_CHAR)).then(|| open_slave(self.0.get_ref()));
        end.is_some_and(|end| end.is_ok_and(|end| tcflush(end, QueueSelector::IFlush).is_ok()))
    }
}

/// The character of Ctrl-D, which delivers an incomplete line to the reader.
const EOF_TEXT: &str = "\u{4}";
const EOF_KEY: u8 = 4;

/// The indexes of special characters, which are not read literally.
const SPECIAL_KEYS: &[SpecialCodeIndex] = &[
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VEOL2,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VLNEXT,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VREPRINT,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VWERASE,
];

/// Returns the special character of a kind, unless it is disabled.
fn control_char(modes: &Termios, index: SpecialCodeIndex) -> Option<u8> {
    // A disabled character is 0 on Linux and 0xff on BSD.
    Some(modes.special_codes[index]).filter(|code| !matches!(code, 0 | 0xff))
}

/// Returns whether ordinary characters would be altered.
fn alters_letters(modes: &Termios, text: &str) -> bool {
    let has = |mode| modes.input_modes.contains(mode);
    #[cfg(target_os = "linux")]
    let lowers = has(InputModes::IUCLC) && text.chars().any(|c| !c.is_ascii() || c.is_uppercase());
    #[cfg(not(target_os = "linux"))]
    let lowers = false;
    lowers
        || has(InputModes::ISTRIP) && !text.is_ascii()
        || has(InputModes::IGNCR) && text.contains('\r')
}

/// Returns the process group of a process; `None` for a missing process or a kernel thread.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the safe call assumes that every process has a group")]
pub(crate) fn pgid_of_pid(pid: i32) -> Option<i32> {
    // SAFETY: takes and returns an integer.
    let group = unsafe { libc::getpgid(pid) };
    (group > 0).then_some(group)
}

/// Returns the session of a process; `None` for a missing process or a kernel thread.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the safe call assumes that every process has a session")]
pub(crate) fn sid_of_pid(pid: i32) -> Option<i32> {
    // SAFETY: takes and returns an integer.
    let session = unsafe { libc::getsid(pid) };
    (session > 0).then_some(session)
}

/// Opens a pseudoterminal; returns the master and the slave side.
pub(super) fn open_pty() -> io::Result<(PtyMaster, OwnedFd)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOEXEC_FLAG)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    tcsetwinsize(&terminal, WINDOW_SIZE)?;
    let end = open_slave(&terminal)?;
    rustix::io::ioctl_fionbio(&terminal, true)?;
    // SAFETY: `terminal` owns its descriptor, which stays open and unchanged until it is dropped.
    #[expect(unsafe_code, reason = "the registered descriptor must not change")]
    let terminal = unsafe { AsyncFd::register(terminal) }.map_err(io::Error::from)?;
    Ok((PtyMaster(Arc::new(terminal)), end))
}

/// Opens the slave side of a pseudoterminal.
fn open_slave(terminal: &OwnedFd) -> io::Result<OwnedFd> {
    let name = ptsname(terminal, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name, flags, Mode::empty())?)
}

/// Keeps other children from inheriting it. Only Linux can set the flag when opening.
#[cfg(target_os = "linux")]
const CLOEXEC_FLAG: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSING: OpenptFlags = OpenptFlags::empty();

impl AsyncRead for PtyMaster {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let room = into.remaining().min(READ_CHUNK);
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

impl AsyncWrite for PtyMaster {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            // Try before waiting: flushing the input queue does not wake a waiting writer.
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
