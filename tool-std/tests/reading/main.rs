//! The tools that read and search, called like by a host: on real folders, through the whole
//! pipeline.

#![cfg(all(feature = "fs", feature = "search"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod denied;

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use tool_sdk::testing::Harness;
use tool_sdk::{
    ApprovalResponse, Call, ErrorKind, Mode, Outcome, Pipeline, Registry, Rule, ScriptedApprover,
    Session, Workspace, prepare_outputs, tools,
};
use tool_std::fs::{LineNumbering, list_dir, read_file};
use tool_std::search::{glob_files, grep_files};

/// A folder whose files are the older, the later they stand in the list.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (age, (path, content)) in (1_u64..).zip(files) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        written_ago(&path, age);
    }
    folder
}

fn written_ago(path: &Path, seconds: u64) {
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - seconds);
    File::options().append(true).open(path).unwrap().set_modified(modified).unwrap();
}

fn harness(folder: &TempDir) -> Harness {
    Harness::new(tools![read_file, list_dir, glob_files, grep_files])
        .lend(Workspace::open([folder.path()]).unwrap())
}

async fn text(harness: &Harness, tool: &str, args: serde_json::Value) -> String {
    harness.ok(tool, args.to_string()).await.into_text()
}

// F97: the hint for the rest of a long result names the tool that reads files, not the one for
// folders.
#[tokio::test]
async fn truncated_output_is_saved_to_a_file() {
    let (folder, outputs) = (folder(&[("a", &"line\n".repeat(100))]), TempDir::new().unwrap());
    let registry = Registry::builder().add(tools![read_file, list_dir, glob_files, grep_files]);
    let pipeline = Pipeline::new(registry.build().unwrap()).output_dir(outputs.path());
    let lent = prepare_outputs(outputs.path(), "test").unwrap();
    let workspace = || Workspace::open([folder.path()]).unwrap();
    let ways = "page through it with `read_file` (offset, limit) or search it with `grep_files`]";
    // The hint names no tool that could not open the file.
    for (workspace, is_told) in
        [(workspace().with_read_only(lent).unwrap(), true), (workspace(), false)]
    {
        let session = Session::new("test").with_service(workspace);
        let call = Call::new("grep_files", json!({ "pattern": "line" }).to_string());
        let outcome = pipeline.call(&session, call.max_output(300)).await;
        assert_eq!(outcome.text().contains(ways), is_told, "{}", outcome.text());
    }
}

// F146
#[tokio::test]
async fn files_are_found_by_name_the_newest_first() {
    let folder = folder(&[
        ("b.rs", ""),
        ("src/deep/a.rs", ""),
        ("src/c.ts", ""),
        (".hidden.rs", ""),
        ("a.log", ""),
        (".gitignore", "*.log\n/target\n"),
        ("target/x.rs", ""),
        (".git/x.rs", ""),
    ]);
    let harness = harness(&folder);
    let at = |glob: &str| folder.path().join(glob);
    for (args, expected) in [
        (json!({ "pattern": "*.rs" }), "b.rs\nsrc/deep/a.rs\n.hidden.rs"),
        (json!({ "pattern": "src/**" }), "src/deep/a.rs\nsrc/c.ts"),
        (json!({ "pattern": "**/*.ts" }), "src/c.ts"),
        (json!({ "pattern": "./deep/*", "path": "src" }), "src/deep/a.rs"),
        (json!({ "pattern": "*.log" }), "No files found."),
        (json!({ "pattern": at("*.rs") }), "b.rs\n.hidden.rs"),
        (json!({ "pattern": at("src/**/*.rs") }), "src/deep/a.rs"),
        (json!({ "pattern": at("src/c.ts"), "path": "src" }), "src/c.ts"),
        (json!({ "pattern": "/deep/*", "path": "src" }), "src/deep/a.rs"),
        (json!({ "pattern": "*.rs", "path": "target" }), "target/x.rs"),
        (
            json!({ "pattern": "*.rs", "limit": 2 }),
            "b.rs\nsrc/deep/a.rs\n(Showing 2 of 3 files. Narrow the pattern or raise `limit`.)",
        ),
    ] {
        assert_eq!(text(&harness, "glob_files", args.clone()).await, expected, "{args}");
    }
    for (args, kind) in [
        (json!({ "pattern": "*", "path": "nope" }), ErrorKind::NotFound),
        (json!({ "pattern": "*.{rs" }), ErrorKind::InvalidArgs),
        (json!({ "pattern": "" }), ErrorKind::InvalidArgs),
        (json!({ "pattern": "../*" }), ErrorKind::InvalidArgs),
        (json!({ "pattern": "src/../../*", "path": "src" }), ErrorKind::InvalidArgs),
        (json!({ "pattern": at("*.rs"), "path": "src" }), ErrorKind::InvalidArgs),
    ] {
        assert_eq!(harness.error("glob_files", args.to_string()).await.kind(), kind, "{args}");
    }
}

// F146: with any number of files the same ones are shown every time, whichever thread finds them.
#[tokio::test]
async fn shows_the_newest_of_many_files() {
    let names: Vec<_> = (0..3000).map(|n| format!("d{}/e{}/f{n:04}", n % 61, n % 7)).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    let folder = folder(&files);
    let harness = harness(&folder);
    let expected = format!(
        "{}\n(Showing 50 of 3000 files. Narrow the pattern or raise `limit`.)",
        names[..50].join("\n")
    );
    for _ in 0..3 {
        let found = text(&harness, "glob_files", json!({ "pattern": "f*", "limit": 50 })).await;
        assert_eq!(found, expected);
    }
    let counted = json!({ "pattern": "x", "output_mode": "files", "limit": 2000, "path": "d1" });
    assert!(text(&harness, "grep_files", counted).await.starts_with("Found 50 files."));
}

// F145: ignore files of parent folders count, those of an outer repository do not.
#[tokio::test]
async fn ignore_files_count_from_the_workspace_down() {
    let folder = folder(&[
        (".gitignore", "*.tmp\n/a/skip/\n"),
        (".git/info/exclude", "*.local\n"),
        ("a/b/x.tmp", "x"),
        ("a/b/x.local", "x"),
        ("a/b/x", "x"),
        ("a/skip/x", "x"),
        ("a/.ignore", "!x.tmp\n"),
        ("a/inner/.git/HEAD", ""),
        ("a/inner/y.local", "x"),
        ("a/tree/.git", "gitdir: ../../.git/worktrees/tree\n"),
        ("a/tree/z.local", "x"),
    ]);
    let harness = harness(&folder);
    for path in [".", "a", "./a/"] {
        let args = json!({ "pattern": "^x$", "path": path, "output_mode": "files" });
        assert_eq!(
            text(&harness, "grep_files", args).await,
            "Found 4 files.\na/b/x.tmp\na/b/x\na/inner/y.local\na/tree/z.local",
            "{path}"
        );
    }
    let args = json!({ "pattern": "*", "path": "a/tree" });
    assert_eq!(text(&harness, "glob_files", args).await, "a/tree/z.local");
}

// F145: a search shows at most its limit, and says how much it omitted.
#[tokio::test]
async fn a_search_ends_at_its_limit() {
    let names: Vec<_> = (0..500).map(|n| format!("f{n}")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "x\nx\n")).collect();
    let folder = folder(&files);
    let harness = harness(&folder);
    let output = harness.ok("grep_files", json!({ "pattern": "x", "limit": 10 }).to_string()).await;
    let matches = output.display_data().unwrap()["matches"].as_array().unwrap().len();
    assert_eq!(matches, 10);
    assert!(
        output
            .as_text()
            .ends_with("(Showing 10 of 1000 matches. Narrow the pattern or raise `limit`.)")
    );
}

// F145: large files and other encodings are searched like small ones.
#[tokio::test]
async fn size_and_encoding_do_not_matter() {
    let folder = folder(&[("small", "needle\n")]);
    let large = format!("{}needle\n", "some line of text\n".repeat(100_000));
    fs::write(folder.path().join("large"), &large).unwrap();
    let utf16: Vec<u8> = "\u{feff}needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(folder.path().join("utf16"), utf16).unwrap();
    for (name, at) in [("binary-early", 10), ("binary-late", 500_000), ("binary-large", 1_500_000)]
    {
        let mut bytes = large.clone().into_bytes();
        bytes.truncate(bytes.len().min(at + 200_000));
        bytes[at] = 0;
        bytes.extend_from_slice(b"needle\n");
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    // Bytes after the first megabyte do not make a file binary, in any mode.
    let (start, rest) = large.split_at(1_000);
    let late = format!("{start}\nneedle\n{}\0{rest}", &rest[..1 << 20]);
    fs::write(folder.path().join("text-then-binary"), late).unwrap();
    let harness = harness(&folder);
    // The first match of a file is enough to list it; the rest is not read.
    for (mode, in_part) in [("count", 3), ("files", 2), ("content", 3)] {
        let args = json!({ "pattern": "needle", "output_mode": mode });
        let found = text(&harness, "grep_files", args).await;
        let (found, note) = found.rsplit_once('\n').unwrap();
        assert!(note.starts_with(&format!("({in_part} files with NUL bytes ")), "{mode}: {note}");
        let name = |line: &str| line.split(':').next().map(str::to_owned);
        let mut found: Vec<_> =
            found.lines().skip(1).filter(|line| !line.starts_with(' ')).filter_map(name).collect();
        found.sort_unstable();
        assert_eq!(found, ["large", "small", "text-then-binary", "utf16"], "{mode}");
    }
}

// F145: unused ignore rules are reported.
#[tokio::test]
async fn reports_truncated_ignore_files() {
    let many = format!("*.log\n{}", "x\n".repeat(20_000));
    let folder = folder(&[("a.log", "needle"), ("a", "needle"), ("sub/.gitignore", &many)]);
    fs::write(folder.path().join(".gitignore"), &many).unwrap();
    let harness = harness(&folder);
    let note = "(2 ignore files have more rules than are used: what the last ones exclude was \
                searched.)";
    let grep = text(&harness, "grep_files", json!({ "pattern": "needle", "output_mode": "files" }));
    assert_eq!(grep.await, format!("Found 1 file.\na\n{note}"));
    let glob = text(&harness, "glob_files", json!({ "pattern": "a*" })).await;
    assert_eq!(glob, format!("a\n{note}"));
    let below = json!({ "pattern": "needle", "path": "sub" });
    assert_eq!(text(&harness, "grep_files", below).await, format!("No matches found.\n{note}"));
}

// F141: a page deep in a large file is the same from the cached line index, and a changed file is
// read again.
#[tokio::test]
async fn a_changed_file_invalidates_its_line_index() {
    let folder = folder(&[]);
    let path = folder.path().join("long");
    let lines = |word: &str| (1..=60_000).map(|n| format!("{word} {n:>40}\n")).collect::<String>();
    fs::write(&path, lines("old")).unwrap();
    written_ago(&path, 1);
    let harness = harness(&folder);
    let page = async |offset: u32| {
        text(&harness, "read_file", json!({ "path": "long", "offset": offset, "limit": 2 })).await
    };
    let first = page(50_000).await;
    assert!(first.starts_with(&format!("50000: old {:>40}\n50001: old", 50_000)), "{first}");
    assert_eq!(page(50_000).await, first);
    assert!(page(40_000).await.starts_with("40000: old"));

    // The same size, and the same modification time in seconds.
    fs::write(&path, lines("a\nb")).unwrap();
    written_ago(&path, 1);
    let changed = page(50_000).await;
    assert!(changed.starts_with(&format!("50000: b {:>40}\n50001: a\n", 25_000)), "{changed}");
}

// F141, F144: a path that is neither a file nor a folder is rejected, with a hint on what to do
// instead.
#[cfg(unix)]
#[tokio::test]
async fn rejects_pipes_and_folders() {
    let folder = folder(&[("src/a.rs", "x")]);
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.unwrap().success());
    let harness = harness(&folder);
    for (tool, args, expected) in [
        ("read_file", json!({ "path": "pipe" }), "`pipe` is a pipe or a device, not a file"),
        (
            "grep_files",
            json!({ "path": "pipe", "pattern": "x" }),
            "`pipe` is a pipe or a device, not a file",
        ),
        ("list_dir", json!({ "path": "pipe" }), "`pipe` is a pipe or a device, not a file"),
        ("list_dir", json!({ "path": "src/a.rs" }), "`src/a.rs` is not a folder"),
        ("read_file", json!({ "path": "src" }), "`src` is a folder, not a file"),
    ] {
        let error = harness.error(tool, args.to_string()).await;
        assert_eq!(error.message(), expected, "{tool}");
    }
    let all = text(&harness, "grep_files", json!({ "pattern": "x" })).await;
    assert!(all.starts_with("Found 1 match in 1 file."), "{all}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    // F141: the pages of a file joined are the file.
    #[test]
    fn pages_joined_are_the_file(
        lines in proptest::collection::vec("[a-zäß ]{0,30}", 1..80), limit in 1_u32..20,
    ) {
        let folder = folder(&[("file", &(lines.join("\n") + "\n"))]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let harness = harness(&folder);
        let mut read = Vec::new();
        while read.len() < lines.len() {
            let args = json!({ "path": "file", "offset": read.len() + 1, "limit": limit });
            let page = runtime.block_on(text(&harness, "read_file", args));
            let (page, _) = page.rsplit_once("\n\n(").unwrap();
            for line in page.split('\n') {
                let (number, text) = line.split_once(": ").unwrap();
                prop_assert_eq!(number.parse::<usize>().unwrap(), read.len() + 1);
                read.push(text.to_owned());
            }
        }
        prop_assert_eq!(read, lines);
    }
}

// A host sets the format of line numbers.
#[tokio::test]
async fn the_host_sets_the_line_number_format() {
    let folder = folder(&[("a", "one\ntwo\nthree\n")]);
    let marked = harness(&folder).lend(LineNumbering::Marked);
    for (args, expected) in [
        (json!({ "path": "a" }), "L1: one\nL2: two\nL3: three\n\n(End of file, 3 lines in all.)"),
        (
            json!({ "path": "a", "offset": 2, "limit": 1 }),
            "L2: two\n\n(Showing lines 2-2 of 3. Use offset=3 to continue.)",
        ),
    ] {
        assert_eq!(text(&marked, "read_file", args.clone()).await, expected);
        let plain = expected.replace('L', "");
        assert_eq!(text(&harness(&folder), "read_file", args).await, plain);
    }
}
