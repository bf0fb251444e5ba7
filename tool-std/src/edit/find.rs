//! Finds quoted text: exactly, then ignoring typographic punctuation, then ignoring trailing
//! blanks.
//!
//! **Invariant:** a strategy that finds several matches is not followed by a looser one.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memmem};

use crate::text::lines::{Line, lines};
use crate::text::typography::plain;

/// How quoted text was found. The later, the more tolerant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strategy {
    /// Identical, except for line endings.
    #[default]
    Exact,
    /// Ignoring typographic dashes, quotes and spaces.
    Punctuation,
    /// Whole lines, ignoring blanks at their ends.
    TrailingBlanks,
}

impl Strategy {
    /// Returns the name for metadata.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Punctuation => "punctuation",
            Self::TrailingBlanks => "trailing_blanks",
        }
    }
}

/// The matches of quoted text; at least one.
pub(super) struct Found {
    pub(super) strategy: Strategy,
    /// The byte ranges, up to the requested number.
    pub(super) places: Vec<Range<usize>>,
    /// The number of matches that do not overlap.
    pub(super) count: usize,
    /// Whether the only match overlaps another one, so that the quote is ambiguous. The other one
    /// is the second range then.
    pub(super) overlaps: bool,
}

/// Finds `old` in `text`, with at most `most` ranges.
pub(super) fn find(text: &str, old: &str, most: usize) -> Option<Found> {
    [Strategy::Exact, Strategy::Punctuation, Strategy::TrailingBlanks].into_iter().find_map(
        |strategy| {
            let (spots, places) = match strategy {
                Strategy::Exact => folded(text, old, false, most),
                Strategy::Punctuation => folded(text, old, true, most),
                Strategy::TrailingBlanks => whole_lines(text, old, most)?,
            };
            let Spots { count, overlaps, .. } = spots;
            (count > 0).then_some(Found { strategy, places, count, overlaps })
        },
    )
}

/// Finds matches after normalizing both texts.
fn folded(text: &str, old: &str, punctuation: bool, most: usize) -> (Spots, Vec<Range<usize>>) {
    let text = Folded::new(text, punctuation);
    let old = Folded::new(old, punctuation).text;
    let place = |&start: &usize| text.original(start)..text.original(start + old.len());
    let spots = Spots::of(&old, &text.text, old.len(), most);
    let places = spots.starts.iter().map(place).collect();
    (spots, places)
}

/// A text with LF line endings, optionally with ASCII punctuation, that maps positions back to the
/// original.
pub(super) struct Folded<'t> {
    pub(super) text: Cow<'t, str>,
    /// Positions in `text`, with the original position from there on.
    shifts: Vec<(usize, usize)>,
}

impl<'t> Folded<'t> {
    pub(super) fn new(text: &'t str, punctuation: bool) -> Self {
        let first = match punctuation {
            true => text.find(|c| c == '\r' || plain(c) != c),
            false => memchr(b'\r', text.as_bytes()),
        };
        let Some(first) = first else {
            return Self { text: text.into(), shifts: Vec::new() };
        };
        let mut out = String::with_capacity(text.len());
        out.push_str(&text[..first]);
        let mut shifts = Vec::new();
        let mut rest = text[first..].chars();
        while let Some(c) = rest.next() {
            let before = text.len() - rest.as_str().len() - c.len_utf8();
            if before - out.len() != shifts.last().map_or(0, |(at, was)| was - at) {
                shifts.push((out.len(), before));
            }
            match c {
                '\r' => {
                    rest = rest.as_str().strip_prefix('\n').unwrap_or(rest.as_str()).chars();
                    out.push('\n');
                }
                c if punctuation => out.push(plain(c)),
                c => out.push(c),
            }
        }
        if out.len() != text.len() {
            shifts.push((out.len(), text.len()));
        }
        Self { text: out.into(), shifts }
    }

    /// Maps a byte position to the original text.
    fn original(&self, at: usize) -> usize {
        let before = self.shifts.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).map_or(at, |index| {
            let (from, was) = self.shifts[index];
            was + (at - from)
        })
    }
}

/// Finds whole lines, ignoring blanks at their ends.
fn whole_lines(text: &str, old: &str, most: usize) -> Option<(Spots, Vec<Range<usize>>)> {
    let key = |line: &Line<'_>| line.text.trim_end_matches([' ', '\t']).len();
    // Each line is enclosed in line endings, so that a search finds whole lines only.
    let joined = |lines: &[Line<'_>]| {
        let mut joined = String::from("\n");
        lines.iter().for_each(|line| joined.extend([&line.text[..key(line)], "\n"]));
        joined
    };
    let wanted: Vec<_> = lines(old).collect();
    if wanted.iter().all(|line| key(line) == 0) {
        return None;
    }
    let there: Vec<_> = lines(text).collect();
    // The start of each line, in the joined text and in the original.
    let mut starts = Vec::with_capacity(there.len() + 1);
    let (mut at, mut was) = (0, 0);
    for line in &there {
        starts.push((at, was));
        (at, was) = (at + key(line) + 1, was + line.whole.len());
    }
    let (there_joined, wanted_joined) = (joined(&there), joined(&wanted));
    // The line ending after a match is also the one before the next match.
    let spots = Spots::of(&wanted_joined, &there_joined, wanted_joined.len() - 1, most);
    let takes_end = old.ends_with(['\n', '\r']);
    let place = |at: &usize| {
        let first = starts.partition_point(|(start, _)| start < at);
        let last = first + wanted.len() - 1;
        let shown = if takes_end { there[last].whole } else { there[last].text };
        starts[first].1..starts[last].1 + shown.len()
    };
    let places = spots.starts.iter().map(place).collect();
    Some((spots, places))
}

/// The positions of a text, in bytes.
struct Spots {
    /// Up to the requested number.
    starts: Vec<usize>,
    count: usize,
    overlaps: bool,
}

impl Spots {
    /// Finds `wanted` in `text`; matches are at least `step` bytes apart.
    fn of(wanted: &str, text: &str, step: usize, most: usize) -> Self {
        let finder = memmem::Finder::new(wanted.as_bytes());
        let find = |from: usize| Some(from + finder.find(text.as_bytes().get(from..)?)?);
        let mut next = find(0);
        let mut spots = Self { starts: Vec::new(), count: 0, overlaps: false };
        while let Some(at) = next {
            if spots.count < most {
                spots.starts.push(at);
            }
            spots.count += 1;
            next = find(at + step);
        }
        // When all matches are replaced, the first of two overlapping ones is taken.
        if let (true, &[only]) = (most < usize::MAX, &spots.starts[..])
            && let Some(other) = find(only + 1)
        {
            spots.overlaps = true;
            spots.starts.push(other);
        }
        spots
    }
}
