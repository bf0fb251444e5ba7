//! Fixtures of other implementations. `tests/fixtures` names their sources.

use serde_json::{Value, json};

use super::{Files, hunks, parse, run};
use crate::patch::line_matcher::LineMatcher;
use crate::patch::{ChunkLine, MatchBudget, PatchHunk, UpdateChunk, parser, shell_wrapper};
use crate::text::lines::SourceLine;

/// Cases with another result here: the reason, and the text that is written. The error texts of the
/// fixtures are compared in the tests of the tool; here only the presence of an error counts.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("add/update/delete", "every added line has its end", "created\n"),
    (
        "missing final newline",
        "a line that the patch writes has its end",
        "first line\nsecond line\n",
    ),
    ("add overwrites", "every added line has its end", "new content\n"),
    ("add with explicit newline", "every added line has its end", "new content\n\n"),
    ("cat heredoc", "every added line has its end", "heredoc content\n"),
    ("bare heredoc", "every added line has its end", "heredoc content\n"),
];

fn cases(text: &str) -> Vec<Value> {
    let fixture: Value = serde_json::from_str(text).expect("it is JSON");
    fixture["cases"].as_array().expect("it has cases").clone()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn chunk_json(chunk: &UpdateChunk<'_>) -> Value {
    let side = |of: fn(ChunkLine<'_>) -> Option<&str>| -> Vec<String> {
        chunk.lines.iter().filter_map(|line| of(*line).map(str::to_owned)).collect()
    };
    json!({
        "change_context": chunk.contexts.last(),
        "old_lines": side(|line| line.old_text()),
        "new_lines": side(|line| line.new_text()),
        "is_end_of_file": chunk.end_of_file,
    })
}

fn hunk_json(hunk: &PatchHunk<'_>) -> Value {
    match hunk {
        PatchHunk::Add { path, content } => {
            json!({ "op": "add", "path": path, "contents": content })
        }
        PatchHunk::Delete { path } => json!({ "op": "delete", "path": path }),
        PatchHunk::Update { path, move_to, chunks } => json!({
            "op": "update",
            "path": path,
            "move_path": move_to,
            "chunks": chunks.iter().map(chunk_json).collect::<Vec<_>>(),
        }),
    }
}

#[test]
fn parses_the_fixtures() {
    let cases = cases(include_str!("../../../tests/fixtures/codex-apply-patch-parser/cases.json"));
    assert_eq!(cases.len(), 40);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let mut text = case["patch"].as_str().unwrap().to_owned();
        // A streaming parser stops at the mistake, before the end.
        if case["mode"] == "streaming" && !text.trim_end().ends_with("*** End Patch") {
            text.push_str("*** End Patch");
        }
        let found = if case["mode"] == "lenient" { parse(&text) } else { parser::parse(&text) };
        match found {
            Ok(patch) => {
                let hunks: Vec<_> = hunks(&patch).iter().map(hunk_json).collect();
                assert_eq!(json!(hunks), case["hunks"], "{name}");
                assert_eq!(json!(patch.environment), case["environment_id"], "{name}");
            }
            Err(error) => {
                assert_eq!(json!(error.message), case["error"], "{name}");
                assert_eq!(json!(error.line), case["error_line"], "{name}");
            }
        }
        if let Some(inner) = case["effective_patch"].as_str() {
            assert_eq!(shell_wrapper::strip_shell_wrapper(&text), inner, "{name}");
        }
    }
}

#[test]
fn finds_lines_as_in_the_fixtures() {
    let cases = cases(include_str!("../../../tests/fixtures/codex-apply-patch-seek/cases.json"));
    for case in cases {
        let (wanted, from) = (texts(&case["pattern"]), case["start"].as_u64().unwrap() as usize);
        let at_end = case["eof"].as_bool().unwrap();
        let effort = MatchBudget::default();
        let lines = texts(&case["lines"]).into_iter().map(|text| SourceLine { text, whole: text });
        let lines: Vec<_> = lines.collect();
        let found = LineMatcher::new(&lines, &effort).find_lines(&wanted, from, at_end);
        assert_eq!(json!(found.map(|(at, _)| at)), case["index"], "{}", case["name"]);
    }
}

/// The other tool strips the whole command line; this one strips only the heredoc and its command,
/// without a `cd`.
#[test]
fn strips_wrappers_as_in_the_fixtures() {
    let text = include_str!("../../../tests/fixtures/codex-apply-patch-invocation/cases.json");
    let fixture: Value = serde_json::from_str(text).unwrap();
    let mut taken = 0;
    for case in cases(text) {
        let (name, arguments) = (&case["name"], texts(&case["argv"]));
        let is_patch = case["result"] == "patch" && case["workdir"].is_null();
        match (parse(arguments.last().unwrap()), is_patch) {
            (Ok(patch), true) => {
                let hunks: Vec<_> = hunks(&patch).iter().map(hunk_json).collect();
                assert_eq!(json!(hunks), fixture["expected_hunks_when_patch"], "{name}");
                taken += 1;
            }
            (found, is_patch) => {
                let is_bare = case["result"] == "error_implicit_invocation";
                assert_eq!(found.is_ok(), is_patch || is_bare, "{name}");
            }
        }
    }
    assert!(taken > 5, "{taken}");
}

#[test]
fn applies_the_fixtures() {
    let cases = cases(include_str!("../../../tests/fixtures/opencode-apply-patch/cases.json"));
    assert_eq!(cases.len(), 28);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let files: Files = serde_json::from_value(case["files"].clone()).unwrap();
        let found = run(files, case["patch"].as_str().unwrap());
        if !case["error_contains"].is_null() {
            assert!(found.is_err(), "{name}: {found:?}");
            continue;
        }
        let mut expected: Files = serde_json::from_value(case["expected_files"].clone()).unwrap();
        if let Some((_, why, text)) = DIFFERENT.iter().find(|(case, ..)| *case == name) {
            let other =
                expected.values_mut().find(|found| *found == text.strip_suffix('\n').unwrap());
            *other.unwrap_or_else(|| panic!("{name}: {why}")) = (*text).to_owned();
        }
        assert_eq!(found, Ok(expected), "{name}");
    }
}
