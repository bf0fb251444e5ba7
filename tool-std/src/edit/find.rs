//! Finds quoted text: exactly, then ignoring typographic punctuation, then ignoring trailing
//! blanks.
//!
//! **Invariant:** a strategy that finds several matches is not followed by a looser one.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memmem};

use crate::text::lines::{SourceLine, split_lines};
use crate::text::typography::ascii_equivalent;

/// How quoted text was found. The later, the more tolerant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchStrategy {
    /// Identical, except for line endings.
    #[default]
    Exact,
    /// Ignoring typographic dashes, quotes and spaces.
    Punctuation,
    /// Whole lines, ignoring blanks at their ends.
    TrailingBlanks,
}

impl MatchStrategy {
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
pub(super) struct QuoteMatches {
    pub(super) strategy: MatchStrategy,
    /// The byte ranges, up to the requested number.
    pub(super) ranges: Vec<Range<usize>>,
    /// The number of matches that do not overlap.
    pub(super) count: usize,
    /// Whether the only match overlaps another one, so that the quote is ambiguous. The other one
    /// is the second range then.
    pub(super) has_overlap: bool,
}

/// Finds `old` in `text`, with at most `most` ranges.
pub(super) fn find_quoted(text: &str, old: &str, most: usize) -> Option<QuoteMatches> {
    [MatchStrategy::Exact, MatchStrategy::Punctuation, MatchStrategy::TrailingBlanks]
        .into_iter()
        .find_map(|strategy| {
            let (spots, places) = match strategy {
                MatchStrategy::Exact => find_normalized(text, old, false, most),
                MatchStrategy::Punctuation => find_normalized(text, old, true, most),
                MatchStrategy::TrailingBlanks => find_whole_lines(text, old, most)?,
            };
            let Occurrences { count, has_overlap: overlaps, .. } = spots;
            (count > 0).then_some(QuoteMatches {
                strategy,
                ranges: places,
                count,
                has_overlap: overlaps,
            })
        })
}

/// Finds matches after normalizing both texts.
fn find_normalized(
    text: &str,
    old: &str,
    punctuation: bool,
    most: usize,
) -> (Occurrences, Vec<Range<usize>>) {
    let text = NormalizedText::new(text, punctuation);
    let old = NormalizedText::new(old, punctuation).text;
    let place =
        |&start: &usize| text.original_offset(start)..text.original_offset(start + old.len());
    let spots = Occurrences::find(&old, &text.text, old.len(), most);
    let places = spots.starts.iter().map(place).collect();
    (spots, places)
}

/// A text with LF line endings, optionally with ASCII punctuation, that maps positions back to the
/// original.
pub(super) struct NormalizedText<'t> {
    pub(super) text: Cow<'t, str>,
    /// Positions in `text`, with the original position from there on.
    offsets: Vec<(usize, usize)>,
}

impl<'t> NormalizedText<'t> {
    pub(super) fn new(text: &'t str, punctuation: bool) -> Self {
        let first = match punctuation {
            true => text.find(|c| c == '\r' || ascii_equivalent(c) != c),
            false => memchr(b'\r', text.as_bytes()),
        };
        let Some(first) = first else {
            return Self { text: text.into(), offsets: Vec::new() };
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
                c if punctuation => out.push(ascii_equivalent(c)),
                c => out.push(c),
            }
        }
        if out.len() != text.len() {
            shifts.push((out.len(), text.len()));
        }
        Self { text: out.into(), offsets: shifts }
    }

    /// Maps a byte position to the original text.
    fn original_offset(&self, at: usize) -> usize {
        let before = self.offsets.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).map_or(at, |index| {
            let (from, was) = self.offsets[index];
            was + (at - from)
        })
    }
}

/// Finds whole lines, ignoring blanks at their ends.
fn find_whole_lines(
    text: &str,
    old: &str,
    most: usize,
) -> Option<(Occurrences, Vec<Range<usize>>)> {
    let key = |line: &SourceLine<'_>| line.text.trim_end_matches([' ', '\t']).len();
    // Each line is enclosed in line endings, so that a search finds whole lines only.
    let joined = |lines: &[SourceLine<'_>]| {
        let mut joined = String::from("\n");
        lines.iter().for_each(|line| joined.extend([&line.text[..key(line)], "\n"]));
        joined
    };
    let wanted: Vec<_> = split_lines(old).collect();
    if wanted.iter().all(|line| key(line) == 0) {
        return None;
    }
    let there: Vec<_> = split_lines(text).collect();
    // The start of each line, in the joined text and in the original.
    let mut starts = Vec::with_capacity(there.len() + 1);
    let (mut at, mut was) = (0, 0);
    for line in &there {
        starts.push((at, was));
        (at, was) = (at + key(line) + 1, was + line.whole.len());
    }
    let (there_joined, wanted_joined) = (joined(&there), joined(&wanted));
    // The line ending after a match is also the one before the next match.
    let spots = Occurrences::find(&wanted_joined, &there_joined, wanted_joined.len() - 1, most);
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
struct Occurrences {
    /// Up to the requested number.
    starts: Vec<usize>,
    count: usize,
    has_overlap: bool,
}

impl Occurrences {
    /// Finds `wanted` in `text`; matches are at least `step` bytes apart.
    fn find(wanted: &str, text: &str, step: usize, most: usize) -> Self {
        let finder = memmem::Finder::new(wanted.as_bytes());
        let find = |from: usize| Some(from + finder.find(text.as_bytes().get(from..)?)?);
        let mut next = find(0);
        let mut spots = Self { starts: Vec::new(), count: 0, has_overlap: false };
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
            spots.has_overlap = true;
            spots.starts.push(other);
        }
        spots
    }
}
