//! Buffers an incomplete sequence at the end of an output chunk: a UTF-8 character, a `\r\n`
//! line end, or a terminal escape sequence.
//!
//! Readers that take the output in chunks then receive each sequence whole, in the chunk that
//! contains its end.
//!
//! **Invariant:** at most [`MAX_PENDING_BYTES`] bytes are buffered, and no byte is lost.

use std::borrow::Cow;

use super::capture::complete_chars_len;

/// The longest incomplete sequence that is buffered, in bytes.
const MAX_PENDING_BYTES: usize = 4096;

const ESCAPE: u8 = 0x1b;

/// The incomplete sequence at the end of a stream.
#[derive(Debug, Default)]
pub(super) struct PartialSequence(Vec<u8>);

impl PartialSequence {
    /// Appends `bytes` and returns everything up to the next incomplete sequence.
    pub(super) fn take_complete<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.0.is_empty() {
            let (whole, begun) = bytes.split_at(bytes.len() - incomplete_len(bytes));
            self.0.extend_from_slice(begun);
            return Cow::Borrowed(whole);
        }
        self.0.extend_from_slice(bytes);
        let rest = self.0.split_off(self.0.len() - incomplete_len(&self.0));
        Cow::Owned(std::mem::replace(&mut self.0, rest))
    }

    /// Returns the number of buffered bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the buffered bytes at the end of the stream.
    pub(super) fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Returns the length of the incomplete sequence at the end of `bytes`.
fn incomplete_len(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(MAX_PENDING_BYTES)..];
    match memchr::memrchr(ESCAPE, last) {
        Some(at) if is_incomplete_escape(&last[at + 1..]) => last.len() - at,
        _ if last.ends_with(b"\r") => 1,
        _ => last.len() - complete_chars_len(last),
    }
}

/// Returns whether the bytes after an ESC character are an incomplete escape sequence.
fn is_incomplete_escape(rest: &[u8]) -> bool {
    let Some((first, rest)) = rest.split_first() else { return true };
    match first {
        b'[' => rest.iter().all(|byte| (0x20..=0x3f).contains(byte)),
        b']' | b'P' | b'_' | b'^' | b'X' => !rest.iter().any(|byte| matches!(byte, 0x7 | b'\n')),
        b' '..=b'/' => rest.iter().all(|byte| (b' '..=b'/').contains(byte)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // F138
    #[test]
    fn what_has_begun_waits_for_its_end() {
        for (bytes, expected) in [
            (&b"ab"[..], 0),
            ("ä".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xf0\x9f\x98", 3),
            (b"\xff", 0),
            (b"a\r", 1),
            (b"a\r\n", 0),
            (b"a\x1b", 1),
            (b"a\x1b[1;3", 5),
            (b"a\x1b[1;31m", 0),
            (b"a\x1b[31mb\xc3", 1),
            (b"\x1b]0;ti", 6),
            (b"\x1b]0;title\x07", 0),
            (b"\x1b]0;title\n", 0),
            (b"\x1b(", 2),
            (b"\x1b(B", 0),
            (b"\x1b%", 2),
            (b"\x1b%G", 0),
            (b"\x1b=", 0),
        ] {
            assert_eq!(incomplete_len(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn what_never_ends_is_not_waited_for() {
        let mut begun = PartialSequence::default();
        assert!(begun.take_complete(b"\x1b]").is_empty());
        assert!(begun.take_complete(&[b'x'; MAX_PENDING_BYTES - 2]).is_empty());
        assert_eq!(begun.take_complete(b"y").len(), MAX_PENDING_BYTES + 1);
        assert_eq!(begun.len(), 0);
    }

    proptest! {
        // All bytes are returned in order, for any chunk size.
        #[test]
        fn nothing_is_lost(
            bytes in prop::collection::vec(prop_oneof![
                any::<u8>(), Just(ESCAPE), Just(b'['), Just(b']'), Just(0xc3), Just(b'\r')
            ], 0..200),
            step in 1_usize..40,
        ) {
            let mut begun = PartialSequence::default();
            let mut heard = Vec::new();
            for chunk in bytes.chunks(step) {
                heard.extend_from_slice(&begun.take_complete(chunk));
                prop_assert!(begun.len() <= MAX_PENDING_BYTES);
            }
            heard.extend(begun.take_pending());
            prop_assert_eq!(heard, bytes);
        }
    }
}
