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
    InputModes, LocalModes, QueueSelector, SpecialCodeIndex, Termios, Winsize, tcflush, tcgetattr,
    tcgetpgrp, tcgetsid, tcsetwinsize,
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

    /// The number of the session that it belongs to.
    pub(in crate::process) fn session(&self) -> Option<i32> {
        tcgetsid(self.0.get_ref()).ok().map(|session| session.as_raw_nonzero().get())
    }

    /// Whether it makes something else of a text than that says, or nobody knows. Line ends count
    /// as the same.
    pub(in crate::process) fn alters(&self, text: &str) -> bool {
        let Ok(modes) = tcgetattr(self.0.get_ref()) else { return true };
        let is_end = text == END && code(&modes, SpecialCodeIndex::VEOF) == Some(END_KEY);
        let is_key = |key: u8| text.as_bytes().contains(&key);
        let has_key = KEYS.iter().any(|index| code(&modes, *index).is_some_and(is_key));
        (has_key && !is_end) || changes_letters(&modes, text)
    }

    /// Whether it hands on each key at once, as to a program that edits lines itself.
    pub(in crate::process) fn hands_on_keys(&self) -> bool {
        tcgetattr(self.0.get_ref())
            .is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ICANON))
    }

    /// The character that interrupts and throws away what was not read, where one does.
    pub(in crate::process) fn interrupt_key(&self) -> Option<char> {
        let modes = tcgetattr(self.0.get_ref()).ok()?;
        let key = modes.special_codes[SpecialCodeIndex::VINTR];
        let throws_away = !modes.local_modes.contains(LocalModes::NOFLSH);
        (throws_away && modes.local_modes.contains(LocalModes::ISIG)).then(|| char::from(key))
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

/// What Ctrl-D types, which hands over what there is of a line.
const END: &str = "\u{4}";
const END_KEY: u8 = 4;

/// The characters that mean something else than themselves.
const KEYS: &[SpecialCodeIndex] = &[
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

/// The character of a kind, where there is one.
fn code(modes: &Termios, index: SpecialCodeIndex) -> Option<u8> {
    // Some systems say so with the last character.
    Some(modes.special_codes[index]).filter(|code| !matches!(code, 0 | 0xff))
}

/// Whether characters that mean themselves arrive as others.
fn changes_letters(modes: &Termios, text: &str) -> bool {
    let has = |mode| modes.input_modes.contains(mode);
    #[cfg(target_os = "linux")]
    let lowers = has(InputModes::IUCLC) && text.chars().any(|c| !c.is_ascii() || c.is_uppercase());
    #[cfg(not(target_os = "linux"))]
    let lowers = false;
    lowers
        || has(InputModes::ISTRIP) && !text.is_ascii()
        || has(InputModes::IGNCR) && text.contains('\r')
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

/// The session that a process belongs to, in the same way.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the safe call takes it that every process has a session")]
pub(in crate::process) fn session_of(pid: i32) -> Option<i32> {
    // SAFETY: it takes a number and gives one.
    let session = unsafe { libc::getsid(pid) };
    (session > 0).then_some(session)
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
