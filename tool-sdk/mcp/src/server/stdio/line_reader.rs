//! Reads the input line by line.
//!
//! **Invariant:** the buffer is bounded, however long a line is.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::server::message::MAX_MESSAGE_BYTES;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// The lines of a stream.
pub(super) struct LineReader<R> {
    read: R,
    /// The bytes that were read and not returned yet.
    bytes: Vec<u8>,
    /// The start of the next line.
    start: usize,
    /// The bytes before contain no end of that line.
    searched: usize,
    /// Whether the rest of a line that was too long is skipped.
    is_skipping: bool,
}

/// One line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine<'a> {
    Whole(&'a [u8]),
    /// Only the front of the line was kept.
    TooLong {
        front: &'a [u8],
    },
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(read: R) -> Self {
        Self { read, bytes: Vec::new(), start: 0, searched: 0, is_skipping: false }
    }

    /// Returns the next line, or `None` at the end. A last line without an end counts as one.
    ///
    /// Cancel safe: what was read is kept.
    pub(super) async fn next_line(&mut self) -> io::Result<Option<InputLine<'_>>> {
        while !self.find_line() {
            // Reserved space is not initialized, which would take longer than a small message.
            self.bytes.reserve(READ_BYTES);
            if self.read.read_buf(&mut self.bytes).await? == 0 {
                if self.bytes.is_empty() {
                    return Ok(None);
                }
                self.bytes.push(b'\n');
            }
        }
        Ok(Some(self.take_line()))
    }

    /// Returns true if a line can be taken. Makes room for the next read otherwise.
    fn find_line(&mut self) -> bool {
        while let Some(length) = memchr(b'\n', &self.bytes[self.searched..]) {
            self.searched += length;
            if !self.is_skipping {
                return true;
            }
            (self.is_skipping, self.searched) = (false, self.searched + 1);
            self.start = self.searched;
        }
        self.bytes.drain(..self.start);
        self.start = 0;
        self.searched = self.bytes.len();
        if self.is_skipping {
            self.bytes.clear();
            self.searched = 0;
        }
        self.bytes.len() > MAX_MESSAGE_BYTES
    }

    fn take_line(&mut self) -> InputLine<'_> {
        let (start, end) = (self.start, self.searched);
        let is_whole = self.bytes.get(end) == Some(&b'\n');
        // Otherwise its end is still to come, and is skipped.
        self.is_skipping = !is_whole;
        self.searched = end + usize::from(is_whole);
        self.start = self.searched;
        let line = trim_line(&self.bytes[start..end]);
        match is_whole && end - start <= MAX_MESSAGE_BYTES {
            true => InputLine::Whole(line),
            false => InputLine::TooLong { front: line },
        }
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

    async fn read_all(input: &[u8]) -> Vec<Option<String>> {
        let (mut lines, mut all) = (LineReader::new(input), Vec::new());
        while let Some(line) = lines.next_line().await.unwrap() {
            all.push(match line {
                InputLine::Whole(line) => Some(String::from_utf8(line.to_vec()).unwrap()),
                InputLine::TooLong { .. } => None,
            });
        }
        all
    }

    #[tokio::test]
    async fn trims_lines_and_returns_the_last_one_without_an_end() {
        let lines = read_all(b"\xef\xbb\xbfone\r\n\n \t \r\ntwo").await;
        assert_eq!(lines, ["one", "", "", "two"].map(|line| Some(line.to_owned())));
    }

    #[tokio::test]
    async fn reports_a_long_line_once_and_reads_on() {
        let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
        let next = Some("next".to_owned());
        assert_eq!(read_all(format!("{long}\nnext\n").as_bytes()).await, [None, next.clone()]);
        let longer = format!("{}\nnext\n{long}", long.repeat(3));
        assert_eq!(read_all(longer.as_bytes()).await, [None, next, None]);
    }

    #[tokio::test]
    async fn keeps_only_a_bounded_part_of_a_long_line() {
        let input = "x".repeat(4 * MAX_MESSAGE_BYTES);
        let mut lines = LineReader::new(input.as_bytes());
        let first = lines.next_line().await.unwrap();
        assert!(matches!(first, Some(InputLine::TooLong { .. })));
        assert_eq!(lines.next_line().await.unwrap(), None);
        assert!(lines.bytes.capacity() <= 2 * (MAX_MESSAGE_BYTES + READ_BYTES));
    }
}
