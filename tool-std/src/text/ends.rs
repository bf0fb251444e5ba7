//! Where the lines of a text end: all LFs of a block of bytes at a time.
//!
//! Lines are short. To look for the next end by itself, again and again, takes longer than
//! to look at the bytes.

/// How many bytes are looked at together.
const BLOCK: usize = 64;

/// The places of all LFs.
pub(crate) fn ends(text: &str) -> Ends<'_> {
    Ends { rest: text.as_bytes(), start: 0, next: 0, found: 0 }
}

/// The places of the LFs of a text, from its start on.
pub(crate) struct Ends<'t> {
    /// What was not looked at yet.
    rest: &'t [u8],
    /// Where the last block begins, and where the next one does.
    start: usize,
    next: usize,
    /// What is left of the last block's ends.
    found: u64,
}

impl Iterator for Ends<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.found == 0 && !self.look() {
            return None;
        }
        let end = self.start + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(end)
    }
}

impl Ends<'_> {
    /// Goes on to the next block in which lines end, if there is one.
    fn look(&mut self) -> bool {
        while self.found == 0 {
            self.start = self.next;
            if let Some((block, rest)) = self.rest.split_first_chunk() {
                (self.rest, self.next) = (rest, self.next + BLOCK);
                self.found = ends_of(block);
            } else if self.rest.is_empty() {
                return false;
            } else {
                let mut block = [0; BLOCK];
                block[..self.rest.len()].copy_from_slice(self.rest);
                self.rest = &[];
                self.found = ends_of(&block);
            }
        }
        true
    }
}

/// A bit for each byte that is an LF; that of the first byte is the lowest.
#[inline(always)]
fn ends_of(block: &[u8; BLOCK]) -> u64 {
    // In this form it becomes vector instructions.
    let mut is_end = [0; BLOCK];
    for (is_end, byte) in is_end.iter_mut().zip(block) {
        *is_end = u8::from(*byte == b'\n');
    }
    let eights = is_end.as_chunks().0.iter().enumerate();
    eights.fold(0, |bits, (at, eight)| bits | lowest_bits(eight) << (8 * at))
}

/// The lowest bit of each of eight bytes, of which the others are zero.
#[inline(always)]
fn lowest_bits(bytes: &[u8; 8]) -> u64 {
    // Each bit is moved to its place in the highest byte, and no two meet on the way.
    u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_end_is_found(text in "[a\né]{0,300}") {
            let found: Vec<_> = text.match_indices('\n').map(|(at, _)| at).collect();
            prop_assert_eq!(ends(&text).collect::<Vec<_>>(), found);
        }
    }
}
