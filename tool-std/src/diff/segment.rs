//! Splits two texts into segments of equal and of different lines.
//!
//! **Invariant:** the segments joined are both texts.

use std::ops::Range;

use memchr::{memchr_iter, memrchr_iter};
use similar::{DiffTag, TextDiff};

use super::CONTEXT;
use crate::text::lines::{count_lines, is_single_line, split_lines};

/// The number of bytes that are compared at once.
const BLOCK: usize = 4096;

/// Whole lines of the old text that are replaced by whole lines of the new one, as byte ranges
/// without the byte order mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineChange {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
    /// The number of lines in both texts.
    pub(crate) lines: [usize; 2],
}

impl LineChange {
    /// Whether no old line equals a new one.
    fn is_all_different(&self, gone: &str, come: &str) -> bool {
        matches!(self.lines, [0, _] | [_, 0] | [1, 1]) && gone != come
    }
}

/// Counts the removed and added lines; `None` when the changes are incomplete, or when some of
/// their lines may be equal.
pub(super) fn counts_from_changes(
    [mut old, mut new]: [&str; 2],
    changes: &[LineChange],
) -> Option<[usize; 2]> {
    let (mut old_at, mut new_at) = (0, 0);
    let mut counts = [0, 0];
    for change in changes {
        let (same, gone, old_rest) = split_around(old, old_at, &change.old)?;
        let (same_in_new, come, new_rest) = split_around(new, new_at, &change.new)?;
        if same != same_in_new || !change.is_all_different(gone, come) {
            return None;
        }
        counts = [counts[0] + change.lines[0], counts[1] + change.lines[1]];
        (old, new, old_at, new_at) = (old_rest, new_rest, change.old.end, change.new.end);
    }
    (old == new).then_some(counts)
}

/// Splits the rest of a text, which begins at byte `at`, into the parts before, in and after a
/// range.
fn split_around<'t>(
    rest: &'t str,
    at: usize,
    range: &Range<usize>,
) -> Option<(&'t str, &'t str, &'t str)> {
    let (before, rest) = rest.split_at_checked(range.start.checked_sub(at)?)?;
    let (within, rest) = rest.split_at_checked(range.end.checked_sub(range.start)?)?;
    Some((before, within, rest))
}

/// A segment of two texts, in whole lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DiffSegment<'t> {
    /// In both texts.
    Equal(&'t str),
    /// Removed and added lines, with the number of each.
    Changed { old: &'t str, new: &'t str, lines: [usize; 2] },
}

impl<'t> DiffSegment<'t> {
    /// Compares two texts.
    pub(super) fn from_texts(old: &'t str, new: &'t str) -> Vec<Self> {
        let mut stretches = SegmentBuilder { text: old, list: Vec::new(), equal: 0..0 };
        let part = DifferingPart::find(old, new);
        stretches.extend_equal(part.start);
        stretches.compare_texts(part.old, part.new);
        stretches.finish()
    }

    /// Builds the segments from known changes; `None` when the changes are incomplete.
    pub(super) fn from_changes(
        old: &'t str,
        new: &'t str,
        changes: &[LineChange],
    ) -> Option<Vec<Self>> {
        let list = Vec::with_capacity(2 * changes.len() + 1);
        let mut stretches = SegmentBuilder { text: old, list, equal: 0..0 };
        let (mut old_at, mut new_at) = (0, 0);
        let (old_end, new_end) = (old.len()..old.len(), new.len()..new.len());
        let end = LineChange { old: old_end, new: new_end, lines: [0, 0] };
        for change in changes.iter().chain([&end]) {
            let same = old.get(old_at..change.old.start)?;
            if same != new.get(new_at..change.new.start)? {
                return None;
            }
            stretches.extend_equal(same.len());
            let (gone, come) = (old.get(change.old.clone())?, new.get(change.new.clone())?);
            match change.is_all_different(gone, come) {
                true => stretches.push_changed(gone, come, change.lines),
                false => stretches.compare_texts(gone, come),
            }
            (old_at, new_at) = (change.old.end, change.new.end);
        }
        Some(stretches.finish())
    }

    /// Returns the number of bytes in both texts.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Equal(same) => same.len(),
            Self::Changed { old, new, .. } => old.len() + new.len(),
        }
    }
}

/// Builds the segments of two texts.
struct SegmentBuilder<'t> {
    /// The old text.
    text: &'t str,
    list: Vec<DiffSegment<'t>>,
    /// The equal text after the last segment.
    equal: Range<usize>,
}

impl<'t> SegmentBuilder<'t> {
    fn extend_equal(&mut self, len: usize) {
        self.equal.end += len;
    }

    fn push_changed(&mut self, old: &'t str, new: &'t str, lines: [usize; 2]) {
        if !self.equal.is_empty() {
            self.list.push(DiffSegment::Equal(&self.text[self.equal.clone()]));
        }
        let next = self.equal.end + old.len();
        self.equal = next..next;
        self.list.push(DiffSegment::Changed { old, new, lines });
    }

    /// Compares lines of which some may be equal.
    fn compare_texts(&mut self, old: &'t str, new: &'t str) {
        match (old, new) {
            ("", "") => {}
            ("", _) | (_, "") => self.push_changed(old, new, [count_lines(old), count_lines(new)]),
            _ if old != new && is_single_line(old) && is_single_line(new) => {
                self.push_changed(old, new, [1, 1])
            }
            _ => self.compare_lines(old, new),
        }
    }

    fn compare_lines(&mut self, mut old: &'t str, mut new: &'t str) {
        let whole = |text| split_lines(text).map(|line| line.whole).collect::<Vec<_>>();
        let (old_lines, new_lines) = (whole(old), whole(new));
        for op in TextDiff::configure().diff_slices(&old_lines, &new_lines).ops() {
            let (gone, come);
            (gone, old) = old.split_at(total_len(&old_lines[op.old_range()]));
            (come, new) = new.split_at(total_len(&new_lines[op.new_range()]));
            match op.tag() {
                DiffTag::Equal => self.extend_equal(gone.len()),
                _ => self.push_changed(gone, come, [op.old_range().len(), op.new_range().len()]),
            }
        }
    }

    fn finish(mut self) -> Vec<DiffSegment<'t>> {
        let rest = &self.text[self.equal.start..];
        if !rest.is_empty() {
            self.list.push(DiffSegment::Equal(rest));
        }
        self.list
    }
}

fn total_len(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.len()).sum()
}

/// The part in which two texts differ, with some context lines: the common prefix and suffix are
/// removed.
pub(super) struct DifferingPart<'t> {
    /// The number of bytes before it.
    pub(super) start: usize,
    pub(super) old: &'t str,
    pub(super) new: &'t str,
}

impl<'t> DifferingPart<'t> {
    pub(super) fn find(old: &'t str, new: &'t str) -> Self {
        let start = context_start(old, common_prefix_len(old.as_bytes(), new.as_bytes()));
        let (old, new) = (&old[start..], &new[start..]);
        let end = common_suffix_len(old.as_bytes(), new.as_bytes());
        let kept = end - context_end(&old.as_bytes()[old.len() - end..]);
        Self { start, old: &old[..old.len() - kept], new: &new[..new.len() - kept] }
    }
}

/// Returns the length of the common prefix in bytes.
fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

/// Returns the length of the common suffix in bytes.
fn common_suffix_len(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[..a.len() - same].iter().rev().zip(b[..b.len() - same].iter().rev());
    same + rest.take_while(|(a, b)| a == b).count()
}

/// Returns the start of the context lines before the line at byte `at`.
///
/// Only LF counts as a line ending here, because it is one everywhere, and never the first byte of
/// a CRLF.
pub(super) fn context_start(text: &str, at: usize) -> usize {
    let mut ends = memrchr_iter(b'\n', &text.as_bytes()[..at]);
    ends.nth(CONTEXT).map_or(0, |end| end + 1)
}

/// Returns the length of the context lines at the start of a common suffix.
fn context_end(text: &[u8]) -> usize {
    let mut ends = memchr_iter(b'\n', text);
    ends.nth(CONTEXT).map_or(text.len(), |end| end + 1)
}
