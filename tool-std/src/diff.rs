//! What changes in a file, as a unified diff for whoever approves or reads it.
//!
//! **Invariant:** the counts are exact, also where the diff itself is cut.

use std::fmt::Write as _;

use serde_json::{Value, json};
use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, TextDiff};

use crate::text::lines::{Line, lines, split_bom};
use crate::text::{MAX_BYTES, one_line};

/// Lines around a change.
const CONTEXT: usize = 3;

/// The most lines of a diff of a file.
const MAX_LINES: usize = 1000;

/// The differences between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    /// In unified form; empty when nothing differs.
    pub(crate) unified: String,
    /// Lines that only the new text has.
    pub(crate) added: usize,
    /// Lines that only the old text has.
    pub(crate) removed: usize,
}

/// What happens to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// The file.
    pub(crate) path: String,
    /// The difference, headed by the names of both sides.
    pub(crate) diff: Diff,
}

impl FileDiff {
    /// From `old` to `new`; a side without a file is `None`.
    pub(crate) fn new(path: &str, old: Option<&str>, new: Option<&str>) -> Self {
        let mut diff = between(old.unwrap_or_default(), new.unwrap_or_default(), MAX_LINES);
        let name = |side: Option<&str>| match side {
            Some(_) => one_line(path),
            None => "/dev/null".into(),
        };
        if !diff.unified.is_empty() {
            diff.unified = format!("--- {}\n+++ {}\n{}", name(old), name(new), diff.unified);
        }
        Self { path: path.to_owned(), diff }
    }

    /// As a preview of a call has it.
    pub(crate) fn to_json(&self) -> Value {
        let Diff { unified, added, removed } = &self.diff;
        json!({ "unified": unified, "path": self.path, "added": added, "removed": removed })
    }
}

/// The differences between two texts, at most `max_lines` lines of them.
///
/// A byte order mark is no part of the first line.
pub(crate) fn between(old: &str, new: &str, max_lines: usize) -> Diff {
    let whole = |text| lines(split_bom(text).1).map(|line| line.whole).collect::<Vec<_>>();
    let (old, new) = (whole(old), whole(new));
    let diff = TextDiff::configure().diff_slices(&old, &new);
    let mut unified = Capped { text: String::new(), room: max_lines, left_out: 0 };
    let (mut added, mut removed) = (0, 0);
    for group in diff.grouped_ops(CONTEXT) {
        unified.push(&format!("{}\n", UnifiedHunkHeader::new(&group)));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            added += usize::from(sign == '+');
            removed += usize::from(sign == '-');
            unified.push(&shown(sign, change.value()));
        }
    }
    Diff { unified: unified.finish(), added, removed }
}

/// One line of a diff. A CR by itself ends a line of the file, but must not be able to hide
/// what stands before it.
fn shown(sign: char, whole: &str) -> String {
    let Some(Line { text, .. }) = lines(whole).next() else { return String::new() };
    match &whole[text.len()..] {
        "" => format!("{sign}{text}\n\\ No newline at end of file\n"),
        "\r\n" => format!("{sign}{text}\r\n"),
        _ => format!("{sign}{text}\n"),
    }
}

/// Text that stops growing, and counts what no longer fits.
struct Capped {
    text: String,
    room: usize,
    left_out: usize,
}

impl Capped {
    fn push(&mut self, line: &str) {
        if self.room == 0 || self.text.len() + line.len() > MAX_BYTES {
            self.room = 0;
            self.left_out += 1;
        } else {
            self.room -= 1;
            self.text.push_str(line);
        }
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            let _ = writeln!(self.text, "[{} more lines of the diff]", self.left_out);
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &str, counts: (usize, usize)) {
        let diff = between(old, new, 100);
        assert_eq!(diff.unified, expected);
        assert_eq!((diff.added, diff.removed), counts);
    }

    #[test]
    fn three_lines_stand_around_a_change() {
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
            (1, 1),
        );
        check("same\n", "same\n", "", (0, 0));
    }

    #[test]
    fn line_ends_are_part_of_a_line() {
        check("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", (1, 1));
        check("a\r\n", "a\n", "@@ -1 +1 @@\n-a\r\n+a\n", (1, 1));
        check("ok\rrm\r", "ok\r", "@@ -1,2 +1 @@\n ok\n-rm\n", (0, 1));
    }

    #[test]
    fn the_byte_order_mark_is_not_shown() {
        check("\u{feff}a\n", "\u{feff}b\n", "@@ -1 +1 @@\n-a\n+b\n", (1, 1));
    }

    // F142: a preview tells a new file from a changed one.
    #[test]
    fn a_preview_names_both_sides() {
        let created = FileDiff::new("src/a.rs", None, Some("x\n"));
        let expected = "--- /dev/null\n+++ src/a.rs\n@@ -0,0 +1 @@\n+x\n";
        let preview = json!({ "unified": expected, "path": "src/a.rs", "added": 1, "removed": 0 });
        assert_eq!(created.to_json(), preview);
        let deleted = FileDiff::new("a\n+++ b", Some("x\n"), None);
        assert_eq!(deleted.diff.unified, "--- a\\n+++ b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn a_huge_diff_says_how_much_is_left_out() {
        let new: String = (0..50).map(|line| format!("{line}\n")).collect();
        let diff = between("", &new, 11);
        assert!(diff.unified.ends_with("\n+9\n[40 more lines of the diff]\n"), "{}", diff.unified);
        assert_eq!(diff.added, 50);
        let long = between("", &"x".repeat(MAX_BYTES), 11);
        assert_eq!(long.unified, "@@ -0,0 +1 @@\n[1 more lines of the diff]\n");
    }
}
