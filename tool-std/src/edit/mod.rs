//! Replaces quoted text by other text: for edits that name what they change.
//!
//! What is quoted must be there, and only once unless every place is meant. It may differ in
//! line ends, in typographic characters, or in blanks at the ends of whole lines; it is never
//! guessed from something alike. Where it is not there, the error shows what is.
//!
//! **Invariant:** nothing outside of what was found changes, and nothing here reads a file.

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

/// How many bytes are gone through for all edits together, each time they are copied or
/// compared: what a processor does in a few seconds.
const MOST: usize = 1 << 30;

/// To how many bytes it comes to replace one place.
const PLACE: usize = 16;

/// How long a text may become, in bytes: one that is longer could not be edited again.
const MAX_TEXT: usize = 64 * 1024 * 1024;

/// How many line numbers an error names.
const NAMED: usize = 10;

/// One replacement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'e> {
    /// The text that is there.
    pub(crate) old: &'e str,
    /// The text that is to be there.
    pub(crate) new: &'e str,
    /// Whether every place is meant, not the only one.
    pub(crate) replace_all: bool,
}

/// A text after its edits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    /// The new text.
    pub(crate) text: String,
    /// How many places were replaced.
    pub(crate) replaced: usize,
    /// How the least clear of them was found.
    pub(crate) strategy: Strategy,
}

/// Why nothing is edited.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EditError {
    /// The edit at fault, counting from 1.
    pub(crate) edit: usize,
    /// How many edits there are.
    pub(crate) edits: usize,
    /// What is wrong with it.
    pub(crate) fault: Fault,
}

/// What is wrong with an edit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nobody waits for it any more.
    Stopped,
    /// With those before it, it is more work than anybody waits for.
    Costly,
    /// What it makes of the text is too long.
    TooLong,
    /// It quotes nothing.
    Empty,
    /// It changes nothing.
    Identical,
    /// What it quotes is not there; perhaps something alike is.
    NotFound(Option<Nearest>),
    /// What it quotes is there several times.
    Ambiguous {
        /// How often, without those that overlap.
        count: usize,
        /// The first lines of the first places.
        lines: Vec<usize>,
    },
    /// What it quotes is there, and once more in a part of that; the first lines of both places.
    Overlapping(Vec<usize>),
}

/// The text after all `edits`, each made on what the ones before it left; or the first error,
/// and no edit at all. Between them it looks whether they are `stopped`.
pub(crate) fn replace(
    text: &str,
    edits: &[Edit<'_>],
    stopped: &dyn Fn() -> bool,
) -> Result<Edited, EditError> {
    replace_within(MOST, text, edits, stopped)
}

/// The same, with so many bytes to go through.
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
    // First what is wrong with any of them whatever the text says, so that it tells nothing of
    // that.
    for (index, edit) in edits.iter().enumerate() {
        edit.check().map_err(|fault| refused(index, fault))?;
    }
    for (index, edit) in edits.iter().enumerate() {
        let refused = |fault| refused(index, fault);
        if stopped() {
            return Err(refused(Fault::Stopped));
        }
        let done = replace_one(&so_far, edit).map_err(refused)?;
        // A looser way comes after the stricter ones.
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
    /// What is there and what is to be there, without the byte order mark of a file.
    fn texts(&self) -> (&'e str, &'e str) {
        (split_bom(self.old).1, split_bom(self.new).1)
    }

    /// Refuses what changes no text.
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
        // In a file of mixed line ends, new lines end as those do that they replace.
        let there = &text[place.clone()];
        out.push_str(&with_ends_of(new, there, line_end(there).unwrap_or(usual)));
        next = place.end;
        // With many places it grows faster than the memory of any machine.
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

/// The line in which a byte stands, counting from 1.
fn line_at(text: &str, byte: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..byte]).count()
}

impl Edited {
    /// What the caller should know about how the places were found.
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
            Fault::Stopped => f.write_str("it took too long, or nobody waits for it any more"),
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
