//! Finds quoted lines in a file, in passes that are increasingly tolerant.
//!
//! Each pass searches the whole rest of the file before the next one starts: an exact match below
//! wins over a loose one above.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::ops::RangeInclusive;

use unicode_normalization::UnicodeNormalization as _;

use crate::text::lines::SourceLine;
use crate::text::typography::with_ascii_punctuation;

/// A pass of the matcher. The later, the more tolerant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchPass {
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

impl MatchPass {
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
    fn comparison_key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => line.into(),
            Self::TrailingBlanks => line.trim_end().into(),
            Self::Blanks => line.trim().into(),
            Self::Punctuation => with_ascii_punctuation(line.trim()),
            Self::Canonical => {
                let plain = with_ascii_punctuation(line.trim());
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
pub(crate) struct MatchBudget(Cell<u64>);

impl MatchBudget {
    /// The budget in lines that differ at once, which takes a fraction of a second.
    const TOTAL_LINES: u64 = 100_000_000;

    /// The number of bytes that cost as much as one line.
    const BYTES_PER_LINE: usize = 16;

    pub(super) const fn with_lines(lines: u64) -> Self {
        Self(Cell::new(lines))
    }

    /// Whether the budget is used up.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.0.get() == 0
    }

    /// Whether the lines are equal. Reduces the budget.
    fn lines_match(&self, there: &[impl AsRef<str>], wanted: &[impl AsRef<str>]) -> bool {
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
            spent += 1 + (bytes / Self::BYTES_PER_LINE) as u64;
            there == wanted
        });
        self.0.set(self.0.get().saturating_sub(spent));
        same
    }
}

impl Default for MatchBudget {
    fn default() -> Self {
        Self::with_lines(Self::TOTAL_LINES)
    }
}

/// The lines of a file with their comparison keys for each pass.
pub(crate) struct LineMatcher<'t, 'e> {
    lines: &'e [SourceLine<'t>],
    // Most files need only the first pass.
    pass_keys: [OnceCell<Vec<Cow<'t, str>>>; MatchPass::ALL.len()],
    budget: &'e MatchBudget,
}

impl<'t, 'e> LineMatcher<'t, 'e> {
    pub(crate) fn new(lines: &'e [SourceLine<'t>], budget: &'e MatchBudget) -> Self {
        Self { lines, pass_keys: Default::default(), budget }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Finds the `wanted` lines at or after the line `from`; with `at_end` only at the end of the
    /// file. Returns `None` when the budget is used up.
    pub(crate) fn find_lines(
        &self,
        wanted: &[&str],
        from: usize,
        at_end: bool,
    ) -> Option<(usize, MatchPass)> {
        let last = self.len().checked_sub(wanted.len())?;
        let from = if at_end { last.max(from) } else { from };
        MatchPass::ALL.into_iter().find_map(|pass| {
            let found = match pass {
                MatchPass::Exact => self.first_match(from..=last, self.lines, wanted),
                _ => {
                    let wanted: Vec<_> =
                        wanted.iter().map(|line| pass.comparison_key(line)).collect();
                    self.first_match(from..=last, self.pass_keys(pass), &wanted)
                }
            };
            Some((found?, pass))
        })
    }

    /// Returns the first of `places` where the `wanted` lines match.
    fn first_match(
        &self,
        places: RangeInclusive<usize>,
        lines: &[impl AsRef<str>],
        wanted: &[impl AsRef<str>],
    ) -> Option<usize> {
        let mut places = places.take_while(|_| !self.budget.is_exhausted());
        let found = places.find(|&at| self.budget.lines_match(&lines[at..], wanted))?;
        Some(found).filter(|_| !self.budget.is_exhausted())
    }

    fn pass_keys(&self, pass: MatchPass) -> &[Cow<'t, str>] {
        self.pass_keys[pass as usize]
            .get_or_init(|| self.lines.iter().map(|line| pass.comparison_key(line.text)).collect())
    }
}
