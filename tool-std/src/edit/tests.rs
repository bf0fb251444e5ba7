//! The edit engine: fixtures of another implementation, own cases, and properties.

use proptest::prelude::*;
use serde_json::Value;

use super::find::{MatchStrategy as Found, find_quoted};
use super::{EditError, EditFault, EditedText, QuotedEdit, find_nearest};

fn replace(text: &str, edits: &[QuotedEdit<'_>]) -> Result<EditedText, EditError> {
    super::replace_quoted(text, edits, &|| false)
}

fn once<'e>(old: &'e str, new: &'e str) -> QuotedEdit<'e> {
    QuotedEdit { old, new, replace_all: false }
}

fn all<'e>(old: &'e str, new: &'e str) -> QuotedEdit<'e> {
    QuotedEdit { old, new, replace_all: true }
}

#[track_caller]
fn check(text: &str, edit: QuotedEdit<'_>, expected: &str, replaced: usize, strategy: Found) {
    let expected = EditedText { text: expected.to_owned(), replaced, strategy };
    assert_eq!(replace(text, &[edit]), Ok(expected));
}

#[track_caller]
fn check_error(text: &str, edits: &[QuotedEdit<'_>], expected: &str) {
    assert_eq!(replace(text, edits).map_err(|error| error.to_string()), Err(expected.to_owned()));
}

// F143: line endings follow the file. The error texts of the fixtures are not compared, because the
// messages here say more, such as the number of matches and the most similar lines.
#[test]
fn passes_the_fixtures_of_other_implementations() {
    let text = include_str!("../../tests/fixtures/opencode-edit/cases.json");
    let fixture: Value = serde_json::from_str(text).expect("it is JSON");
    let cases = fixture["line_endings"].as_array().expect("it has cases");
    assert_eq!(cases.len(), 10);
    for case in cases {
        let text = |key: &str| case[key].as_str().expect("it is a text");
        let edit = QuotedEdit {
            old: text("old"),
            new: text("new"),
            replace_all: case["replace_all"].as_bool().expect("it is a boolean"),
        };
        let edited = replace(text("content"), &[edit]).expect("it is there");
        assert_eq!(edited.text, text("expected"), "{}", case["name"]);
        assert_eq!(edited.strategy, Found::Exact, "{}", case["name"]);
    }

    let case = &fixture["concurrent"];
    let edits: Vec<QuotedEdit<'_>> = case["edits"]
        .as_array()
        .expect("it has edits")
        .iter()
        .map(|edit| once(edit[0].as_str().unwrap(), edit[1].as_str().unwrap()))
        .collect();
    let both = replace(case["file"].as_str().unwrap(), &edits).unwrap();
    assert_eq!(both.text, case["expected"]);
    assert_eq!(both.replaced, 2);
}

#[test]
fn replaces_exact_text() {
    check("a b c\n", once("b", "x"), "a x c\n", 1, Found::Exact);
    check("a b a\n", all("a", "x"), "x b x\n", 2, Found::Exact);
    check("aaa", all("aa", "b"), "ba", 1, Found::Exact);
    check("a\n", once("a\n", ""), "", 1, Found::Exact);
}

#[test]
fn inserts_the_new_text_literally() {
    check("a\n", once("a", r"$& $1 \0 \n $$"), "$& $1 \\0 \\n $$\n", 1, Found::Exact);
    check(r"re(\d+)$", once(r"(\d+)$", r"(\w*)^"), r"re(\w*)^", 1, Found::Exact);
}

#[test]
fn matches_typographic_punctuation() {
    let text = "x \u{201c}it\u{2019}s\u{201d}\u{a0}\u{2014} y\u{2019}\r\n";
    let expected = "x plain y\u{2019}\r\n";
    check(text, once("\"it's\" -", "plain"), expected, 1, Found::Punctuation);
    check("it's\n", once("it\u{2019}s", "is"), "is\n", 1, Found::Punctuation);
}

#[test]
fn matches_whole_lines_with_other_trailing_blanks() {
    check("a \n b\t\nc\n", once("a\n b", "x"), "x\nc\n", 1, Found::TrailingBlanks);
    check("a\n b\nc\n", once("a  \n b\n", "x\n"), "x\nc\n", 1, Found::TrailingBlanks);
    check(
        "a \r\nb\r\na \r\nb\r\n",
        all("a\nb", "x\ny"),
        "x\r\ny\r\nx\r\ny\r\n",
        2,
        Found::TrailingBlanks,
    );
    // Parts of lines, indentation and mere similarity do not count.
    for (text, old) in [("xa \nb\n", "a\nb"), ("\ta\n", " a\n"), ("let a = 1;\n", "let b = 1;\n")] {
        assert!(replace(text, &[once(old, "x")]).is_err(), "{old}");
    }
    assert!(find_quoted("a\n  \n", " \t\n", 10).is_none());
}

#[test]
fn notes_an_inexact_match() {
    let note = |text, old| replace(text, &[once(old, "x")]).unwrap().match_note();
    assert_eq!(note("a\n", "a"), None);
    let loose = note("a \nb\n", "a\nb").unwrap();
    assert!(loose.ends_with("in blanks at the ends of lines; verify the result"), "{loose}");
    let edits = [once("it's", "a"), once("z", "y")];
    assert_eq!(replace("it\u{2019}s z", &edits).unwrap().strategy.as_str(), "punctuation");
}

#[test]
fn keeps_the_byte_order_mark() {
    check("\u{feff}a\n", once("a", "b"), "\u{feff}b\n", 1, Found::Exact);
    check("\u{feff}a\n", once("\u{feff}a", "\u{feff}b"), "\u{feff}b\n", 1, Found::Exact);
}

#[test]
fn new_lines_keep_the_replaced_line_ending() {
    check("a\nb\r\nc\r\n", once("b\nc", "x\ny\nz"), "a\nx\r\ny\r\nz\r\n", 1, Found::Exact);
    check("a\rb\r", once("a\nb", "x\ny"), "x\ry\r", 1, Found::Exact);
    check("5%\r9%\nb\n", once("5%\r9%", "x\ny"), "x\ny\nb\n", 1, Found::Exact);
    check("a\r\nb\r\n", once("\nb", "\nx"), "a\r\nx\r\n", 1, Found::Exact);
    check("a\rb\nc\n", once("a\rb", "a\nb"), "a\nb\nc\n", 1, Found::Exact);
    check("a\r\r\nb\r\r\n", once("a\r\r\n", "a\n"), "a\r\nb\r\r\n", 1, Found::Exact);
}

// F143: the first error undoes all edits.
#[test]
fn applies_edits_in_order_or_none() {
    let edits = [once("a", "b"), all("b", "c")];
    let edited = replace("a b\n", &edits).unwrap();
    assert_eq!((edited.text.as_str(), edited.replaced), ("c c\n", 3));
    let error = replace("a b\n", &[once("a", "x"), once("a", "y")]).unwrap_err();
    assert_eq!(error, EditError { edit: 2, edits: 2, fault: EditFault::NotFound(None) });
    assert!(error.to_string().starts_with("edit 2 of 2: the text to replace is not in the file"));
}

#[test]
fn rejects_edits_without_a_change() {
    check_error(
        "a\n",
        &[once("", "b")],
        "the text to replace is empty; quote the text to change, or write the whole file with \
         the tool for that",
    );
    check_error(
        "a\n",
        &[once("a\r\n", "a\n")],
        "the new text is identical to the text to replace; nothing to change",
    );
    // Reported for any text.
    check_error(
        "a\n",
        &[once("never", "b"), once("b", "b")],
        "edit 2 of 2: the new text is identical to the text to replace; nothing to change",
    );
}

// F143: reports the number of matches.
#[test]
fn an_ambiguous_quote_names_its_line_numbers() {
    check_error(
        "x\na\r\na\nb a\n",
        &[once("a", "c")],
        "the text to replace is there 3 times, from lines 2, 3, 4; quote more of the text around \
         the one that is meant, or replace all",
    );
    let many = "a\n".repeat(12);
    let error = replace(&many, &[once("a", "b")]).unwrap_err().to_string();
    assert!(error.contains("12 times, from lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …;"), "{error}");
    // Two matches that share a line count as two.
    check_error(
        "x\nx\nx\n",
        &[once("x\nx", "y")],
        "the text to replace is there in places that overlap, from lines 1, 2; quote more of the \
         text around the one that is meant",
    );
    // Overlapping matches are counted as if all of them were replaced.
    let twice = replace("aaaaa", &[once("aa", "b")]).unwrap_err().fault;
    assert_eq!(twice, EditFault::Ambiguous { count: 2, lines: vec![1, 1] });
    assert_eq!(replace("aaaaa", &[all("aa", "b")]).unwrap().replaced, 2);
    // A loose match does not decide between two exact ones, nor between two loose ones.
    assert!(replace("a \nb\na  \nb\n", &[once("a\nb", "x")]).is_err());
}

#[track_caller]
fn check_nearest(text: &str, old: &str, expected: Option<&str>) {
    assert_eq!(find_nearest(text, old).map(|near| near.to_string()).as_deref(), expected);
}

#[test]
fn shows_the_nearest_match() {
    check_nearest(
        "fn a() {\n    one();\n}\n\nfn b() {\n\ttwo();\n\tthree(1);\n}\n",
        "fn b() {\n    two();\n    three();\n}\n",
        Some(
            "closest is lines 5-8 (- as quoted, + as in the file):\n@@ -1,4 +1,4 @@\n fn b() \
             {\n-    two();\n-    three();\n+\ttwo();\n+\tthree(1);\n }",
        ),
    );
    check_nearest(
        "one\r\nlet total = sum(a, b);\r\n",
        "let total = sum(a, c);",
        Some(
            "closest is line 2 (- as quoted, + as in the file):\n@@ -1 +1 @@\n-let total = sum(a, \
             c);\n+let total = sum(a, b);",
        ),
    );
}

#[test]
fn dissimilar_text_has_no_nearest_match() {
    check_nearest("fn a() {\n}\n", "struct Unrelated {\n    long_field: u32,\n}\n", None);
    check_nearest("", "a", None);
    check_nearest("\n\n", "\n", None);
}

#[test]
fn truncates_the_nearest_match() {
    let old: String = (0..100).map(|at| format!("let value_{at} = {at};\n")).collect();
    let text = old.replace("= 5", "=  5").replace("= 6", "=  6");
    let shown = find_nearest(&text, &old).unwrap().to_string();
    assert!(shown.lines().count() <= 22, "{shown}");
    assert!(shown.ends_with("more lines of the diff]"), "{shown}");
}

/// Text with many similar lines.
fn text() -> impl Strategy<Value = String> {
    "\u{feff}?([ab '\u{2019}\u{e9}]|\r\n|\n|\r){0,30}"
}

proptest! {
    #[test]
    fn an_edit_changes_only_its_match(
        text in text(), old in text(), new in "[xy\n]{0,4}",
    ) {
        if let Ok(edited) = replace(&text, &[once(&old, &new)]) {
            let body = text.trim_start_matches('\u{feff}');
            let quoted = old.strip_prefix('\u{feff}').unwrap_or(&old);
            let skipped = text.len() - body.len();
            let places = find_quoted(body, quoted, 10).unwrap().ranges;
            prop_assert_eq!(places.len(), 1);
            prop_assert!(edited.text.starts_with(&text[..skipped + places[0].start]));
            prop_assert!(edited.text.ends_with(&body[places[0].end..]));
        }
    }

    #[test]
    fn finds_any_quote_exactly(
        text in text(), from in 0_usize..40, len in 1_usize..20,
    ) {
        let from = text.floor_char_boundary(from);
        let old = &text[from..text.floor_char_boundary(from + len)];
        if !old.trim_start_matches('\u{feff}').is_empty() {
            let edited = replace(&text, &[all(old, "NEW")]).unwrap();
            prop_assert_eq!(edited.strategy, Found::Exact);
            prop_assert!(edited.replaced > 0);
        }
    }

    #[test]
    fn crlf_stays_crlf(
        lines in prop::collection::vec("[ab ]{0,3}", 1..8),
        old in "[ab\n]{1,4}",
        new in "[xy\n]{0,4}",
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        if let Ok(edited) = replace(&text, &[all(&old, &new)]) {
            prop_assert!(!edited.text.replace("\r\n", "").contains(['\r', '\n']));
        }
    }

    #[test]
    fn nearest_match_handles_any_text(text in text(), old in text()) {
        if let Some(near) = find_nearest(&text, &old) {
            prop_assert!(near.first <= near.last);
        }
    }
}

#[test]
fn counts_all_matches() {
    let edit = QuotedEdit { old: &"ab".repeat(50_000), new: "x", replace_all: false };
    let error = replace(&"ab".repeat(500_000), &[edit]).unwrap_err();
    assert!(error.to_string().contains("is there 10 times"), "{error}");
    for old in ["a", "a\n", "a \n"] {
        let error = replace(&"a\n".repeat(3_000), &[once(old, "b")]).unwrap_err();
        assert!(error.to_string().contains("is there 3000 times"), "{error}");
    }
    // Lines that almost match everywhere.
    let old = format!("{}b", "a \n".repeat(50_000));
    let edit = QuotedEdit { old: &old, new: "x", replace_all: false };
    assert!(matches!(
        replace(&"a\n".repeat(200_000), &[edit]),
        Err(EditError { fault: EditFault::NotFound(_), .. })
    ));
}

// F143: `replace_all` means all, also of one character, and in one long line.
#[test]
fn replaces_all_matches_of_one_character() {
    for (text, places) in [("a".repeat(300_000), 300_000), ("\ta\n".repeat(2_000), 2_000)] {
        check(&text, all("a", "b"), &text.replace('a', "b"), places, Found::Exact);
    }
}

#[test]
fn limits_the_size_of_the_new_text() {
    let (text, new) = ("a".repeat(1 << 20), "b".repeat(1 << 20));
    let error = replace(&text, &[all("a", &new)]).unwrap_err();
    assert_eq!((error.edit, error.fault), (1, EditFault::TooLong));
}

// A call with expensive edits ends in bounded time.
#[test]
fn limits_the_work_of_many_edits() {
    let text = format!("a\n{}", "x".repeat(998));
    let there_and_back = [once("a", "b"), once("b", "a")];
    let edits: Vec<_> = there_and_back.into_iter().cycle().take(2_000).collect();
    let fault = |most: usize, stopped: &dyn Fn() -> bool| {
        let error = super::replace_with_budget(most, &text, &edits, stopped).unwrap_err();
        (error.edit, error.fault)
    };
    assert_eq!(
        fault(10 * (text.len() + super::COST_PER_MATCH), &|| false),
        (11, EditFault::TooExpensive)
    );
    let asked = std::cell::Cell::new(0);
    let stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    assert_eq!(fault(usize::MAX, &stopped), (4, EditFault::Cancelled));
}

// F143: with mixed line endings, unchanged lines keep theirs.
#[test]
fn unchanged_lines_keep_their_line_endings() {
    for (text, old, new, expected) in [
        ("a\r\nb\nc\rd", "a\nb\nc\rd", "a\nB\nc\rd", "a\r\nB\r\nc\rd"),
        ("a\r\nb\nc\n", "a\nb\nc\n", "a\nb\nC\n", "a\r\nb\nC\r\n"),
        ("a\nb\r\nc\r\n", "a\nb\nc\n", "A\nb\nc\n", "A\nb\r\nc\r\n"),
        ("a\nb\r\nc\n", "a\nb\nc\n", "a\nnew\nb\nc\n", "a\nnew\nb\r\nc\n"),
        ("a\r\nb\nc\n", "a\nb\nc", "a", "a\n"),
        ("a\r\nb\nb\n", "a\nb\nb", "a\nb", "a\r\nb\n"),
    ] {
        let edit = QuotedEdit { old, new, replace_all: false };
        let edited = super::replace_quoted(text, &[edit], &|| false).unwrap();
        assert_eq!(edited.text, expected, "{text:?} {new:?}");
    }
}

// F143: each replacement has a cost besides the bytes that are scanned.
#[test]
fn each_replacement_costs_budget() {
    let text = "a".repeat(1000);
    let edits: Vec<_> = (0..200)
        .map(|at| if at % 2 == 0 { ("a", "b") } else { ("b", "a") })
        .map(|(old, new)| QuotedEdit { old, new, replace_all: true })
        .collect();
    let error = super::replace_with_budget(50 * 1000, &text, &edits, &|| false).unwrap_err();
    assert_eq!((error.edit, error.fault), (3, EditFault::TooExpensive));
}

// F143: the index of a short line takes more memory than the line.
#[test]
fn limits_the_lines_of_the_new_text() {
    let text = "a".repeat(2_000_001);
    let edit = |new| {
        super::replace_quoted(&text, &[QuotedEdit { old: "a", new, replace_all: true }], &|| false)
    };
    assert_eq!(edit("\n").unwrap_err().fault, EditFault::TooLong);
    assert!(edit("b").is_ok());
}
