//! Truncates tool output to the budget that a model can afford to read.
//!
//! The pipeline calls [`Budget::fit`] once, after the tool and before any adapter, so adapters
//! never truncate. The whole text is saved in a file, until its retention time is over.
//!
//! **Invariant:** nothing here depends on which tool wrote the text.

mod env;
mod output_file;
mod retention;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::env::InvalidBudget;
pub(crate) use self::output_file::save_output;
pub use self::output_file::{outputs_folder, prepare_outputs};
pub use self::retention::{RETENTION, is_sweep_due, sweep_outputs};
use crate::tool::Truncate;

/// The number of bytes that count as one token.
const BYTES_PER_TOKEN: usize = 4;

/// How much of a tool's output the model gets to read, in lines and bytes.
///
/// Text is truncated between lines. Only a line that is longer than the whole kept part is
/// truncated inside, at a character boundary. A limit in bytes also limits the characters.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Budget, Truncate};
///
/// let log = "start\nstep 1\nstep 2\nstep 3\ndone\n";
/// let fitted = Budget::new(2, 1000).fit(log, Truncate::Head).expect("four lines are too many");
///
/// assert_eq!(fitted.head, "start\nstep 1\n");
/// assert_eq!(fitted.tail, "");
/// assert_eq!(fitted.omitted_lines, 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    lines: usize,
    bytes: usize,
}

/// 2000 lines or 50 KiB, whichever is less.
impl Default for Budget {
    fn default() -> Self {
        Self::new(2000, 50 * 1024)
    }
}

/// The kept parts of a truncated text, with exact counts of what was omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FittedText<'t> {
    /// The part kept from the start.
    pub head: &'t str,
    /// The part kept from the end.
    pub tail: &'t str,
    /// The number of lines of the whole text.
    pub original_lines: usize,
    /// The number of lines of which nothing is kept.
    pub omitted_lines: usize,
    /// The number of bytes left out.
    pub omitted_bytes: usize,
}

impl Budget {
    /// Creates a budget of at most `lines` lines and `bytes` bytes.
    #[must_use]
    pub const fn new(lines: usize, bytes: usize) -> Self {
        Self { lines, bytes }
    }

    /// Creates a budget of at most `tokens` tokens of four bytes each, in any number of lines.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Budget, Call};
    ///
    /// let call = Call::new("fetch", "{}").max_output(Budget::tokens(500).max_bytes());
    /// assert_eq!(call.max_output, Some(2000));
    /// ```
    #[must_use]
    pub const fn tokens(tokens: usize) -> Self {
        Self::new(usize::MAX, tokens.saturating_mul(BYTES_PER_TOKEN))
    }

    /// Replaces the limit of lines.
    #[must_use]
    #[inline]
    pub const fn with_lines(self, lines: usize) -> Self {
        Self { lines, ..self }
    }

    /// Replaces the limit of bytes.
    #[must_use]
    #[inline]
    pub const fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Returns the limit of bytes.
    #[must_use]
    pub const fn max_bytes(self) -> usize {
        self.bytes
    }

    /// Returns a budget with only the limits that are lower than the default.
    pub(crate) fn only_lowered(self) -> Self {
        let usual = Self::default();
        let lowered = |limit: usize, usual: usize| if limit < usual { limit } else { usize::MAX };
        Self::new(lowered(self.lines, usual.lines), lowered(self.bytes, usual.bytes))
    }

    /// Returns whether `text` fits without truncation.
    #[must_use]
    #[inline]
    pub fn admits(self, text: &str) -> bool {
        // Every line has at least one byte, so the lines of a short text need not be counted.
        text.len() <= self.bytes && (text.len() < self.lines || count_lines(text) <= self.lines)
    }

    /// Returns whether `text` is so short that its lines need not be counted.
    #[inline]
    pub(crate) fn surely_admits(self, text: &str) -> bool {
        text.len() < self.lines && text.len() <= self.bytes
    }

    /// Truncates `text` to the budget; returns `None` when it fits already.
    #[must_use]
    #[inline]
    pub fn fit(self, text: &str, keep: Truncate) -> Option<FittedText<'_>> {
        if matches!(keep, Truncate::None) || self.admits(text) {
            return None;
        }
        let (head, tail) = match keep {
            Truncate::Tail => ("", line_suffix(text, self.lines, self.bytes)),
            Truncate::Middle => self.split_ends(text),
            _ => (line_prefix(text, self.lines, self.bytes), ""),
        };
        Some(FittedText::new(text, head, tail))
    }

    /// Keeps a fifth of the budget from the start and the rest from the end, where errors usually
    /// are.
    fn split_ends(self, text: &str) -> (&str, &str) {
        let head = line_prefix(text, self.lines / 5, self.bytes / 5);
        let rest = &text[head.len()..];
        (head, line_suffix(rest, self.lines - count_lines(head), self.bytes - head.len()))
    }
}

impl<'t> FittedText<'t> {
    fn new(text: &'t str, head: &'t str, tail: &'t str) -> Self {
        let omitted = &text[head.len()..text.len() - tail.len()];
        // The first and the last omitted line may be kept in part.
        let partial = usize::from(!head.is_empty() && !head.ends_with('\n'))
            + usize::from(!tail.is_empty() && !omitted.ends_with('\n'));
        Self {
            head,
            tail,
            original_lines: count_lines(text),
            omitted_lines: count_lines(omitted).saturating_sub(partial),
            omitted_bytes: omitted.len(),
        }
    }

    /// Prepends the first `heading` bytes of `text`, which do not count.
    pub(crate) fn with_heading(self, heading: usize, text: &'t str) -> Self {
        Self { head: &text[..heading + self.head.len()], ..self }
    }

    /// Keeps everything of `text` except the range `gap`.
    pub(crate) fn without_range(text: &'t str, gap: &Range<usize>) -> Self {
        Self::new(text, &text[..gap.start], &text[gap.end..])
    }

    /// Extends the omission, so that the marker at the range `mark` is kept whole or not at all.
    pub(crate) fn with_whole_marker(self, text: &'t str, mark: &Range<usize>) -> Self {
        let (head, tail) = (self.head.len(), text.len() - self.tail.len());
        let head = if mark.contains(&head) { mark.start } else { head };
        let tail = if mark.contains(&tail) && tail > mark.start { mark.end } else { tail };
        Self::new(text, &text[..head], &text[tail..])
    }

    /// Keeps nothing of `text`.
    pub(crate) fn keep_none(text: &'t str) -> Self {
        Self::new(text, "", "")
    }

    /// Keeps everything of `text`.
    pub(crate) fn keep_all(text: &'t str) -> Self {
        Self::new(text, text, "")
    }
}

fn count_lines(text: &str) -> usize {
    let newlines = text.bytes().filter(|&byte| byte == b'\n').count();
    newlines + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the whole lines from the start that fit, and a part of a line that is longer than
/// `bytes`.
fn line_prefix(text: &str, lines: usize, bytes: usize) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            if line.len() > bytes {
                end = text.floor_char_boundary(bytes);
            }
            break;
        }
        end += line.len();
    }
    &text[..end]
}

/// Returns the whole lines from the end that fit, and a part of a line that is longer than
/// `bytes`.
fn line_suffix(text: &str, lines: usize, bytes: usize) -> &str {
    let mut start = text.len();
    for line in text.split_inclusive('\n').rev().take(lines) {
        if text.len() - start + line.len() > bytes {
            if line.len() > bytes {
                start = text.ceil_char_boundary(text.len() - bytes);
            }
            break;
        }
        start -= line.len();
    }
    &text[start..]
}
