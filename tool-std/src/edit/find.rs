//! Finds quoted text, exactly or in one of two ways that leave no doubt about what was meant.
//!
//! **Invariant:** a way that finds several places is not followed by a looser one.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memmem};

use crate::text::lines::{Line, lines};
use crate::text::typography::plain;

/// How quoted text was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strategy {
    /// It is there, but perhaps for line ends.
    #[default]
    Exact,
    /// But for typographic dashes, quotes and spaces.
    Punctuation,
    /// Whole lines, but for blanks at their ends.
    TrailingBlanks,
}

impl Strategy {
    /// Its name in metadata.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Punctuation => "punctuation",
            Self::TrailingBlanks => "trailing_blanks",
        }
    }
}

/// Where quoted text is; never nowhere.
pub(super) struct Found {
    pub(super) strategy: Strategy,
    /// The places, in bytes: as many of them as were wanted.
    pub(super) places: Vec<Range<usize>>,
    /// How many there are that do not overlap.
    pub(super) count: usize,
    /// Whether there is one place and another that overlaps it, so that it is not known which is
    /// meant. It is the second of `places` then.
    pub(super) overlaps: bool,
}

/// Where `old` stands in `text`, with so many of the places at most.
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

/// The places that are the same once folded.
fn folded(text: &str, old: &str, punctuation: bool, most: usize) -> (Spots, Vec<Range<usize>>) {
    let text = Folded::new(text, punctuation);
    let old = Folded::new(old, punctuation).text;
    let place = |&start: &usize| text.original(start)..text.original(start + old.len());
    let spots = Spots::of(&old, &text.text, old.len(), most);
    let places = spots.starts.iter().map(place).collect();
    (spots, places)
}

/// A text with all lines ended by LF, and perhaps plain punctuation, that knows where
/// everything was.
pub(super) struct Folded<'t> {
    pub(super) text: Cow<'t, str>,
    /// From a byte of `text` on, the byte where it was.
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

    /// Where the byte `at` of the folded text was.
    fn original(&self, at: usize) -> usize {
        let before = self.shifts.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).map_or(at, |index| {
            let (from, was) = self.shifts[index];
            was + (at - from)
        })
    }
}

/// The whole lines that are the same but for blanks at their ends.
fn whole_lines(text: &str, old: &str, most: usize) -> Option<(Spots, Vec<Range<usize>>)> {
    let key = |line: &Line<'_>| line.text.trim_end_matches([' ', '\t']).len();
    // Every line between two line ends, so that a search finds whole ones.
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
    // Where the lines start, joined and in the text.
    let mut starts = Vec::with_capacity(there.len() + 1);
    let (mut at, mut was) = (0, 0);
    for line in &there {
        starts.push((at, was));
        (at, was) = (at + key(line) + 1, was + line.whole.len());
    }
    let (there_joined, wanted_joined) = (joined(&there), joined(&wanted));
    // The line end after a place is the one before the next.
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

/// Where something is in a text, in bytes.
struct Spots {
    /// As many as were wanted.
    starts: Vec<usize>,
    count: usize,
    overlaps: bool,
}

impl Spots {
    /// Where `wanted` is in `text`, each time `step` bytes behind the last at least.
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
        // Whoever wants all of them takes the first of those that overlap.
        if let (true, &[only]) = (most < usize::MAX, &spots.starts[..])
            && let Some(other) = find(only + 1)
        {
            spots.overlaps = true;
            spots.starts.push(other);
        }
        spots
    }
}
