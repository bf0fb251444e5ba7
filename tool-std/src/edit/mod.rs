//! The search-and-replace engine of `edit_file`.
//!
//! The quoted text must be in the file, and only once unless all matches are replaced. It may
//! differ in line endings, in typographic characters, or in blanks at the ends of whole lines;
//! similar text is never replaced. When the quote is not found, the error shows the most similar
//! lines.
//!
//! **Invariant:** nothing outside of the matches changes, and nothing here reads a file.

mod find;
mod nearest;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

pub(crate) use self::find::Strategy;
use self::find::{Found, find};
pub(crate) use self::nearest::{Nearest, nearest};
use crate::text::lines::{
    are_too_many, line_end, new_line_end, split_bom, with_ends, with_ends_of,
};

/// The maximum number of bytes that all edits of a call may copy or compare, which takes a few
/// seconds.
const MOST: usize = 1 << 30;

/// The cost of one replacement, in bytes.
const PLACE: usize = 16;

/// The maximum size of the new text in bytes; a longer one could not be edited again.
const MAX_TEXT: usize = 64 * 1024 * 1024;

/// The maximum number of line numbers in an error.
const NAMED: usize = 10;

/// One replacement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'e> {
    /// The text to replace.
    pub(crate) old: &'e str,
    /// The new text.
    pub(crate) new: &'e str,
    /// Whether to replace all matches.
    pub(crate) replace_all: bool,
}

/// A text after its edits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    /// The new text.
    pub(crate) text: String,
    /// The number of replaced matches.
    pub(crate) replaced: usize,
    /// The loosest strategy that was needed.
    pub(crate) strategy: Strategy,
}

/// The error of a failed edit; nothing was changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EditError {
    /// The number of the edit, counting from 1.
    pub(crate) edit: usize,
    /// The number of edits.
    pub(crate) edits: usize,
    /// The reason.
    pub(crate) fault: Fault,
}

/// The reason why an edit failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call was cancelled or timed out.
    Stopped,
    /// This edit and those before it exceed the work budget.
    Costly,
    /// The new text is too long.
    TooLong,
    /// The quoted text is empty.
    Empty,
    /// The new text equals the quoted text.
    Identical,
    /// The quoted text is not in the file; has the most similar lines, if there are any.
    NotFound(Option<Nearest>),
    /// The quoted text is in the file several times.
    Ambiguous {
        /// The number of matches that do not overlap.
        count: usize,
        /// The line numbers of the first matches.
        lines: Vec<usize>,
    },
    /// The quoted text has two overlapping matches; the line numbers of both.
    Overlapping(Vec<usize>),
}

/// Applies all `edits`, each to the result of the one before it. Fails with the first error, and
/// then without any edit. Checks `stopped` between edits.
pub(crate) fn replace(
    text: &str,
    edits: &[Edit<'_>],
    stopped: &dyn Fn() -> bool,
) -> Result<Edited, EditError> {
    replace_within(MOST, text, edits, stopped)
}

/// Like [`replace_quoted`], with a budget in bytes.
fn replace_within(
    mut left: usize,
    text: &str,
    edits: &[Edit<'_>],
    stopped: &dyn Fn() -> bool,
) -> Result<Edited, EditError> {
    let (bom, body) = split_bom(text);
    let mut so_far = Cow::Borrowed(body);
    let (mut replaced, mut strategy) = (0, Strategy::default());
    let refused = |index, fault| EditError { edit: index + 1, edits: edits.len(), fault };
    // Errors that do not depend on the text come first, so that they reveal nothing about it.
    for (index, edit) in edits.iter().enumerate() {
        edit.check().map_err(|fault| refused(index, fault))?;
    }
    for (index, edit) in edits.iter().enumerate() {
        let refused = |fault| refused(index, fault);
        if stopped() {
            return Err(refused(Fault::Stopped));
        }
        let done = replace_one(&so_far, edit).map_err(refused)?;
        // A looser strategy runs after all stricter ones.
        let ways = 1 + done.strategy as usize;
        let cost = so_far.len().saturating_mul(ways);
        let cost = cost.saturating_add(done.replaced.saturating_mul(PLACE));
        left = left.checked_sub(cost).ok_or_else(|| refused(Fault::Costly))?;
        so_far = Cow::Owned(done.text);
        replaced += done.replaced;
        strategy = strategy.max(done.strategy);
    }
    let mut text = so_far.into_owned();
    if !bom.is_empty() {
        text.insert_str(0, bom);
    }
    Ok(Edited { text, replaced, strategy })
}

impl<'e> Edit<'e> {
    /// Returns the quoted and the new text without byte order marks.
    fn texts(&self) -> (&'e str, &'e str) {
        (split_bom(self.old).1, split_bom(self.new).1)
    }

    /// Rejects an edit that changes nothing in any text.
    fn check(&self) -> Result<(), Fault> {
        let (old, new) = self.texts();
        if old.is_empty() {
            return Err(Fault::Empty);
        }
        if with_ends(old, "\n") == with_ends(new, "\n") {
            return Err(Fault::Identical);
        }
        Ok(())
    }
}

fn replace_one(text: &str, edit: &Edit<'_>) -> Result<Edited, Fault> {
    let (old, new) = edit.texts();
    let most = if edit.replace_all { usize::MAX } else { NAMED };
    let Found { strategy, places, count, overlaps } =
        find(text, old, most).ok_or_else(|| Fault::NotFound(nearest(text, old)))?;
    if (count > 1 || overlaps) && !edit.replace_all {
        let lines = places.iter().map(|place| line_at(text, place.start)).collect();
        return Err(if overlaps {
            Fault::Overlapping(lines)
        } else {
            Fault::Ambiguous { count, lines }
        });
    }
    let mut out = String::with_capacity(text.len() + new.len());
    let (mut next, usual) = (0, new_line_end(text));
    for place in &places {
        out.push_str(&text[next..place.start]);
        // With mixed line endings, new lines get the line ending of the replaced ones.
        let there = &text[place.clone()];
        out.push_str(&with_ends_of(new, there, line_end(there).unwrap_or(usual)));
        next = place.end;
        // Many matches can grow the text beyond the memory of the machine.
        if out.len() + text.len() - next > MAX_TEXT {
            return Err(Fault::TooLong);
        }
    }
    out.push_str(&text[next..]);
    let ends = |text: &str| memchr::memchr2_iter(b'\n', b'\r', text.as_bytes()).count();
    if ends(new) > ends(old) && are_too_many(out.as_bytes()) {
        return Err(Fault::TooLong);
    }
    Ok(Edited { text: out, replaced: places.len(), strategy })
}

/// Returns the line number of a byte, counting from 1.
fn line_at(text: &str, byte: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..byte]).count()
}

impl Edited {
    /// Describes how the match differed from the quote, for the model.
    pub(crate) fn note(&self) -> Option<String> {
        let but = match self.strategy {
            Strategy::Exact => return None,
            Strategy::Punctuation => "typographic quotes, dashes or spaces",
            Strategy::TrailingBlanks => "blanks at the ends of lines",
        };
        Some(format!("the quoted text differed from the file in {but}; verify the result"))
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.edits > 1 {
            write!(f, "edit {} of {}: ", self.edit, self.edits)?;
        }
        self.fault.fmt(f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Stopped => f.write_str("the call was cancelled or timed out"),
            Fault::Costly => f.write_str(
                "so many edits of so large a file take too long; make them in several calls, or \
                 write the whole file with the tool for that",
            ),
            Fault::TooLong => f.write_str(
                "with all places replaced, the file would have more than 64 MiB or two million \
                 lines; use a command",
            ),
            Fault::Empty => f.write_str(
                "the text to replace is empty; quote the text to change, or write the whole \
                 file with the tool for that",
            ),
            Fault::Identical => {
                f.write_str("the new text is identical to the text to replace; nothing to change")
            }
            Fault::NotFound(near) => {
                f.write_str(
                    "the text to replace is not in the file; it must match exactly, including \
                     blanks and indentation",
                )?;
                near.as_ref().map_or(Ok(()), |near| write!(f, "\n{near}"))
            }
            Fault::Ambiguous { count, lines } => {
                let more = if *count > lines.len() { ", …" } else { "" };
                write!(
                    f,
                    "the text to replace is there {count} times, from lines {}{more}; quote more \
                     of the text around the one that is meant, or replace all",
                    listed(lines)
                )
            }
            Fault::Overlapping(lines) => write!(
                f,
                "the text to replace is there in places that overlap, from lines {}; quote more \
                 of the text around the one that is meant",
                listed(lines)
            ),
        }
    }
}

fn listed(lines: &[usize]) -> String {
    lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

impl std::error::Error for EditError {}
