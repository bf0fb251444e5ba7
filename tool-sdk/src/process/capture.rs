//! Captures the head and the tail of a child's output and counts what is omitted between them.
//!
//! **Invariant:** the stream is always drained, so a child that writes more than the limit is
//! neither blocked nor able to make the host use more memory.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The size of the first read buffer, and of the one for streams that fill it, in bytes.
const FIRST: usize = 8 << 10;
const CHUNK: usize = 128 << 10;

/// Collects the head and the tail of a stream, each up to half of the limit.
#[derive(Clone, Debug)]
pub(super) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    lines: u64,
}

/// The captured output of a child: head, tail, and how much was omitted between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Captured {
    /// The start of the output, or all of it.
    pub head: Vec<u8>,
    /// The end of the output; empty unless output was omitted.
    pub tail: Vec<u8>,
    /// The number of omitted bytes.
    pub omitted: u64,
    /// The number of newlines among the omitted bytes.
    pub omitted_lines: u64,
}

/// Reads `stream` to its end and calls `on_chunk` with each chunk.
pub(super) async fn read(mut stream: impl AsyncRead + Unpin, mut heard: impl FnMut(&[u8])) {
    // Uninitialized capacity: most programs write less than it would cost to zero the buffer.
    // For the same reason the buffer starts small.
    let mut chunk = Vec::with_capacity(FIRST);
    // Treat a read error as the end: a terminal returns EIO once every process has closed it.
    while let Ok(1..) = stream.read_buf(&mut chunk).await {
        heard(&chunk);
        let is_full = chunk.len() == chunk.capacity();
        chunk.clear();
        if is_full {
            chunk.reserve_exact(CHUNK);
        }
    }
}

impl Capture {
    /// Creates a capture that keeps at most `keep` bytes.
    pub(super) fn new(keep: usize) -> Self {
        Self { half: keep / 2, head: Vec::new(), tail: VecDeque::new(), total: 0, lines: 0 }
    }

    /// Reads `stream` to its end. Cancel safe: chunks that were read stay captured.
    pub(super) async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(stream) = stream else { return };
        read(stream, |part| self.push(part)).await;
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.lines += line_ends(bytes);
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Returns the kept bytes in order.
    #[cfg(unix)]
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let (tail, rest) = self.tail.as_slices();
        [&*self.head, tail, rest].into_iter().filter(|part| !part.is_empty())
    }

    /// Returns what was captured so far and starts over. The last `held` bytes are moved to the
    /// new capture, unless they exceed half of the limit.
    #[cfg(unix)]
    pub(super) fn take(&mut self, held: usize) -> Captured {
        let fresh = Self::new(self.half * 2);
        let mut taken = std::mem::replace(self, fresh).finish();
        let end = if taken.is_whole() { &mut taken.head } else { &mut taken.tail };
        if held <= self.half.min(end.len()) {
            let held = end.split_off(end.len() - held);
            self.push(&held);
        }
        taken
    }

    pub(super) fn finish(self) -> Captured {
        let Self { mut head, tail, total, lines, .. } = self;
        let omitted = total - (head.len() + tail.len()) as u64;
        if omitted > 0 {
            let tail: Vec<u8> = tail.into();
            let omitted_lines = lines - line_ends(&head) - line_ends(&tail);
            return Captured { head, tail, omitted, omitted_lines };
        }
        head.extend(tail);
        Captured { head, ..Captured::default() }
    }
}

impl Captured {
    /// Converts the output to text, with a note where bytes were omitted.
    ///
    /// Invalid UTF-8 is replaced by `\u{fffd}`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(unix)]
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use tool_sdk::process::{self, Command};
    ///
    /// let output = process::run(Command::shell("seq 9").output_limit(8)).await?;
    /// assert_eq!(output.stdout.to_text(), "1\n2\n\n[10 bytes left out]\n8\n9\n");
    /// # Ok::<(), process::RunError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let (head, tail) = self.ends();
        format!("{}{}{}", String::from_utf8_lossy(head), self.mark(), String::from_utf8_lossy(tail))
    }

    /// Returns the note that [`to_text`](Self::to_text) inserts where bytes were omitted; empty
    /// when the output is complete.
    #[must_use]
    pub fn mark(&self) -> String {
        match self.lost() {
            0 => String::new(),
            lost => format!("\n[{lost} bytes left out]\n"),
        }
    }

    /// Returns how many bytes are missing from [`to_text`](Self::to_text): the omitted bytes and
    /// those of characters cut by the omission.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let (head, tail) = self.ends();
        let kept = self.head.len() + self.tail.len();
        self.omitted + (kept - head.len() - tail.len()) as u64
    }

    /// Returns head and tail without the characters cut by the omission.
    fn ends(&self) -> (&[u8], &[u8]) {
        if self.omitted == 0 {
            return (&self.head, &self.tail);
        }
        let halved = self.tail.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
        (&self.head[..whole_chars(&self.head)], &self.tail[halved..])
    }

    /// Returns whether no bytes were omitted.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.omitted == 0
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Returns the length of `bytes` without an incomplete UTF-8 character at the end.
pub(super) fn whole_chars(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(4).position(|byte| byte & 0xC0 != 0x80);
    let start = bytes.len() - last.map_or(0, |behind| behind + 1);
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.error_len().is_none() => start,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(keep: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(keep);
        chunks.iter().for_each(|chunk| capture.push(chunk));
        capture.finish()
    }

    #[test]
    fn a_character_is_never_halved() {
        let text = captured(6, &["ääxää".as_bytes(), b"!"]).text();
        assert_eq!(text, "ä\n[5 bytes left out]\nä!");
    }

    // F138: held bytes are returned, and counted, with the next chunk.
    #[test]
    #[cfg(unix)]
    fn what_is_held_comes_later() {
        for (keep, held, expected) in [
            (64, 0, ["abcdefghijk", "lm"]),
            (64, 1, ["abcdefghij", "klm"]),
            (8, 0, ["abcd\n[3 bytes left out]\nhijk", "lm"]),
            (8, 1, ["abcd\n[3 bytes left out]\nhij", "klm"]),
            (8, 4, ["abcd\n[3 bytes left out]\n", "hijklm"]),
            (8, 5, ["abcd\n[3 bytes left out]\nhijk", "lm"]),
        ] {
            let mut capture = Capture::new(keep);
            capture.push(b"abcdefghijk");
            let first = capture.take(held).text();
            capture.push(b"lm");
            assert_eq!([first, capture.take(0).text()], expected, "{keep} {held}");
        }
    }

    #[test]
    fn what_is_no_text_is_shown_as_such() {
        assert_eq!(captured(9, &[b"a\xffb"]).text(), "a\u{fffd}b");
    }

    proptest! {
        // CH8: head and tail are kept and the rest is counted, for any chunk size.
        #[test]
        fn the_ends_are_kept_and_the_rest_is_counted(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            keep in 2_usize..64,
            step in 1_usize..40,
        ) {
            let chunks: Vec<_> = bytes.chunks(step).collect();
            let captured = captured(keep, &chunks);
            prop_assert!(bytes.starts_with(&captured.head) && bytes.ends_with(&captured.tail));
            let kept = captured.head.len() + captured.tail.len();
            prop_assert!(kept <= keep);
            prop_assert_eq!(kept as u64 + captured.omitted, bytes.len() as u64);
            let between = &bytes[captured.head.len()..bytes.len() - captured.tail.len()];
            prop_assert_eq!(line_ends(between), captured.omitted_lines);
            prop_assert!(captured.is_whole() || kept >= keep - 1);
            let _ = captured.text();
        }
    }
}
