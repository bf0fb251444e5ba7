//! Finds lines that a model quoted, in ways that grow more tolerant.
//!
//! A way is tried over the whole rest of the file before the next one: an exact match below
//! wins over a loose one above.

use std::borrow::Cow;
use std::cell::OnceCell;

use unicode_normalization::UnicodeNormalization as _;

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

/// The lines of a file, as each pass sees them.
pub(crate) struct Haystack<'t> {
    lines: Vec<&'t str>,
    // Most files need the first pass only.
    keys: [OnceCell<Vec<Cow<'t, str>>>; Pass::ALL.len()],
}

impl<'t> Haystack<'t> {
    pub(crate) fn new(lines: Vec<&'t str>) -> Self {
        Self { lines, keys: Default::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Where the `wanted` lines stand, not before the line `from`; at the end of the file
    /// only, when `at_end` says so.
    pub(crate) fn find(&self, wanted: &[&str], from: usize, at_end: bool) -> Option<(usize, Pass)> {
        let last = self.len().checked_sub(wanted.len())?;
        let from = if at_end { last.max(from) } else { from };
        Pass::ALL.into_iter().find_map(|pass| {
            let wanted: Vec<_> = wanted.iter().map(|line| pass.key(line)).collect();
            let lines = self.keys(pass);
            let mut places = from..=last;
            places.find(|&at| lines[at..at + wanted.len()] == wanted).map(|at| (at, pass))
        })
    }

    fn keys(&self, pass: Pass) -> &[Cow<'t, str>] {
        self.keys[pass as usize]
            .get_or_init(|| self.lines.iter().map(|line| pass.key(line)).collect())
    }
}
