//! Cases that the fixtures of other implementations leave open.

use super::{apply, check, chunks, patch};
use crate::patch::{ApplyError, MatchBudget, PatchSection, VerifyError, apply_chunks, parse};

#[track_caller]
fn check_pass(old: &str, body: &str, expected: &str) {
    assert_eq!(apply(old, body).map(|(_, pass)| pass.as_str()), Ok(expected));
}

// F142, F143: line endings and byte order mark are kept.
#[test]
fn keeps_line_endings() {
    check("a\r\nb\r\n", "@@\n a\n-b\n+B\n+C", "a\r\nB\r\nC\r\n");
    check("a\r\nb\nc\r", "@@\n a\n b\n c\n+d", "a\r\nb\nc\rd\r\n");
    check("a\rb\rc", "@@\n-b\n+B", "a\rB\rc");
    check("5%\r9%\nb\n", "@@\n-b\n+B", "5%\r9%\nB\n");
    check("\u{feff}a\r\nb", "@@\n-a\n+A", "\u{feff}A\r\nb");
}

#[test]
fn keeps_a_missing_last_line_ending_until_it_is_patched() {
    check("a\nb", "@@\n-a\n+A\n b", "A\nb");
    check("a\nb", "@@\n-b\n+B", "a\nB\n");
    check("a\nb", "@@\n b\n+c", "a\nb\nc\n");
    check("a\nb", "@@\n+c", "a\nb\nc\n");
    check("a\nb", "@@\n-b", "a\n");
    check("a", "@@\n-a", "");
    check("", "@@\n+a", "a\n");
}

#[test]
fn context_lines_keep_their_bytes_in_every_pass() {
    check("\u{201c}a\u{201d}  \n\tb\n", "@@\n \"a\"\n-b\n+c", "\u{201c}a\u{201d}  \nc\n");
}

#[test]
fn reports_the_match_pass() {
    check_pass("a\n", "@@\n-a\n+b", "exact");
    check_pass("a \n", "@@\n-a\n+b", "trailing_blanks");
    check_pass("\ta\n", "@@\n-a\n+b", "blanks");
    check_pass("it\u{2019}s\n", "@@\n-it's\n+b", "punctuation");
    check_pass("cafe\u{301}\n", "@@\n-caf\u{e9}\n+b", "canonical");
    check_pass("a\nb \n", "@@ a\n-b\n+c", "trailing_blanks");
    assert!(apply("x\u{b2}\n", "@@\n-x2\n+b").is_err());
}

#[test]
fn exact_match_below_wins_over_loose_match_above() {
    check("  a\na\n", "@@\n-a\n+b", "  a\nb\n");
}

#[test]
fn chunks_go_from_top_to_bottom() {
    check("a\nx\na\n", "@@\n x\n@@\n-a\n+b", "a\nx\nb\n");
    check("a\nb\n", "@@\n+end\n@@\n-b\n+B", "a\nB\nend\n");
    assert!(apply("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A").is_err());
    check("fn a\nx\nfn b\nx\n", "@@ fn b\n-x\n+y", "fn a\nx\nfn b\ny\n");
}

#[test]
fn several_context_lines_locate_a_chunk() {
    let old = "class A\n fn f\n  x\nclass B\n fn f\n  x\n";
    let new = "class A\n fn f\n  x\nclass B\n fn f\n  y\n";
    for body in [
        "@@ class B\n@@  fn f\n-  x\n+  y",
        "@@ class B\n@@  fn f\n@@\n-  x\n+  y",
        "@@ class A\n@@ class B\n   x\n@@\n+tail",
    ] {
        let new = if body.ends_with("tail") { format!("{old}tail\n") } else { new.to_owned() };
        check(old, body, &new);
    }
    check_pass(old, "@@ class B \n@@  fn f\n-  x\n+  y", "trailing_blanks");
    assert!(apply(old, "@@  fn f\n@@ class B\n@@ class A\n-  x\n+  y").is_err());
    // A chunk without a quoted line has no position.
    assert!(parse(&patch("@@\n@@\n-a")).is_err());
}

#[test]
fn end_of_file_chunks_match_only_at_the_end() {
    check("a\nb\na\n", "@@\n-a\n+z\n*** End of File", "a\nb\nz\n");
    assert!(apply("a\nb\n", "@@\n-a\n+z\n*** End of File").is_err());
    // The cursor is below the line.
    assert!(apply("a\nb\n", "@@\n b\n@@\n-a\n-b\n+z\n*** End of File").is_err());
}

#[test]
fn ignores_a_trailing_empty_line_of_a_chunk() {
    check("a\nb\n", "@@\n-b\n+c\n", "a\nc\n");
    check("a\n", "@@\n a\n \n+b", "a\n\nb\n");
    check("a\n", "@@\n-a\n-\n+b\n+", "b\n");
    check("a\n\nb\n", "@@\n-a\n+c\n", "c\n\nb\n");
}

#[test]
fn errors_name_the_missing_lines() {
    let error = |old, body| apply(old, body).unwrap_err().to_string();
    assert_eq!(error("a\n", "@@ fn b\n-x"), "Failed to find context 'fn b' in f");
    assert_eq!(error("a\n", "@@\n-x\n y\n+z"), "Failed to find expected lines in f:\nx\ny");
}

#[test]
fn parse_errors_name_their_line() {
    let error = parse(&patch("@@\n-a\nb")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Invalid patch hunk on line 5: Expected update hunk to start with a @@ context marker, \
         got: 'b'"
    );
    let error = parse("").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Invalid patch: The first line of the patch must be '*** Begin Patch'"
    );
}

#[test]
fn blank_lines_around_chunks_are_skipped() {
    check("a\n", "\n@@ \n-a\n+b\n*** End of File\n \n", "b\n");
}

#[track_caller]
fn check_verify(hunks: &str, expected: Result<(), VerifyError>) {
    let text = format!("*** Begin Patch\n{hunks}*** End Patch");
    assert_eq!(parse(&text).expect("it can be read").verify(), expected);
}

#[test]
fn rejects_two_sections_of_one_file() {
    let twice = |path: &str| Err(VerifyError::DuplicatePath(path.to_owned()));
    check_verify("*** Add File: a\n+x\n*** Delete File: b\n", Ok(()));
    check_verify("*** Add File: a\n+x\n*** Delete File: a\n", twice("a"));
    check_verify("*** Add File: d/a\n*** Delete File: ./d//x/../a\n", twice("./d//x/../a"));
    check_verify("*** Add File: a\n*** Update File: b\n*** Move to: a\n@@\n-x\n", twice("a"));
    check_verify("", Err(VerifyError::EmptyPatch));
}

#[test]
fn keeps_a_file_that_moves_to_itself() {
    let text = "*** Begin Patch\n*** Update File: a\n*** Move to: ./a\n@@\n-x\n*** End Patch";
    let patch = parse(text).unwrap();
    assert!(matches!(patch.sections[..], [PatchSection { move_to: None, is_removed: false, .. }]));
    assert_eq!(patch.verify(), Ok(()));
}

#[test]
fn strips_shell_wrappers() {
    let bare = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    for (head, tail) in [
        ("<<EOF\n", "\nEOF"),
        ("cat <<'EOF'\n", "\nEOF\n"),
        ("apply_patch << \"X\"\r\n", "\r\nX\r\n"),
        ("\n  ", "\n\n"),
    ] {
        let text = format!("{head}{bare}{tail}");
        assert_eq!(parse(&text), parse(bare), "{text}");
    }
}

#[test]
fn rejects_a_script_with_other_commands() {
    let text = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    for (head, tail) in [
        ("apply_patch <<E | tee log\n", "\nE"),
        ("apply_patch <<E\n", "\nE\nrm a"),
        ("apply_patch <<E\n", ""),
        ("apply_patch2 <<E\n", "\nE"),
        ("cd a && apply_patch <<E\n", "\nE"),
        ("echo 'a", "'"),
    ] {
        let script = format!("{head}{text}{tail}");
        assert!(parse(&script).is_err(), "{script}");
    }
}

// A text that repeats itself, with a quote that almost matches everywhere.
#[test]
fn limits_the_work_for_repetitive_text() {
    let (old, text) = ("a\n".repeat(10_000), patch(&format!("@@\n{}-b", " a\n".repeat(1000))));
    let after = |effort| {
        apply_chunks(&old, &chunks(&text), "f", &MatchBudget::with_lines(effort)).map(|_| ())
    };
    let error = after(1_000_000).unwrap_err();
    assert_eq!(error, ApplyError::BudgetExhausted { path: "f".to_owned() });
    assert!(error.to_string().ends_with("such that are there once"), "{error}");
    assert!(matches!(after(100_000_000), Err(ApplyError::LinesNotFound { .. })));
}
