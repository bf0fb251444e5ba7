//! Diffs as they are shown, and placeholders for unreadable files.

use std::ops::Range;

use proptest::prelude::*;
use similar::TextDiff;
use similar::udiff::UnifiedHunkHeader;

use super::segment::DifferingPart;
use super::*;
use crate::text::MAX_BYTES;
use crate::text::lines::{count_lines, split_lines};

#[track_caller]
fn check(old: &str, new: &str, expected: &str, counts: (usize, usize)) {
    let diff = diff_texts(old, new, 100);
    assert_eq!(diff.unified, expected);
    assert_eq!((diff.added, diff.removed), counts);
}

#[test]
fn shows_three_context_lines() {
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

// F142: the preview distinguishes a new file from a changed one.
#[test]
fn a_preview_names_both_sides() {
    let created = FileDiff::new("src/a.rs", None, Some("x\n"), DiffDetail::Full);
    let expected = "--- /dev/null\n+++ src/a.rs\n@@ -0,0 +1 @@\n+x\n";
    let preview = json!({ "unified": expected, "path": "src/a.rs", "added": 1, "removed": 0 });
    assert_eq!(created.to_json(), preview);
    let deleted = FileDiff::new("a\n+++ b", Some("x\n"), None, DiffDetail::Full);
    assert_eq!(deleted.diff.unified, "--- a\\n+++ b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
}

#[test]
fn a_huge_diff_says_how_much_is_left_out() {
    let new: String = (0..50).map(|line| format!("{line}\n")).collect();
    let diff = diff_texts("", &new, 11);
    assert!(diff.unified.ends_with("\n+9\n[40 more lines of the diff]\n"), "{}", diff.unified);
    assert_eq!(diff.added, 50);
    let long = diff_texts("", &"x".repeat(MAX_BYTES), 11);
    assert_eq!(long.unified, "@@ -0,0 +1 @@\n[1 more lines of the diff]\n");
}
/// Returns the hunk headers of a diff of the whole texts.
fn heads(old: &str, new: &str) -> Vec<String> {
    let whole = |text| split_lines(text).map(|line| line.whole).collect::<Vec<_>>();
    let (old, new) = (whole(old), whole(new));
    let diff = TextDiff::configure().diff_slices(&old, &new);
    let groups = diff.grouped_ops(CONTEXT);
    groups.iter().map(|group| UnifiedHunkHeader::new(group).to_string()).collect()
}

#[test]
fn skips_equal_parts_and_keeps_line_numbers() {
    let text: String = (0..9000).map(|line| format!("line {line}\n")).collect();
    for (from, to) in [("line 0\n", "x\n"), ("line 4500\n", "x\ny\n"), ("line 8999\n", "")] {
        let new = text.replacen(from, to, 1);
        let part = DifferingPart::find(&text, &new);
        assert!(part.old.len() + part.new.len() < 200, "{}", part.old.len());
        let diff = diff_texts(&text, &new, 100);
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
    fn diff_of_the_differing_part_is_complete(
        start in "[ab\r\n]{0,20}", old in "[a\n]{0,9}", new in "[a\n]{0,9}", end in "[ab\n]{0,20}",
    ) {
        let (old, new) = (format!("{start}{old}{end}"), format!("{start}{new}{end}"));
        let DifferingPart { start, old: inner, new: into } = DifferingPart::find(&old, &new);
        let head = &old[..start];
        let tail = &old[head.len() + inner.len()..];
        prop_assert_eq!(format!("{head}{inner}{tail}"), &*old);
        prop_assert_eq!(format!("{head}{into}{tail}"), &*new);
        let diff = diff_texts(&old, &new, 1000);
        prop_assert_eq!(diff.unified.is_empty(), old == new);
        let counted = |sign| diff.unified.lines().filter(|line| line.starts_with(sign)).count();
        prop_assert_eq!((counted('+'), counted('-')), (diff.added, diff.removed));
        prop_assert_eq!(
            split_lines(&new).count() + diff.removed, split_lines(&old).count() + diff.added
        );
    }
}

/// Checks the diff from known changes.
#[track_caller]
fn check_along(old: &str, new: &str, changes: &[[usize; 4]], expected: &str) {
    let lines = |text: &str, place: Range<usize>| text.get(place).map_or(0, count_lines);
    let change = |[a, b, c, d]: &[usize; 4]| {
        let (from, to) = (*a..*b, *c..*d);
        let lines = [lines(old, from.clone()), lines(new, to.clone())];
        LineChange { old: from, new: to, lines }
    };
    let changes: Vec<_> = changes.iter().map(change).collect();
    let diff = FileDiff::from_changes("f", old, new, &changes, DiffDetail::Full).diff;
    assert_eq!(diff.unified, format!("--- f\n+++ f\n{expected}"));
    let counted = FileDiff::from_changes("f", old, new, &changes, DiffDetail::CountsOnly).diff;
    assert_eq!((counted.added, counted.removed), (diff.added, diff.removed));
    assert_eq!(counted.unified, "");
}

#[test]
fn formats_known_changes() {
    let far = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    check_along(
        &format!("a\n{far}c\n"),
        &format!("b\n{far}c\nd\n"),
        &[[0, 2, 0, 2], [22, 22, 22, 24]],
        "@@ -1,4 +1,4 @@\n-a\n+b\n 1\n 2\n 3\n@@ -9,3 +9,4 @@\n 8\n 9\n c\n+d\n",
    );
    // Six equal lines do not start a new hunk.
    check_along(
        "a\n1\n2\n3\n4\n5\n6\nb\n",
        "1\n2\n3\n4\n5\n6\n",
        &[[0, 2, 0, 0], [14, 16, 12, 12]],
        "@@ -1,8 +1,6 @@\n-a\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n",
    );
    // A line that is removed and added again does not change.
    check_along("a\nb\nc\n", "a\nx\nc\n", &[[0, 6, 0, 6]], "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
}

// Found by fuzzing: a blank line that is removed above another one, and added below it.
#[test]
fn changes_that_cancel_out_are_no_difference() {
    let gone = LineChange { old: 2..3, new: 2..2, lines: [1, 0] };
    let come = LineChange { old: 4..4, new: 3..4, lines: [0, 1] };
    let old = "a\n\n\nb\n";
    for detail in [DiffDetail::Full, DiffDetail::CountsOnly] {
        let changes = [gone.clone(), come.clone()];
        let diff = FileDiff::from_changes("f", old, old, &changes, detail).diff;
        assert_eq!((diff.unified.as_str(), diff.added, diff.removed), ("", 0, 0));
    }
}

#[test]
fn incomplete_changes_fall_back_to_a_comparison() {
    let wrong: [&[[usize; 4]]; 4] =
        [&[], &[[0, 2, 0, 2]], &[[4, 6, 4, 6], [0, 2, 0, 2]], &[[0, 99, 0, 99]]];
    for changes in wrong {
        check_along("a\nb\nc\n", "x\nb\nz\n", changes, "@@ -1,3 +1,3 @@\n-a\n+x\n b\n-c\n+z\n");
    }
}
