//! What a peer has said, line by line.
//!
//! **Invariant:** what is kept of a line is bounded, however long it is.

use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::super::message::LONGEST;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// What has come and is not looked at yet.
#[derive(Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no end of a line.
    seen: usize,
    /// The rest of a line that was too long is left out.
    skipping: bool,
}

/// One line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

impl Lines {
    /// The next line; nothing where more has to come first.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        // Mostly one line has come, and nothing is left to be looked through behind it.
        while self.seen < self.bytes.len() {
            let start = self.start;
            let Some(more) = memchr(b'\n', &self.bytes[self.seen..]) else { break };
            let length = self.seen + more - start;
            self.start = start + length + 1;
            self.seen = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            return Some(match length {
                ..=LONGEST => Line::Whole(trimmed(&self.bytes[start..start + length])),
                _ => Line::TooLong,
            });
        }
        self.overflow()
    }

    /// Makes room for the next read; what is left has no end yet.
    fn overflow(&mut self) -> Option<Line<'_>> {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.seen = self.bytes.len();
        if self.bytes.len() <= LONGEST && !self.skipping {
            return None;
        }
        self.bytes.clear();
        self.seen = 0;
        let was_skipping = std::mem::replace(&mut self.skipping, true);
        (!was_skipping).then_some(Line::TooLong)
    }

    /// Reads more; breaks where there is no more.
    pub(super) fn poll_more(
        &mut self,
        read: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<ControlFlow<()>> {
        // Room that is not made empty first: that would cost more than a small message does.
        self.bytes.reserve(CHUNK);
        let reading = pin!(read.read_buf(&mut self.bytes));
        Poll::Ready(match ready!(reading.poll(cx)) {
            Ok(1..) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        })
    }
}

/// Some systems end a line with two characters, and begin a stream with a mark. A line of
/// nothing but blanks says nothing.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Lines {
        Lines { bytes: bytes.to_vec(), ..Lines::default() }
    }

    #[test]
    fn a_line_is_whole_or_not_there() {
        let mut lines = lines(b"\xef\xbb\xbfone\r\n\n \t \r\ntw");
        assert_eq!(lines.next(), Some(Line::Whole(b"one")));
        assert_eq!(lines.next(), Some(Line::Whole(b"")));
        assert_eq!(lines.next(), Some(Line::Whole(b"")));
        assert_eq!(lines.next(), None);
        lines.bytes.extend_from_slice(b"o\n");
        assert_eq!(lines.next(), Some(Line::Whole(b"two")));
    }

    // What is too long is told once, and what comes after it is read.
    #[test]
    fn a_long_line_is_not_kept() {
        let mut lines = lines(&vec![b'x'; LONGEST + 1]);
        assert_eq!(lines.next(), Some(Line::TooLong));
        for _ in 0..3 {
            lines.bytes.extend_from_slice(&[b'x'; CHUNK]);
            assert_eq!(lines.next(), None);
            assert!(lines.bytes.is_empty());
        }
        lines.bytes.extend_from_slice(b"x\nnext\n");
        assert_eq!(lines.next(), Some(Line::Whole(b"next")));

        let mut whole = vec![b'x'; LONGEST + 1];
        whole.extend_from_slice(b"\nnext\n");
        let mut kept = Lines { bytes: whole, ..Lines::default() };
        assert_eq!(kept.next(), Some(Line::TooLong));
        assert_eq!(kept.next(), Some(Line::Whole(b"next")));
    }
}
