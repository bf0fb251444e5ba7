//! Splits the input into lines.
//!
//! **Invariant:** the buffer is bounded, however long a line is.

use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::message::MAX_MESSAGE_BYTES;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// What has come and is not looked at yet.
#[derive(Default)]
pub(super) struct LineReader {
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
pub(super) enum InputLine<'a> {
    Whole(&'a [u8]),
    TooLong,
}

impl LineReader {
    /// The next line; nothing where more has to come first.
    pub(super) fn next_line(&mut self) -> Option<InputLine<'_>> {
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
                ..=MAX_MESSAGE_BYTES => {
                    InputLine::Whole(trim_line(&self.bytes[start..start + length]))
                }
                _ => InputLine::TooLong,
            });
        }
        self.compact()
    }

    /// Makes room for the next read; what is left has no end yet.
    fn compact(&mut self) -> Option<InputLine<'_>> {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.seen = self.bytes.len();
        if self.bytes.len() <= MAX_MESSAGE_BYTES && !self.skipping {
            return None;
        }
        self.bytes.clear();
        self.seen = 0;
        let was_skipping = std::mem::replace(&mut self.skipping, true);
        (!was_skipping).then_some(InputLine::TooLong)
    }

    /// Reads more; breaks where there is no more.
    pub(super) fn poll_read_more(
        &mut self,
        read: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<ControlFlow<()>> {
        // Room that is not made empty first: that would cost more than a small message does.
        self.bytes.reserve(READ_BYTES);
        let reading = pin!(read.read_buf(&mut self.bytes));
        Poll::Ready(match ready!(reading.poll(cx)) {
            Ok(1..) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        })
    }
}

/// Some systems end a line with two characters, and begin a stream with a mark. A line of
/// nothing but blanks says nothing.
fn trim_line(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> LineReader {
        LineReader { bytes: bytes.to_vec(), ..LineReader::default() }
    }

    #[test]
    fn a_line_is_whole_or_not_there() {
        let mut lines = lines(b"\xef\xbb\xbfone\r\n\n \t \r\ntw");
        assert_eq!(lines.next_line(), Some(InputLine::Whole(b"one")));
        assert_eq!(lines.next_line(), Some(InputLine::Whole(b"")));
        assert_eq!(lines.next_line(), Some(InputLine::Whole(b"")));
        assert_eq!(lines.next_line(), None);
        lines.bytes.extend_from_slice(b"o\n");
        assert_eq!(lines.next_line(), Some(InputLine::Whole(b"two")));
    }

    // What is too long is told once, and what comes after it is read.
    #[test]
    fn a_long_line_is_not_kept() {
        let mut lines = lines(&vec![b'x'; MAX_MESSAGE_BYTES + 1]);
        assert_eq!(lines.next_line(), Some(InputLine::TooLong));
        for _ in 0..3 {
            lines.bytes.extend_from_slice(&[b'x'; READ_BYTES]);
            assert_eq!(lines.next_line(), None);
            assert!(lines.bytes.is_empty());
        }
        lines.bytes.extend_from_slice(b"x\nnext\n");
        assert_eq!(lines.next_line(), Some(InputLine::Whole(b"next")));

        let mut whole = vec![b'x'; MAX_MESSAGE_BYTES + 1];
        whole.extend_from_slice(b"\nnext\n");
        let mut kept = LineReader { bytes: whole, ..LineReader::default() };
        assert_eq!(kept.next_line(), Some(InputLine::TooLong));
        assert_eq!(kept.next_line(), Some(InputLine::Whole(b"next")));
    }
}
