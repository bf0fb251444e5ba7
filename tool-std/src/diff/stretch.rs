//! Where two texts differ, in whole lines.
//!
//! **Invariant:** put together again, the stretches are both texts.

use std::ops::Range;

use memchr::{memchr_iter, memrchr_iter};
use similar::{DiffTag, TextDiff};

use super::CONTEXT;
use crate::text::lines::{count, is_one, lines};

/// How many bytes are compared at once.
const BLOCK: usize = 4096;

/// Whole lines of a new text that stand in the place of whole lines of an old one, in bytes
/// of both; byte order marks are not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
    /// How many lines that is in both.
    pub(crate) lines: [usize; 2],
}

impl Change {
    /// Whether all of its lines are different, which are these.
    fn is_whole(&self, gone: &str, come: &str) -> bool {
        matches!(self.lines, [0, _] | [_, 0] | [1, 1]) && gone != come
    }
}

/// How many lines go and come; nothing where the changes are not all, or where some of their
/// lines may be the same.
pub(super) fn counts_along(
    [mut old, mut new]: [&str; 2],
    changes: &[Change],
) -> Option<[usize; 2]> {
    let (mut old_at, mut new_at) = (0, 0);
    let mut counts = [0, 0];
    for change in changes {
        let (same, gone, old_rest) = apart(old, old_at, &change.old)?;
        let (same_in_new, come, new_rest) = apart(new, new_at, &change.new)?;
        if same != same_in_new || !change.is_whole(gone, come) {
            return None;
        }
        counts = [counts[0] + change.lines[0], counts[1] + change.lines[1]];
        (old, new, old_at, new_at) = (old_rest, new_rest, change.old.end, change.new.end);
    }
    (old == new).then_some(counts)
}

/// The rest of a text from byte `at` on as what stands before a range, in it and behind it.
fn apart<'t>(
    rest: &'t str,
    at: usize,
    range: &Range<usize>,
) -> Option<(&'t str, &'t str, &'t str)> {
    let (before, rest) = rest.split_at_checked(range.start.checked_sub(at)?)?;
    let (within, rest) = rest.split_at_checked(range.end.checked_sub(range.start)?)?;
    Some((before, within, rest))
}

/// A part of two texts, in whole lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stretch<'t> {
    /// Both have it.
    Same(&'t str),
    /// Lines that go, and lines that come; how many of each.
    Changed { old: &'t str, new: &'t str, lines: [usize; 2] },
}

impl<'t> Stretch<'t> {
    /// Two texts of which nothing is known.
    pub(super) fn between(old: &'t str, new: &'t str) -> Vec<Self> {
        let mut stretches = Stretches { text: old, list: Vec::new(), same: 0..0 };
        let part = Part::that_differs(old, new);
        stretches.same(part.start);
        stretches.compare(part.old, part.new);
        stretches.finish()
    }

    /// Two texts of which the changes are known; `None` when these are not all.
    pub(super) fn along(old: &'t str, new: &'t str, changes: &[Change]) -> Option<Vec<Self>> {
        let list = Vec::with_capacity(2 * changes.len() + 1);
        let mut stretches = Stretches { text: old, list, same: 0..0 };
        let (mut old_at, mut new_at) = (0, 0);
        let (old_end, new_end) = (old.len()..old.len(), new.len()..new.len());
        let end = Change { old: old_end, new: new_end, lines: [0, 0] };
        for change in changes.iter().chain([&end]) {
            let same = old.get(old_at..change.old.start)?;
            if same != new.get(new_at..change.new.start)? {
                return None;
            }
            stretches.same(same.len());
            let (gone, come) = (old.get(change.old.clone())?, new.get(change.new.clone())?);
            match change.is_whole(gone, come) {
                true => stretches.changed(gone, come, change.lines),
                false => stretches.compare(gone, come),
            }
            (old_at, new_at) = (change.old.end, change.new.end);
        }
        Some(stretches.finish())
    }

    /// How many bytes of both texts it is.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Same(same) => same.len(),
            Self::Changed { old, new, .. } => old.len() + new.len(),
        }
    }
}

/// Stretches of two texts, from their starts on.
struct Stretches<'t> {
    /// The old text.
    text: &'t str,
    list: Vec<Stretch<'t>>,
    /// What both have behind the last of the list.
    same: Range<usize>,
}

impl<'t> Stretches<'t> {
    fn same(&mut self, len: usize) {
        self.same.end += len;
    }

    fn changed(&mut self, old: &'t str, new: &'t str, lines: [usize; 2]) {
        if !self.same.is_empty() {
            self.list.push(Stretch::Same(&self.text[self.same.clone()]));
        }
        let next = self.same.end + old.len();
        self.same = next..next;
        self.list.push(Stretch::Changed { old, new, lines });
    }

    /// Lines that are perhaps not all different.
    fn compare(&mut self, old: &'t str, new: &'t str) {
        match (old, new) {
            ("", "") => {}
            ("", _) | (_, "") => self.changed(old, new, [count(old), count(new)]),
            _ if old != new && is_one(old) && is_one(new) => self.changed(old, new, [1, 1]),
            _ => self.compare_lines(old, new),
        }
    }

    fn compare_lines(&mut self, mut old: &'t str, mut new: &'t str) {
        let whole = |text| lines(text).map(|line| line.whole).collect::<Vec<_>>();
        let (old_lines, new_lines) = (whole(old), whole(new));
        for op in TextDiff::configure().diff_slices(&old_lines, &new_lines).ops() {
            let (gone, come);
            (gone, old) = old.split_at(len(&old_lines[op.old_range()]));
            (come, new) = new.split_at(len(&new_lines[op.new_range()]));
            match op.tag() {
                DiffTag::Equal => self.same(gone.len()),
                _ => self.changed(gone, come, [op.old_range().len(), op.new_range().len()]),
            }
        }
    }

    fn finish(mut self) -> Vec<Stretch<'t>> {
        let rest = &self.text[self.same.start..];
        if !rest.is_empty() {
            self.list.push(Stretch::Same(rest));
        }
        self.list
    }
}

fn len(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.len()).sum()
}

/// Where two texts differ: lines that are the same at their starts and ends are left out, but
/// for some that tell where a change begins.
pub(super) struct Part<'t> {
    /// Bytes before it.
    pub(super) start: usize,
    pub(super) old: &'t str,
    pub(super) new: &'t str,
}

impl<'t> Part<'t> {
    pub(super) fn that_differs(old: &'t str, new: &'t str) -> Self {
        let start = before_lines(old, common_start(old.as_bytes(), new.as_bytes()));
        let (old, new) = (&old[start..], &new[start..]);
        let end = common_end(old.as_bytes(), new.as_bytes());
        let kept = end - behind_lines(&old.as_bytes()[old.len() - end..]);
        Self { start, old: &old[..old.len() - kept], new: &new[..new.len() - kept] }
    }
}

/// How many bytes are the same at the starts.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

/// How many bytes are the same at the ends.
fn common_end(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[..a.len() - same].iter().rev().zip(b[..b.len() - same].iter().rev());
    same + rest.take_while(|(a, b)| a == b).count()
}

/// The start of the lines that are shown before the one at byte `at`.
///
/// Only LF counts as the end of a line here: it is one for everybody, and never the first of
/// two bytes that end a line together.
pub(super) fn before_lines(text: &str, at: usize) -> usize {
    let mut ends = memrchr_iter(b'\n', &text.as_bytes()[..at]);
    ends.nth(CONTEXT).map_or(0, |end| end + 1)
}

/// How much of a common end is shown behind the line that it begins in.
fn behind_lines(text: &[u8]) -> usize {
    let mut ends = memchr_iter(b'\n', text);
    ends.nth(CONTEXT).map_or(text.len(), |end| end + 1)
}
