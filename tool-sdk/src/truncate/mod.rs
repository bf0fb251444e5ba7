//! Keeps a tool's text within what a model can afford to read.
//!
//! The pipeline calls [`Budget::fit`] once, after the tool and before any surface, so
//! surfaces never cut. What is cut is kept whole in a file.
//!
//! **Invariant:** nothing here knows which tool wrote the text.

mod keep;

pub(crate) use self::keep::keep;
use crate::tool::Truncate;

/// How much of a tool's text the model gets to read.
///
/// Cuts fall between lines; only a line that is too long by itself is cut inside, at a
/// character.
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

/// What is left of a text that did not fit, with exact counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fitted<'t> {
    /// The part kept from the start.
    pub head: &'t str,
    /// The part kept from the end.
    pub tail: &'t str,
    /// Lines of the whole text.
    pub original_lines: usize,
    /// Lines of which nothing is kept.
    pub omitted_lines: usize,
    /// Bytes left out.
    pub omitted_bytes: usize,
}

impl Budget {
    /// At most `lines` lines and `bytes` bytes.
    #[must_use]
    pub const fn new(lines: usize, bytes: usize) -> Self {
        Self { lines, bytes }
    }

    /// The same number of lines with another number of bytes.
    #[must_use]
    #[inline]
    pub const fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Whether `text` fits as it is.
    #[must_use]
    #[inline]
    pub fn admits(self, text: &str) -> bool {
        // A line is at least its newline, so few bytes are few lines.
        text.len() <= self.bytes && (text.len() < self.lines || count_lines(text) <= self.lines)
    }

    /// Cuts `text` so that it fits; `None` when it does already.
    #[must_use]
    #[inline]
    pub fn fit(self, text: &str, keep: Truncate) -> Option<Fitted<'_>> {
        if matches!(keep, Truncate::None) || self.admits(text) {
            return None;
        }
        let (head, tail) = match keep {
            Truncate::Tail => ("", suffix(text, self.lines, self.bytes)),
            Truncate::Middle => self.both_ends(text),
            _ => (prefix(text, self.lines, self.bytes), ""),
        };
        let original_lines = count_lines(text);
        let omitted = &text[head.len()..text.len() - tail.len()];
        // Each omitted newline ends a line; a cut inside a line leaves a part of it.
        let partial = usize::from(!head.is_empty() && !head.ends_with('\n'));
        Some(Fitted {
            head,
            tail,
            original_lines,
            omitted_lines: count_lines(omitted).saturating_sub(partial),
            omitted_bytes: omitted.len(),
        })
    }

    /// A fifth from the start and the rest from the end, where errors stand.
    fn both_ends(self, text: &str) -> (&str, &str) {
        let head = prefix(text, self.lines / 5, self.bytes / 5);
        let rest = &text[head.len()..];
        let lines = self.lines - self.lines / 5;
        (head, suffix(rest, lines, self.bytes - self.bytes / 5))
    }
}

fn count_lines(text: &str) -> usize {
    let newlines = text.bytes().filter(|&byte| byte == b'\n').count();
    newlines + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// As many whole lines from the start as fit; a part of the first when not even it does.
fn prefix(text: &str, lines: usize, bytes: usize) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            break;
        }
        end += line.len();
    }
    if end == 0 && lines > 0 { &text[..text.floor_char_boundary(bytes)] } else { &text[..end] }
}

/// As many whole lines from the end as fit; a part of the last when not even it does.
fn suffix(text: &str, lines: usize, bytes: usize) -> &str {
    let mut start = text.len();
    let mut kept = 0;
    while start > 0 && kept < lines {
        let before = &text[..start];
        let line = before.strip_suffix('\n').unwrap_or(before).rfind('\n').map_or(0, |at| at + 1);
        if text.len() - line > bytes {
            break;
        }
        start = line;
        kept += 1;
    }
    if start == text.len() && lines > 0 {
        &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
    } else {
        &text[start..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(budget: Budget, keep: Truncate, text: &str, head: &str, tail: &str) {
        let fitted = budget.fit(text, keep).expect("it is too long");
        assert_eq!((fitted.head, fitted.tail), (head, tail));
        assert_eq!(fitted.omitted_bytes, text.len() - head.len() - tail.len());
    }

    // F94: the limits themselves are not truncated, one more is.
    #[test]
    fn the_limits_are_inclusive() {
        let budget = Budget::default();
        assert!(budget.admits(&"x\n".repeat(2000)));
        assert!(!budget.admits(&"x\n".repeat(2001)));
        assert!(budget.admits(&"x".repeat(51_200)));
        assert!(!budget.admits(&"x".repeat(51_201)));
    }

    // F96: head keeps the first lines, tail the last, middle both ends.
    #[test]
    fn each_direction_keeps_its_end() {
        let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        check(Budget::new(2, 99), Truncate::Head, text, "1\n2\n", "");
        check(Budget::new(2, 99), Truncate::Tail, text, "", "9\n10\n");
        check(Budget::new(5, 99), Truncate::Middle, text, "1\n", "7\n8\n9\n10\n");
    }

    #[test]
    fn one_line_that_is_too_long_is_cut_at_a_character() {
        check(Budget::new(9, 4), Truncate::Head, "ääää", "ää", "");
        check(Budget::new(9, 5), Truncate::Tail, "ääää", "", "ää");
    }

    // F99: the counts are exact.
    #[test]
    fn lines_are_counted_exactly() {
        let fitted = Budget::new(1, 99).fit("a\nb\nc", Truncate::Head).unwrap();
        assert_eq!((fitted.original_lines, fitted.omitted_lines, fitted.omitted_bytes), (3, 2, 3));
    }

    proptest! {
        #[test]
        fn what_is_kept_fits_and_comes_from_the_ends(
            text in "[a-zä\n]{0,200}", lines in 1_usize..20, bytes in 8_usize..100,
        ) {
            for keep in [Truncate::Head, Truncate::Tail, Truncate::Middle] {
                if let Some(fitted) = Budget::new(lines, bytes).fit(&text, keep) {
                    prop_assert!(text.starts_with(fitted.head) && text.ends_with(fitted.tail));
                    prop_assert!(fitted.head.len() + fitted.tail.len() <= bytes);
                    prop_assert!(count_lines(fitted.head) + count_lines(fitted.tail) <= lines.max(2));
                    prop_assert_eq!(fitted.head.len() + fitted.tail.len() + fitted.omitted_bytes, text.len());
                }
            }
        }
    }
}
