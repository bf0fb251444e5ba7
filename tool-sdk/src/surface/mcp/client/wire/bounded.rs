//! Lines of a server, none of which may be endless.
//!
//! A message that is too long ends the connection: whoever waits for it learns why, and
//! nothing of it is kept.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::super::remote::RemoteError;
use super::MAX_MESSAGE;

/// Whether a message was too long.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow(Arc<AtomicBool>);

impl Overflow {
    /// What there is to say about it.
    pub(super) fn error(&self) -> Option<RemoteError> {
        let words = format_args!("the server sent a message of more than {MAX_MESSAGE} bytes");
        self.0.load(Ordering::Relaxed).then(|| RemoteError::protocol(words))
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
            self.overflow.0.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}
