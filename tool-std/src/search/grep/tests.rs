//! The matches of a search, and their format.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_sdk::{CallId, ErrorKind, Session, ToolName};

use super::*;
use crate::text::MAX_BYTES;

/// A search with default arguments.
#[derive(Clone, Copy)]
struct Ask<'a> {
    pattern: &'a str,
    path: &'a str,
    include: Option<&'a str>,
    mode: &'a str,
    context: u32,
    case_insensitive: bool,
    multiline: bool,
    limit: u32,
}

fn ask(pattern: &str) -> Ask<'_> {
    Ask {
        pattern,
        path: ".",
        include: None,
        mode: "content",
        context: 0,
        case_insensitive: false,
        multiline: false,
        limit: 100,
    }
}

fn context() -> Context {
    Context::new(Session::new("t"), ToolName::from_static("grep_files"), CallId::generate())
}

/// Creates a folder whose files are the older, the later they stand in the list.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (age, (path, content)) in (1_u64..).zip(files) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }
    folder
}

async fn output(folder: &TempDir, ask: Ask<'_>, cx: &Context) -> Result<Output, ToolError> {
    grep_files(
        ask.pattern.into(),
        ask.path.into(),
        ask.include.map(Into::into),
        ask.mode.into(),
        ask.context,
        ask.case_insensitive,
        ask.multiline,
        ask.limit,
        State(Workspace::open([folder.path()]).unwrap().into()),
        cx,
    )
    .await
}

async fn text(folder: &TempDir, ask: Ask<'_>) -> String {
    output(folder, ask, &context()).await.unwrap().into_text()
}

async fn error(folder: &TempDir, ask: Ask<'_>) -> ToolError {
    output(folder, ask, &context()).await.unwrap_err()
}

#[tokio::test]
async fn the_file_changed_last_comes_first() {
    let folder =
        folder(&[("b.rs", b"fn b() {}\nfn bb() {}\n"), ("src/a.rs", b"\r\nfn a() {}\r\n")]);
    let output = output(&folder, ask("fn"), &context()).await.unwrap();
    assert_eq!(
        output.as_text(),
        "Found 3 matches in 2 files.\n\
         b.rs:\n  1: fn b() {}\n  2: fn bb() {}\nsrc/a.rs:\n  2: fn a() {}"
    );
    assert_eq!(
        output.display_data().unwrap(),
        &json!({
            "type": "search",
            "pattern": "fn",
            "matches": [
                { "file": "b.rs", "line": 1, "content": "fn b() {}" },
                { "file": "b.rs", "line": 2, "content": "fn bb() {}" },
                { "file": "src/a.rs", "line": 2, "content": "fn a() {}" },
            ],
            "truncated": false,
            "total_matches": 3,
        })
    );
}

#[tokio::test]
async fn no_match_is_not_an_error() {
    let folder = folder(&[("a", b"x")]);
    assert_eq!(text(&folder, ask("y")).await, "No matches found.");
}

#[tokio::test]
async fn supports_the_modes_files_and_count() {
    let folder = folder(&[("a", b"x\nx\n"), ("b", b"x\n"), ("c", b"")]);
    assert_eq!(text(&folder, Ask { mode: "files", ..ask("x") }).await, "Found 2 files.\na\nb");
    assert_eq!(
        text(&folder, Ask { mode: "count", ..ask("x") }).await,
        "Found 3 matches in 2 files.\na: 2\nb: 1"
    );
}

#[tokio::test]
async fn reports_the_limit_only_when_it_is_exceeded() {
    let folder = folder(&[("a", b"x1\nx2\nx3\n")]);
    assert_eq!(
        text(&folder, Ask { limit: 2, ..ask("x") }).await,
        "Found 3 matches in 1 file.\na:\n  1: x1\n  2: x2\n\
         (Showing 2 of 3 matches. Narrow the pattern or raise `limit`.)"
    );
    let all = text(&folder, Ask { limit: 3, ..ask("x") }).await;
    assert_eq!(all, "Found 3 matches in 1 file.\na:\n  1: x1\n  2: x2\n  3: x3");
}

// The newest files come first even when there are more than the limit, and the number of omitted
// ones is known.
#[tokio::test]
async fn shows_the_newest_files_and_counts_the_rest() {
    let names: Vec<String> = (0..300).map(|n| format!("{}/{n:03}", n % 7)).collect();
    let folder = folder(&names.iter().map(|n| (n.as_str(), &b"x\nx\n"[..])).collect::<Vec<_>>());
    for _ in 0..3 {
        let text = text(&folder, Ask { limit: 3, ..ask("x") }).await;
        assert_eq!(
            text,
            "Found 600 matches in 300 files.\n0/000:\n  1: x\n  2: x\n1/001:\n  1: x\n\
             (Showing 3 of 600 matches. Narrow the pattern or raise `limit`.)"
        );
        let display = output(&folder, Ask { limit: 3, ..ask("x") }, &context()).await.unwrap();
        assert_eq!(display.display_data().unwrap()["total_matches"], 600);
    }
}

// S5: a very large search stops early.
#[tokio::test]
async fn a_very_large_search_stops_at_the_limit() {
    let long = format!("x{}\n", " ".repeat(1022)).repeat(24 << 10);
    let folder = folder(&[("long", long.as_bytes())]);
    for path in [".", "long"] {
        let text = text(&folder, Ask { limit: 2, path, ..ask("x") }).await;
        assert!(text.starts_with("long:\n  1: x"), "{text}");
        assert!(text.ends_with(
            "(Stopped at 2 matches; there are more. Narrow the pattern or raise `limit`.)"
        ));
        assert_eq!(text.lines().count(), 4);
    }
}

#[tokio::test]
async fn a_limit_of_files_counts_files() {
    let folder = folder(&[("a", b"x\nx\nx\n"), ("b", b"x\n")]);
    for mode in ["files", "count"] {
        let text = text(&folder, Ask { limit: 1, mode, ..ask("x") }).await;
        assert!(text.ends_with("(Showing 1 of 2 files. Narrow the pattern or raise `limit`.)"));
        assert_eq!(text.lines().count(), 3);
    }
}

#[tokio::test]
async fn context_is_marked_and_gaps_are_shown() {
    let folder = folder(&[("a", b"1\n2\nx3\n4\n5\n6\n7\nx8\n9\n")]);
    assert_eq!(
        text(&folder, Ask { context: 1, ..ask("x") }).await,
        "Found 2 matches in 1 file.\n\
         a:\n  2- 2\n  3: x3\n  4- 4\n  --\n  7- 7\n  8: x8\n  9- 9"
    );
    assert_eq!(
        text(&folder, Ask { context: 1, limit: 1, ..ask("x") }).await,
        "Found 2 matches in 1 file.\na:\n  2- 2\n  3: x3\n  4- 4\n\
         (Showing 1 of 2 matches. Narrow the pattern or raise `limit`.)"
    );
}

// Display data: each match has its context lines.
#[tokio::test]
async fn programs_get_the_lines_around_a_match() {
    let folder = folder(&[("a", b"1\n2\nx3\n4\nx5\n6\n7\n8\n9\nx10\n")]);
    let shown = async |lines| {
        let ask = Ask { context: lines, ..ask("x") };
        let output = output(&folder, ask, &context()).await.unwrap();
        output.display_data().unwrap()["matches"].clone()
    };
    let around = |numbers: &[u64], of: &Value| {
        let lines: Vec<_> = of["context"].as_array().unwrap().iter().collect();
        assert!(
            lines.iter().all(|line| line["content"].as_str() == Some(&*line["line"].to_string())),
            "{of}"
        );
        assert_eq!(lines.iter().map(|line| line["line"].clone()).collect::<Vec<_>>(), numbers);
    };
    let found = shown(2).await;
    for (at, numbers) in [(0, &[1, 2, 4][..]), (1, &[4, 6, 7]), (2, &[8, 9])] {
        around(numbers, &found[at]);
    }
    assert_eq!(shown(0).await[0], json!({ "file": "a", "line": 3, "content": "x3" }));
}

#[tokio::test]
async fn ignored_hidden_and_binary_files() {
    let folder = folder(&[
        (".gitignore", b"target\n*.log\n"),
        (".ignore", b"vendor\n"),
        (".hidden", b"x"),
        (".git/config", b"x"),
        ("a.log", b"x"),
        ("binary", b"x\n\0"),
        ("src/target/out", b"x"),
        ("vendor/lib", b"x"),
        ("src/.git", b"x"),
        ("src/main", b"x"),
    ]);
    assert_eq!(
        text(&folder, Ask { mode: "files", ..ask("x") }).await,
        "Found 2 files.\n.hidden\nsrc/main"
    );
    // The ignore files above the start count as well.
    assert_eq!(
        text(&folder, Ask { path: "src", mode: "files", ..ask("x") }).await,
        "Found 1 file.\nsrc/main"
    );
}

// A file that only begins like text is reported, and can be searched by name.
#[tokio::test]
async fn reports_text_files_with_nul_bytes() {
    let pad = "some line\n".repeat(1000);
    let log = format!("{pad}x1\n\0\nx2\n");
    // More than one buffer, so that the end is not inspected.
    let long = format!("x1\n{}\0\nx2\n", pad.repeat(120));
    let none = format!("{pad}\0\n");
    let files = [("log", log), ("long", long), ("none", none), ("plain", "x3\n".to_owned())];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_bytes()));
    let folder = folder(&files);
    let told = "NUL bytes left out, or searched up to the first; name one as `path` to search \
                all as text.)";
    for (mode, found) in [
        ("content", "Found 2 matches in 2 files.\nlong:\n  1: x1\nplain:\n  1: x3\n"),
        ("count", "Found 2 matches in 2 files.\nlong: 1\nplain: 1\n"),
    ] {
        let text = text(&folder, Ask { mode, ..ask("x[0-9]") }).await;
        assert_eq!(text, format!("{found}(2 files with {told}"));
    }
    assert_eq!(
        text(&folder, Ask { path: "log", ..ask("x[0-9]") }).await,
        "Found 2 matches in 1 file.\nlog:\n  1001: x1\n  1003: x2"
    );
    let text = text(&folder, Ask { path: "long", ..ask("x2") }).await;
    assert_eq!(text, "Found 1 match in 1 file.\nlong:\n  120003: x2");
}

#[tokio::test]
async fn explains_a_line_that_is_too_long() {
    let folder = folder(&[("holes", "some line\n".repeat(1000).as_bytes())]);
    let file = File::options().write(true).open(folder.path().join("holes")).unwrap();
    file.set_len(2 * MAX_LINE as u64).unwrap();
    let error = error(&folder, Ask { path: "holes", ..ask("x") }).await;
    assert!(error.message().ends_with("a line of it has over 64 MiB"), "{error}");
}

// RX1: the size of a multiline search is limited, and omitted files are reported.
#[tokio::test]
async fn skips_large_files_in_multiline_searches() {
    let most = "some line\n".repeat(MAX_MULTILINE / 10);
    let over = format!("begin\nend\n{most}");
    let folder =
        folder(&[("over", over.as_bytes()), ("most", most.as_bytes()), ("a", b"begin\nend\n")]);
    let multiline = true;
    let ask = |path| Ask { multiline, path, mode: "files", ..ask("begin\\s+end") };
    assert_eq!(
        text(&folder, ask(".")).await,
        "Found 1 file.\na\n(1 file over 4 MiB is too large for `multiline`, and left out; \
         search without it.)"
    );
    let told = error(&folder, ask("over")).await;
    assert_eq!(told.message(), "`over` is too large for `multiline`: over 4 MiB");
    assert_eq!(text(&folder, ask("most")).await, "No matches found.");
    let lines = Ask { multiline: false, ..ask("over") };
    assert_eq!(text(&folder, Ask { pattern: "begin", ..lines }).await, "Found 1 file.\nover");
}

#[tokio::test]
async fn rejects_a_named_binary_file() {
    let folder = folder(&[("binary", b"x\0")]);
    let error = error(&folder, Ask { path: "binary", ..ask("x") }).await;
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.message(), "`binary` is a binary file");
    assert_eq!(text(&folder, ask("x")).await, "No matches found.");
}

#[tokio::test]
async fn searches_a_single_file() {
    let folder = folder(&[(".gitignore", b"*.log\n"), ("logs/a.log", b"x\n"), ("b", b"x\n")]);
    assert_eq!(
        text(&folder, Ask { path: "logs/a.log", ..ask("x") }).await,
        "Found 1 match in 1 file.\nlogs/a.log:\n  1: x"
    );
}

#[tokio::test]
async fn globs_select_files() {
    let folder = folder(&[("a.rs", b"x"), ("src/b.rs", b"x"), ("src/c.ts", b"x"), ("d.tsx", b"x")]);
    for (include, expected) in [
        ("*.rs", &["a.rs", "src/b.rs"][..]),
        ("*.{ts,tsx}", &["src/c.ts", "d.tsx"]),
        ("src/*", &["src/b.rs", "src/c.ts"]),
        ("./src/*.rs", &["src/b.rs"]),
        ("**/*.rs", &["a.rs", "src/b.rs"]),
        ("/*.rs", &["a.rs"]),
        ("[ab].rs", &["a.rs", "src/b.rs"]),
    ] {
        let text = text(&folder, Ask { include: Some(include), mode: "files", ..ask("x") }).await;
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected, "{include}");
    }
    let error = error(&folder, Ask { include: Some("*.{rs"), ..ask("x") }).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().starts_with("`include`: "), "{error}");
    let nested = format!("{}x{}", "{".repeat(400), "}".repeat(400));
    let error = self::error(&folder, Ask { include: Some(&nested), ..ask("x") }).await;
    assert_eq!(error.message(), "`include`: it is nested too deeply, or too long");
}

#[tokio::test]
async fn case_and_line_ends() {
    let folder = folder(&[("a", b"One;\r\ntwo\n")]);
    let found = |text: String| text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(found(text(&folder, ask("one")).await), [""; 0]);
    let case_insensitive = true;
    assert_eq!(found(text(&folder, Ask { case_insensitive, ..ask("one") }).await), ["  1: One;"]);
    // `$` matches before either kind of line ending.
    assert_eq!(found(text(&folder, ask(";$")).await), ["  1: One;"]);
    assert_eq!(found(text(&folder, ask("^two$")).await), ["  2: two"]);
}

#[tokio::test]
async fn a_match_may_span_lines() {
    let folder = folder(&[("a", b"0\nbegin\nmiddle\nend\n5\n")]);
    assert_eq!(
        text(&folder, Ask { multiline: true, context: 1, ..ask("begin.*end") }).await,
        "Found 1 match in 1 file.\n\
         a:\n  1- 0\n  2: begin\n  3: middle\n  4: end\n  5- 5"
    );
    assert_eq!(text(&folder, ask("begin.*end")).await, "No matches found.");
    // Matches in adjacent lines count the same as without it.
    for (pattern, limit, expected) in [
        ("[a-z]+", 100, "Found 3 matches in 1 file.\na:\n  2: begin\n  3: middle\n  4: end"),
        (
            "[a-z]+",
            2,
            "Found 3 matches in 1 file.\na:\n  2: begin\n  3: middle\n\
             (Showing 2 of 3 matches. Narrow the pattern or raise `limit`.)",
        ),
        (
            "begin\\nm|end\\n5",
            100,
            "Found 2 matches in 1 file.\na:\n  2: begin\n  3: middle\n  4: end\n  5: 5",
        ),
    ] {
        let multiline = true;
        assert_eq!(text(&folder, Ask { multiline, limit, ..ask(pattern) }).await, expected);
        let counted = text(&folder, Ask { multiline, mode: "count", ..ask(pattern) }).await;
        assert_eq!(counted.lines().next(), expected.lines().next(), "{pattern}");
    }
    let error = error(&folder, ask("begin\\nmiddle")).await;
    assert_eq!(error.suggestion(), Some("set `multiline` to search across line ends"));
}

#[tokio::test]
async fn explains_an_invalid_pattern() {
    let folder = folder(&[("a", b"x")]);
    let error = error(&folder, ask("fn main(")).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    let shown = "`pattern`: regex parse error:\n    fn main(\n           ^\nerror: unclosed group";
    assert_eq!(error.message(), shown);
}

#[tokio::test]
async fn hints_at_a_replacement_for_a_rejected_pattern() {
    let folder = folder(&[("a", b"x")]);
    let nested = format!("{}x{}", "(".repeat(100), ")".repeat(100));
    for (pattern, says) in [
        ("fn main(", "put `\\` before it"),
        ("look-around(", "put `\\` before it"),
        ("a\\nb", "set `multiline`"),
        ("\\w{10000}", "fewer groups"),
        (&nested, "fewer groups"),
        ("(?!a)b", "a simpler pattern"),
        ("(a)\\1", "a simpler pattern"),
    ] {
        let error = error(&folder, ask(pattern)).await;
        assert!(error.suggestion().unwrap().contains(says), "{pattern}: {error}");
    }
}

#[tokio::test]
async fn rejects_an_expensive_pattern() {
    let folder = folder(&[("a", b"x")]);
    let nested = format!("{}x{}", "(".repeat(100), ")".repeat(100));
    let long = "ä".repeat(MAX_PATTERN / 2 + 1);
    for pattern in ["", "a)(b", "(x{1000}){1000}", "\\w{10000}", &nested, &long] {
        assert_eq!(error(&folder, ask(pattern)).await.kind(), ErrorKind::InvalidArgs, "{pattern}");
    }
}

#[tokio::test]
async fn long_lines_show_the_match() {
    let line = format!("{}needle{}", "a".repeat(5000), "b".repeat(5000));
    let folder = folder(&[("a", line.as_bytes())]);
    let text = text(&folder, ask("needle")).await;
    let shown = text.lines().last().unwrap().strip_prefix("  1: …").unwrap();
    assert!(shown.ends_with("b…") && shown.contains("aneedleb"), "{shown}");
    assert_eq!(shown.chars().count(), 501);
}

#[tokio::test]
async fn truncates_the_output_at_max_bytes() {
    let line = format!("x{}\n", "y".repeat(398));
    let folder = folder(&[("a", line.repeat(1000).as_bytes()), ("b", b"x\n")]);
    let text = text(&folder, Ask { limit: 2000, ..ask("x") }).await;
    assert!(text.len() < MAX_BYTES + 200);
    assert!(text.starts_with("Found 1001 matches in 2 files.\na:\n  1: xyy"));
    let footer = text.lines().last().unwrap();
    assert!(footer.starts_with("(Output capped at 50 KiB: showing 12"), "{footer}");
    assert!(footer.ends_with(" of 1001 matches. Narrow the pattern or the path.)"), "{footer}");
}

#[tokio::test]
async fn denies_outside_paths_and_reports_missing_ones() {
    let folder = folder(&[]);
    for (path, kind) in [
        ("/etc", ErrorKind::Denied),
        ("../", ErrorKind::Denied),
        ("nope", ErrorKind::NotFound),
        ("", ErrorKind::InvalidArgs),
    ] {
        assert_eq!(error(&folder, Ask { path, ..ask("x") }).await.kind(), kind, "{path}");
    }
    let error = error(&folder, Ask { mode: "lines", ..ask("x") }).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
}

#[tokio::test]
async fn grep_files_fails_after_the_timeout() {
    let folder = folder(&[("a", b"x")]);
    let cx = context().with_timeout(Some(Duration::ZERO));
    let result = output(&folder, ask("x"), &cx).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Aborted);
}

#[tokio::test]
async fn results_are_the_same_every_time() {
    let names: Vec<_> = (0..200).map(|n| format!("d{}/f{n:03}", n % 7)).collect();
    let folder = folder(&names.iter().map(|n| (n.as_str(), &b"x\n"[..])).collect::<Vec<_>>());
    let expected = format!("Found 200 files.\n{}", names.join("\n"));
    for _ in 0..5 {
        assert_eq!(text(&folder, Ask { mode: "files", limit: 200, ..ask("x") }).await, expected);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed() {
    let (folder, outside) = (folder(&[("real", b"x")]), folder(&[("secret", b"x")]));
    for (target, link) in [("real", "in"), (outside.path().to_str().unwrap(), "out")] {
        std::os::unix::fs::symlink(target, folder.path().join(link)).unwrap();
    }
    assert_eq!(text(&folder, Ask { mode: "files", ..ask("x") }).await, "Found 1 file.\nreal");
    for path in ["out", "out/secret"] {
        let error = error(&folder, Ask { path, ..ask("x") }).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{path}");
    }
}
