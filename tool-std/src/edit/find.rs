//! Finds quoted text, exactly or in one of two ways that leave no doubt about what was meant.
//!
//! **Invariant:** a way that finds several places is not followed by a looser one.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use memchr::{memchr, memmem};

use crate::text::lines::{Line, lines};
use crate::text::typography::plain;

/// How often overlapping places are counted. Each of them is compared as a whole.
pub(super) const MAX_PLACES: usize = 1000;

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

/// Where `old` stands in `text`, in bytes; never nowhere.
///
/// With `apart`, places do not overlap. Without, they may, so that one place found is the
/// only one.
pub(super) fn find(text: &str, old: &str, apart: bool) -> Option<(Strategy, Vec<Range<usize>>)> {
    [Strategy::Exact, Strategy::Punctuation, Strategy::TrailingBlanks].into_iter().find_map(
        |strategy| {
            let places = match strategy {
                Strategy::Exact => folded(text, old, false, apart),
                Strategy::Punctuation => folded(text, old, true, apart),
                Strategy::TrailingBlanks => whole_lines(text, old, apart),
            };
            (!places.is_empty()).then_some((strategy, places))
        },
    )
}

/// The places that are the same once folded.
fn folded(text: &str, old: &str, punctuation: bool, apart: bool) -> Vec<Range<usize>> {
    let text = Folded::new(text, punctuation);
    let old = Folded::new(old, punctuation).text;
    let place = |start| text.original(start)..text.original(start + old.len());
    places(&text.text, &old, apart.then_some(old.len())).map(place).collect()
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
fn whole_lines(text: &str, old: &str, apart: bool) -> Vec<Range<usize>> {
    let key = |line: &Line<'_>| line.text.trim_end_matches([' ', '\t']).len();
    // Every line between two line ends, so that a search finds whole ones.
    let joined = |lines: &[Line<'_>]| {
        let mut joined = String::from("\n");
        lines.iter().for_each(|line| joined.extend([&line.text[..key(line)], "\n"]));
        joined
    };
    let wanted: Vec<_> = lines(old).collect();
    if wanted.iter().all(|line| key(line) == 0) {
        return Vec::new();
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
    let step = apart.then(|| wanted_joined.len() - 1);
    let takes_end = old.ends_with(['\n', '\r']);
    let place = |at| {
        let first = starts.partition_point(|(start, _)| *start < at);
        let last = first + wanted.len() - 1;
        let shown = if takes_end { there[last].whole } else { there[last].text };
        starts[first].1..starts[last].1 + shown.len()
    };
    places(&there_joined, &wanted_joined, step).map(place).collect()
}

/// Where `wanted` is in `text`, each time `step` bytes behind the last. Without a step, places
/// may overlap, and are not more than anybody counts.
fn places<'t>(
    text: &'t str,
    wanted: &'t str,
    step: Option<usize>,
) -> impl Iterator<Item = usize> + 't {
    let finder = memmem::Finder::new(wanted.as_bytes()).into_owned();
    let (step, most) = step.map_or((1, MAX_PLACES), |step| (step, usize::MAX));
    let mut from = 0;
    iter::from_fn(move || {
        let at = from + finder.find(text.as_bytes().get(from..)?)?;
        from = at + step;
        Some(at)
    })
    .take(most)
}
