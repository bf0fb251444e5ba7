//! Finds quoted lines in a file, in passes that are increasingly tolerant.
//!
//! Each pass searches the whole rest of the file before the next one starts: an exact match below
//! wins over a loose one above.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::RangeInclusive;

use unicode_normalization::UnicodeNormalization as _;

use crate::text::lines::Line;
use crate::text::typography::plain_text;

/// A pass of the matcher. The later, the more tolerant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pass {
    /// Identical lines.
    #[default]
    Exact,
    /// Ignoring trailing blanks.
    TrailingBlanks,
    /// Ignoring leading and trailing blanks.
    Blanks,
    /// Also ignoring typographic dashes, quotes and spaces.
    Punctuation,
    /// Also ignoring Unicode normalization.
    Canonical,
}

impl Pass {
    const ALL: [Self; 5] =
        [Self::Exact, Self::TrailingBlanks, Self::Blanks, Self::Punctuation, Self::Canonical];

    /// Returns the name for metadata.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::TrailingBlanks => "trailing_blanks",
            Self::Blanks => "blanks",
            Self::Punctuation => "punctuation",
            Self::Canonical => "canonical",
        }
    }

    /// Returns the part of a line that is compared.
    fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => line.into(),
            Self::TrailingBlanks => line.trim_end().into(),
            Self::Blanks => line.trim().into(),
            Self::Punctuation => plain_text(line.trim()),
            Self::Canonical => {
                let plain = plain_text(line.trim());
                // NFKC would match `²` with `2`.
                if plain.is_ascii() { plain } else { plain.nfc().collect::<String>().into() }
            }
        }
    }
}

/// The comparison budget of one patch, over all of its files.
///
/// Thousands of loosely quoted chunks need a part of it. A text that is built to repeat itself
/// would take too long without it.
pub(crate) struct Effort(Cell<u64>);

impl Effort {
    /// The budget in lines that differ at once, which takes a fraction of a second.
    const MOST: u64 = 100_000_000;

    /// The number of bytes that cost as much as one line.
    const BYTES: usize = 16;

    /// Returns the part of the budget for each of several threads.
    pub(crate) fn share(threads: usize) -> Self {
        Self::of(Self::MOST / threads as u64)
    }

    pub(super) const fn of(lines: u64) -> Self {
        Self(Cell::new(lines))
    }

    /// Whether the budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Whether the lines are equal. Reduces the budget.
    fn same(&self, there: &[impl AsRef<str>], wanted: &[impl AsRef<str>]) -> bool {
        // Most positions differ in the length of the first line.
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

/// The lines of a file with their comparison keys for each pass.
pub(crate) struct Haystack<'t, 'e> {
    lines: &'e [Line<'t>],
    // Most files need only the first pass.
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

    /// Finds the `wanted` lines at or after the line `from`; with `at_end` only at the end of the
    /// file. Returns `None` when the budget is used up.
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

    /// Returns the first of `places` where the `wanted` lines match.
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
