//! Lines of a server, none of which may be endless.
//!
//! A message that is too long ends the connection, as more requests than anybody answers do:
//! whoever waits learns why, and nothing of it is kept.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::{fmt, io};

use tokio::io::{AsyncRead, ReadBuf};

use super::super::remote::RemoteError;
use super::MAX_MESSAGE;

/// What a server sent too much of, if anything.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow(Arc<OnceLock<String>>);

impl Overflow {
    /// The server sent too much of this; what was noticed first stays.
    pub(super) fn note(&self, what: fmt::Arguments<'_>) {
        self.0.get_or_init(|| format!("the server sent {what}"));
    }

    /// What there is to say about it.
    pub(super) fn error(&self) -> Option<RemoteError> {
        self.0.get().map(RemoteError::protocol)
    }
}

/// Reads lines, and stops at one that is too long.
pub(super) struct Bounded<R> {
    inner: R,
    line: usize,
    overflow: Overflow,
}

impl<R> Bounded<R> {
    pub(super) fn new(inner: R, overflow: Overflow) -> Self {
        Self { inner, line: 0, overflow }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        let first = self.line + memchr::memchr(b'\n', read).unwrap_or(read.len());
        self.line = match memchr::memrchr(b'\n', read) {
            Some(end) => read.len() - end - 1,
            None => first,
        };
        if first > MAX_MESSAGE {
            self.overflow.note(format_args!("a message of more than {MAX_MESSAGE} bytes"));
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}
