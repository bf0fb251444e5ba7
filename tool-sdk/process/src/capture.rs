//! Captures the head and the tail of a child's output and counts what is omitted between them.
//!
//! **Invariant:** the stream is always drained, so a child that writes more than the limit is
//! neither blocked nor able to make the host use more memory.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The size of the first read buffer, and of the one for streams that fill it, in bytes.
const INITIAL_CHUNK: usize = 8 << 10;
const LARGE_CHUNK: usize = 128 << 10;

/// Collects the head and the tail of a stream, each up to half of the limit.
#[derive(Clone, Debug)]
pub(super) struct OutputCapture {
    half_limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
    total_lines: u64,
}

/// The captured output of a child: head, tail, and how much was omitted between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedOutput {
    /// The start of the output, or all of it.
    pub head: Vec<u8>,
    /// The end of the output; empty unless output was omitted.
    pub tail: Vec<u8>,
    /// The number of omitted bytes.
    pub omitted_bytes: u64,
    /// The number of newlines among the omitted bytes.
    pub omitted_lines: u64,
}

/// Reads `stream` to its end and calls `on_chunk` with each chunk.
pub(super) async fn read_chunks(
    mut stream: impl AsyncRead + Unpin,
    mut on_chunk: impl FnMut(&[u8]),
) {
    // Uninitialized capacity: most programs write less than it would cost to zero the buffer.
    // For the same reason the buffer starts small.
    let mut chunk = Vec::with_capacity(INITIAL_CHUNK);
    // Treat a read error as the end: a terminal returns EIO once every process has closed it.
    while let Ok(1..) = stream.read_buf(&mut chunk).await {
        on_chunk(&chunk);
        let is_full = chunk.len() == chunk.capacity();
        chunk.clear();
        if is_full {
            chunk.reserve_exact(LARGE_CHUNK);
        }
    }
}

impl OutputCapture {
    /// Creates a capture that keeps at most `keep` bytes.
    pub(super) fn new(keep: usize) -> Self {
        Self {
            half_limit: keep / 2,
            head: Vec::new(),
            tail: VecDeque::new(),
            total_bytes: 0,
            total_lines: 0,
        }
    }

    /// Reads `stream` to its end. Cancel safe: chunks that were read stay captured.
    pub(super) async fn read_to_end(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(stream) = stream else { return };
        read_chunks(stream, |part| self.push(part)).await;
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        self.total_lines += count_newlines(bytes);
        let (first, rest) = bytes.split_at(bytes.len().min(self.half_limit - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half_limit)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.half_limit);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Returns the kept bytes in order.
    #[cfg(unix)]
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let (tail, rest) = self.tail.as_slices();
        [&*self.head, tail, rest].into_iter().filter(|part| !part.is_empty())
    }

    /// Returns what was captured so far and starts over. The last `held` bytes are moved to the
    /// new capture, unless they exceed half of the limit.
    #[cfg(unix)]
    pub(super) fn take_output(&mut self, held: usize) -> CapturedOutput {
        let fresh = Self::new(self.half_limit * 2);
        let mut taken = std::mem::replace(self, fresh).finish();
        let end = if taken.is_whole() { &mut taken.head } else { &mut taken.tail };
        if held <= self.half_limit.min(end.len()) {
            let held = end.split_off(end.len() - held);
            self.push(&held);
        }
        taken
    }

    pub(super) fn finish(self) -> CapturedOutput {
        let Self { mut head, tail, total_bytes: total, total_lines: lines, .. } = self;
        let omitted = total - (head.len() + tail.len()) as u64;
        if omitted > 0 {
            let tail: Vec<u8> = tail.into();
            let omitted_lines = lines - count_newlines(&head) - count_newlines(&tail);
            return CapturedOutput { head, tail, omitted_bytes: omitted, omitted_lines };
        }
        head.extend(tail);
        CapturedOutput { head, ..CapturedOutput::default() }
    }
}

impl CapturedOutput {
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
    pub fn to_text(&self) -> String {
        let (head, tail) = self.complete_chars();
        format!(
            "{}{}{}",
            String::from_utf8_lossy(head),
            self.omission_note(),
            String::from_utf8_lossy(tail)
        )
    }

    /// Returns the note that [`to_text`](Self::to_text) inserts where bytes were omitted; empty
    /// when the output is complete.
    #[must_use]
    pub fn omission_note(&self) -> String {
        match self.lost_bytes() {
            0 => String::new(),
            lost => format!("\n[{lost} bytes left out]\n"),
        }
    }

    /// Returns how many bytes are missing from [`to_text`](Self::to_text): the omitted bytes and
    /// those of characters cut by the omission.
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        let (head, tail) = self.complete_chars();
        let kept = self.head.len() + self.tail.len();
        self.omitted_bytes + (kept - head.len() - tail.len()) as u64
    }

    /// Returns head and tail without the characters cut by the omission.
    fn complete_chars(&self) -> (&[u8], &[u8]) {
        if self.omitted_bytes == 0 {
            return (&self.head, &self.tail);
        }
        let halved = self.tail.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
        (&self.head[..complete_chars_len(&self.head)], &self.tail[halved..])
    }

    /// Returns whether no bytes were omitted.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.omitted_bytes == 0
    }
}

fn count_newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Returns the length of `bytes` without an incomplete UTF-8 character at the end.
pub(super) fn complete_chars_len(bytes: &[u8]) -> usize {
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

    fn captured(keep: usize, chunks: &[&[u8]]) -> CapturedOutput {
        let mut capture = OutputCapture::new(keep);
        chunks.iter().for_each(|chunk| capture.push(chunk));
        capture.finish()
    }

    #[test]
    fn a_character_is_never_halved() {
        let text = captured(6, &["ääxää".as_bytes(), b"!"]).to_text();
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
            let mut capture = OutputCapture::new(keep);
            capture.push(b"abcdefghijk");
            let first = capture.take_output(held).to_text();
            capture.push(b"lm");
            assert_eq!([first, capture.take_output(0).to_text()], expected, "{keep} {held}");
        }
    }

    #[test]
    fn what_is_no_text_is_shown_as_such() {
        assert_eq!(captured(9, &[b"a\xffb"]).to_text(), "a\u{fffd}b");
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
            prop_assert_eq!(kept as u64 + captured.omitted_bytes, bytes.len() as u64);
            let between = &bytes[captured.head.len()..bytes.len() - captured.tail.len()];
            prop_assert_eq!(count_newlines(between), captured.omitted_lines);
            prop_assert!(captured.is_whole() || kept >= keep - 1);
            let _ = captured.to_text();
        }
    }
}
