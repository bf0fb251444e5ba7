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

pub(crate) use self::find::MatchStrategy;
use self::find::{QuoteMatches, find_quoted};
pub(crate) use self::nearest::{NearestMatch, find_nearest};
use crate::text::lines::{
    default_line_ending, detect_line_ending, has_too_many_lines, split_bom, with_line_endings,
    with_line_endings_of,
};

/// The maximum number of bytes that all edits of a call may copy or compare, which takes a few
/// seconds.
const WORK_BUDGET: usize = 1 << 30;

/// The cost of one replacement, in bytes.
const COST_PER_MATCH: usize = 16;

/// The maximum size of the new text in bytes; a longer one could not be edited again.
const MAX_TEXT: usize = 64 * 1024 * 1024;

/// The maximum number of line numbers in an error.
const MAX_LINES_NAMED: usize = 10;

/// One replacement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotedEdit<'e> {
    /// The text to replace.
    pub(crate) old: &'e str,
    /// The new text.
    pub(crate) new: &'e str,
    /// Whether to replace all matches.
    pub(crate) replace_all: bool,
}

/// A text after its edits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EditedText {
    /// The new text.
    pub(crate) text: String,
    /// The number of replaced matches.
    pub(crate) replaced: usize,
    /// The loosest strategy that was needed.
    pub(crate) strategy: MatchStrategy,
}

/// The error of a failed edit; nothing was changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EditError {
    /// The number of the edit, counting from 1.
    pub(crate) edit: usize,
    /// The number of edits.
    pub(crate) edits: usize,
    /// The reason.
    pub(crate) fault: EditFault,
}

/// The reason why an edit failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditFault {
    /// The call was cancelled or timed out.
    Cancelled,
    /// This edit and those before it exceed the work budget.
    TooExpensive,
    /// The new text is too long.
    TooLong,
    /// The quoted text is empty.
    EmptyQuote,
    /// The new text equals the quoted text.
    Identical,
    /// The quoted text is not in the file; has the most similar lines, if there are any.
    NotFound(Option<NearestMatch>),
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
pub(crate) fn replace_quoted(
    text: &str,
    edits: &[QuotedEdit<'_>],
    stopped: &dyn Fn() -> bool,
) -> Result<EditedText, EditError> {
    replace_with_budget(WORK_BUDGET, text, edits, stopped)
}

/// Like [`replace_quoted`], with a budget in bytes.
fn replace_with_budget(
    mut left: usize,
    text: &str,
    edits: &[QuotedEdit<'_>],
    stopped: &dyn Fn() -> bool,
) -> Result<EditedText, EditError> {
    let (bom, body) = split_bom(text);
    let mut so_far = Cow::Borrowed(body);
    let (mut replaced, mut strategy) = (0, MatchStrategy::default());
    let refused = |index, fault| EditError { edit: index + 1, edits: edits.len(), fault };
    // Errors that do not depend on the text come first, so that they reveal nothing about it.
    for (index, edit) in edits.iter().enumerate() {
        edit.validate().map_err(|fault| refused(index, fault))?;
    }
    for (index, edit) in edits.iter().enumerate() {
        let refused = |fault| refused(index, fault);
        if stopped() {
            return Err(refused(EditFault::Cancelled));
        }
        let done = apply_edit(&so_far, edit).map_err(refused)?;
        // A looser strategy runs after all stricter ones.
        let ways = 1 + done.strategy as usize;
        let cost = so_far.len().saturating_mul(ways);
        let cost = cost.saturating_add(done.replaced.saturating_mul(COST_PER_MATCH));
        left = left.checked_sub(cost).ok_or_else(|| refused(EditFault::TooExpensive))?;
        so_far = Cow::Owned(done.text);
        replaced += done.replaced;
        strategy = strategy.max(done.strategy);
    }
    let mut text = so_far.into_owned();
    if !bom.is_empty() {
        text.insert_str(0, bom);
    }
    Ok(EditedText { text, replaced, strategy })
}

impl<'e> QuotedEdit<'e> {
    /// Returns the quoted and the new text without byte order marks.
    fn texts_without_bom(&self) -> (&'e str, &'e str) {
        (split_bom(self.old).1, split_bom(self.new).1)
    }

    /// Rejects an edit that changes nothing in any text.
    fn validate(&self) -> Result<(), EditFault> {
        let (old, new) = self.texts_without_bom();
        if old.is_empty() {
            return Err(EditFault::EmptyQuote);
        }
        if with_line_endings(old, "\n") == with_line_endings(new, "\n") {
            return Err(EditFault::Identical);
        }
        Ok(())
    }
}

fn apply_edit(text: &str, edit: &QuotedEdit<'_>) -> Result<EditedText, EditFault> {
    let (old, new) = edit.texts_without_bom();
    let most = if edit.replace_all { usize::MAX } else { MAX_LINES_NAMED };
    let QuoteMatches { strategy, ranges: places, count, has_overlap: overlaps } =
        find_quoted(text, old, most).ok_or_else(|| EditFault::NotFound(find_nearest(text, old)))?;
    if (count > 1 || overlaps) && !edit.replace_all {
        let lines = places.iter().map(|place| line_at(text, place.start)).collect();
        return Err(if overlaps {
            EditFault::Overlapping(lines)
        } else {
            EditFault::Ambiguous { count, lines }
        });
    }
    let mut out = String::with_capacity(text.len() + new.len());
    let (mut next, usual) = (0, default_line_ending(text));
    for place in &places {
        out.push_str(&text[next..place.start]);
        // With mixed line endings, new lines get the line ending of the replaced ones.
        let there = &text[place.clone()];
        out.push_str(&with_line_endings_of(new, there, detect_line_ending(there).unwrap_or(usual)));
        next = place.end;
        // Many matches can grow the text beyond the memory of the machine.
        if out.len() + text.len() - next > MAX_TEXT {
            return Err(EditFault::TooLong);
        }
    }
    out.push_str(&text[next..]);
    let ends = |text: &str| memchr::memchr2_iter(b'\n', b'\r', text.as_bytes()).count();
    if ends(new) > ends(old) && has_too_many_lines(out.as_bytes()) {
        return Err(EditFault::TooLong);
    }
    Ok(EditedText { text: out, replaced: places.len(), strategy })
}

/// Returns the line number of a byte, counting from 1.
fn line_at(text: &str, byte: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..byte]).count()
}

impl EditedText {
    /// Describes how the match differed from the quote, for the model.
    pub(crate) fn match_note(&self) -> Option<String> {
        let but = match self.strategy {
            MatchStrategy::Exact => return None,
            MatchStrategy::Punctuation => "typographic quotes, dashes or spaces",
            MatchStrategy::TrailingBlanks => "blanks at the ends of lines",
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

impl fmt::Display for EditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditFault::Cancelled => f.write_str("the call was cancelled or timed out"),
            EditFault::TooExpensive => f.write_str(
                "so many edits of so large a file take too long; make them in several calls, or \
                 write the whole file with the tool for that",
            ),
            EditFault::TooLong => f.write_str(
                "with all places replaced, the file would have more than 64 MiB or two million \
                 lines; use a command",
            ),
            EditFault::EmptyQuote => f.write_str(
                "the text to replace is empty; quote the text to change, or write the whole \
                 file with the tool for that",
            ),
            EditFault::Identical => {
                f.write_str("the new text is identical to the text to replace; nothing to change")
            }
            EditFault::NotFound(near) => {
                f.write_str(
                    "the text to replace is not in the file; it must match exactly, including \
                     blanks and indentation",
                )?;
                near.as_ref().map_or(Ok(()), |near| write!(f, "\n{near}"))
            }
            EditFault::Ambiguous { count, lines } => {
                let more = if *count > lines.len() { ", …" } else { "" };
                write!(
                    f,
                    "the text to replace is there {count} times, from lines {}{more}; quote more \
                     of the text around the one that is meant, or replace all",
                    join_line_numbers(lines)
                )
            }
            EditFault::Overlapping(lines) => write!(
                f,
                "the text to replace is there in places that overlap, from lines {}; quote more \
                 of the text around the one that is meant",
                join_line_numbers(lines)
            ),
        }
    }
}

fn join_line_numbers(lines: &[usize]) -> String {
    lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

impl std::error::Error for EditError {}
