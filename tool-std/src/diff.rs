//! What changes in a file, as a unified diff for whoever approves or reads it.
//!
//! **Invariant:** the counts are exact, also where the diff itself is cut.

use std::fmt::Write as _;

use memchr::{memchr, memchr_iter, memrchr_iter};
use serde_json::{Value, json};
use similar::{ChangeTag, DiffOp, TextDiff};

use crate::text::lines::{Line, lines, split_bom};
use crate::text::{MAX_BYTES, one_line};

/// Lines around a change.
const CONTEXT: usize = 3;

/// How many bytes are compared at once.
const BLOCK: usize = 4096;

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
    let (old, new) = (split_bom(old).1, split_bom(new).1);
    let Part { skipped, old, new } = Part::that_differs(old, new);
    let whole = |text| lines(text).map(|line| line.whole).collect::<Vec<_>>();
    let (old, new) = (whole(old), whole(new));
    let diff = TextDiff::configure().diff_slices(&old, &new);
    let mut unified = Capped { text: String::new(), room: max_lines, left_out: 0 };
    let (mut added, mut removed) = (0, 0);
    for group in diff.grouped_ops(CONTEXT) {
        unified.push(&head(&group, skipped));
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

/// Where two texts differ: lines that are the same at their starts and ends are left out, but
/// for those that are shown around a change.
struct Part<'t> {
    /// Lines before it.
    skipped: usize,
    old: &'t str,
    new: &'t str,
}

impl<'t> Part<'t> {
    fn that_differs(old: &'t str, new: &'t str) -> Self {
        let start = before_lines(old, common_start(old.as_bytes(), new.as_bytes()));
        let (head, old) = old.split_at(start);
        let new = &new[start..];
        let end = common_end(old.as_bytes(), new.as_bytes());
        let kept = end - behind_lines(&old.as_bytes()[old.len() - end..]);
        let skipped = match memchr(b'\r', head.as_bytes()) {
            Some(_) => lines(head).count(),
            None => memchr_iter(b'\n', head.as_bytes()).count(),
        };
        Self { skipped, old: &old[..old.len() - kept], new: &new[..new.len() - kept] }
    }
}

/// How many bytes are the same at the starts.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

/// How many bytes are the same at the ends.
fn common_end(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[..a.len() - same].iter().rev().zip(b[..b.len() - same].iter().rev());
    same + rest.take_while(|(a, b)| a == b).count()
}

/// The start of the lines that are shown before the one at byte `at`.
///
/// Only LF counts as the end of a line here: it is one for everybody, and never the first of
/// two bytes that end a line together.
fn before_lines(text: &str, at: usize) -> usize {
    let mut ends = memrchr_iter(b'\n', &text.as_bytes()[..at]);
    ends.nth(CONTEXT).map_or(0, |end| end + 1)
}

/// How much of a common end is shown behind the line that it begins in.
fn behind_lines(text: &[u8]) -> usize {
    let mut ends = memchr_iter(b'\n', text);
    ends.nth(CONTEXT).map_or(text.len(), |end| end + 1)
}

/// The head of a hunk, in lines of the whole texts.
fn head(group: &[DiffOp], skipped: usize) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return String::new() };
    let shown = |start: usize, end: usize| match end - start {
        // Nothing stands behind the line before it.
        0 => format!("{},0", start + skipped),
        1 => format!("{}", start + skipped + 1),
        len => format!("{},{len}", start + skipped + 1),
    };
    let old = shown(first.old_range().start, last.old_range().end);
    let new = shown(first.new_range().start, last.new_range().end);
    format!("@@ -{old} +{new} @@\n")
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
    use proptest::prelude::*;
    use similar::udiff::UnifiedHunkHeader;

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
    /// The heads of a diff of the whole texts.
    fn heads(old: &str, new: &str) -> Vec<String> {
        let whole = |text| lines(text).map(|line| line.whole).collect::<Vec<_>>();
        let (old, new) = (whole(old), whole(new));
        let diff = TextDiff::configure().diff_slices(&old, &new);
        let groups = diff.grouped_ops(CONTEXT);
        groups.iter().map(|group| UnifiedHunkHeader::new(group).to_string()).collect()
    }

    #[test]
    fn what_is_the_same_is_not_compared_and_counts_all_the_same() {
        let text: String = (0..9000).map(|line| format!("line {line}\n")).collect();
        for (from, to) in [("line 0\n", "x\n"), ("line 4500\n", "x\ny\n"), ("line 8999\n", "")] {
            let new = text.replacen(from, to, 1);
            let part = Part::that_differs(&text, &new);
            assert!(part.old.len() + part.new.len() < 200, "{}", part.old.len());
            let diff = between(&text, &new, 100);
            assert_eq!(diff.unified.lines().next(), heads(&text, &new).first().map(|it| &**it));
        }
    }

    #[test]
    fn characters_may_differ_in_one_of_their_bytes() {
        check("\u{e9}\n", "\u{a9}\n", "@@ -1 +1 @@\n-\u{e9}\n+\u{a9}\n", (1, 1));
        check("x\u{e9}\n", "x\u{e8}\n", "@@ -1 +1 @@\n-x\u{e9}\n+x\u{e8}\n", (1, 1));
    }

    proptest! {
        #[test]
        fn a_part_is_as_good_as_the_whole(
            start in "[ab\r\n]{0,20}", old in "[a\n]{0,9}", new in "[a\n]{0,9}", end in "[ab\n]{0,20}",
        ) {
            let (old, new) = (format!("{start}{old}{end}"), format!("{start}{new}{end}"));
            let Part { skipped, old: inner, new: into } = Part::that_differs(&old, &new);
            let head: String = lines(&old).take(skipped).map(|line| line.whole).collect();
            let tail = &old[head.len() + inner.len()..];
            prop_assert_eq!(format!("{head}{inner}{tail}"), &*old);
            prop_assert_eq!(format!("{head}{into}{tail}"), &*new);
            let diff = between(&old, &new, 1000);
            prop_assert_eq!(diff.unified.is_empty(), old == new);
            let counted = |sign| diff.unified.lines().filter(|line| line.starts_with(sign)).count();
            prop_assert_eq!((counted('+'), counted('-')), (diff.added, diff.removed));
            prop_assert_eq!(
                lines(&new).count() + diff.removed, lines(&old).count() + diff.added
            );
        }
    }
}
