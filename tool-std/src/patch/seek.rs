//! Finds lines that a model quoted, in ways that grow more tolerant.
//!
//! A way is tried over the whole rest of the file before the next one: an exact match below
//! wins over a loose one above.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::RangeInclusive;

use unicode_normalization::UnicodeNormalization as _;

use crate::text::lines::Line;
use crate::text::typography::plain_text;

/// How lines were found. The later, the more tolerant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pass {
    /// They are identical.
    #[default]
    Exact,
    /// But for blanks at the end.
    TrailingBlanks,
    /// But for blanks at both ends.
    Blanks,
    /// But for blanks, and for typographic dashes, quotes and spaces.
    Punctuation,
    /// But for these, and for how Unicode composes the same characters.
    Canonical,
}

impl Pass {
    const ALL: [Self; 5] =
        [Self::Exact, Self::TrailingBlanks, Self::Blanks, Self::Punctuation, Self::Canonical];

    /// Its name in metadata.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::TrailingBlanks => "trailing_blanks",
            Self::Blanks => "blanks",
            Self::Punctuation => "punctuation",
            Self::Canonical => "canonical",
        }
    }

    /// What of a line is compared.
    fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => line.into(),
            Self::TrailingBlanks => line.trim_end().into(),
            Self::Blanks => line.trim().into(),
            Self::Punctuation => plain_text(line.trim()),
            Self::Canonical => {
                let plain = plain_text(line.trim());
                // Compatibility forms would take `²` for `2`.
                if plain.is_ascii() { plain } else { plain.nfc().collect::<String>().into() }
            }
        }
    }
}

/// How much may still be compared for one patch, over all of its files.
///
/// Thousands of chunks that are quoted loosely need a part of it. A text that is made to
/// repeat itself needs more than anybody waits for.
pub(crate) struct Effort(Cell<u64>);

impl Effort {
    /// In lines that differ at once, of which a processor compares this many in a part of a
    /// second.
    const MOST: u64 = 100_000_000;

    /// Bytes that are compared as fast as such a line.
    const BYTES: usize = 16;

    /// The part of it that each of several threads has.
    pub(crate) fn share(threads: usize) -> Self {
        Self::of(Self::MOST / threads as u64)
    }

    pub(super) const fn of(lines: u64) -> Self {
        Self(Cell::new(lines))
    }

    /// Whether there is nothing left of it.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Whether the lines are the same.
    fn same(&self, there: &[impl AsRef<str>], wanted: &[impl AsRef<str>]) -> bool {
        // Most places are none, which their first lines tell.
        if let ([there, ..], [wanted, ..]) = (there, wanted)
            && there.as_ref().len() != wanted.as_ref().len()
        {
            self.0.set(self.0.get().saturating_sub(1));
            return false;
        }
        let mut spent = 0;
        let same = there.iter().zip(wanted).all(|(there, wanted)| {
            let (there, wanted) = (there.as_ref(), wanted.as_ref());
            let bytes = if there.len() == wanted.len() { there.len() } else { 0 };
            spent += 1 + (bytes / Self::BYTES) as u64;
            there == wanted
        });
        self.0.set(self.0.get().saturating_sub(spent));
        same
    }
}

/// The lines of a file, as each pass sees them.
pub(crate) struct Haystack<'t, 'e> {
    lines: &'e [Line<'t>],
    // Most files need the first pass only.
    keys: [OnceCell<Vec<Cow<'t, str>>>; Pass::ALL.len()],
    effort: &'e Effort,
}

impl<'t, 'e> Haystack<'t, 'e> {
    pub(crate) fn new(lines: &'e [Line<'t>], effort: &'e Effort) -> Self {
        Self { lines, keys: Default::default(), effort }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Where the `wanted` lines stand, not before the line `from`; at the end of the file
    /// only, when `at_end` says so. Nowhere, when the effort is spent.
    pub(crate) fn find(&self, wanted: &[&str], from: usize, at_end: bool) -> Option<(usize, Pass)> {
        let last = self.len().checked_sub(wanted.len())?;
        let from = if at_end { last.max(from) } else { from };
        Pass::ALL.into_iter().find_map(|pass| {
            let found = match pass {
                Pass::Exact => self.first(from..=last, self.lines, wanted),
                _ => {
                    let wanted: Vec<_> = wanted.iter().map(|line| pass.key(line)).collect();
                    self.first(from..=last, self.keys(pass), &wanted)
                }
            };
            Some((found?, pass))
        })
    }

    /// The first of `places` where the `wanted` lines stand.
    fn first(
        &self,
        places: RangeInclusive<usize>,
        lines: &[impl AsRef<str>],
        wanted: &[impl AsRef<str>],
    ) -> Option<usize> {
        let mut places = places.take_while(|_| !self.effort.is_spent());
        let found = places.find(|&at| self.effort.same(&lines[at..], wanted))?;
        Some(found).filter(|_| !self.effort.is_spent())
    }

    fn keys(&self, pass: Pass) -> &[Cow<'t, str>] {
        self.keys[pass as usize]
            .get_or_init(|| self.lines.iter().map(|line| pass.key(line.text)).collect())
    }
}
