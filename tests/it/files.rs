//! The standard tools that write files, run through a pipeline on real folders.

#![expect(clippy::unwrap_used, reason = "what these tests are made of unwraps as they do")]

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_sdk::{
    Approver, Ask, Call, Checked, ErrorKind, Outcome, Output, Pipeline, Registry, Reply, Rule,
    Session, ToolError, Workspace, tools,
};
use tool_std::fs::{apply_patch, edit_file, write_file};

/// Answers every ask, and remembers it.
#[derive(Clone, Default)]
struct Asked {
    yes: bool,
    asks: Arc<Mutex<Vec<Arc<Ask>>>>,
}

impl Approver for Asked {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        self.asks.lock().unwrap().push(ask);
        let reply = if self.yes { Reply::Once } else { Reply::Reject };
        Box::pin(std::future::ready(Some(reply)))
    }
}

/// A folder with the tools that write.
struct Desk {
    folder: TempDir,
    pipeline: Pipeline,
    session: Session,
    asked: Asked,
}

impl Desk {
    /// With these files; everything may be edited.
    fn new(files: &[(&str, &str)]) -> Self {
        Self::with_rules(files, &["allow edit"])
    }

    fn with_rules(files: &[(&str, &str)], rules: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let session = Session::new("s").lend(Workspace::open([folder.path()]).unwrap());
        let tools = tools![write_file, edit_file, apply_patch];
        let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let pipeline = Pipeline::new(Registry::builder().add(tools).build().unwrap()).rules(rules);
        Self { folder, pipeline, session, asked: Asked::default() }
    }

    /// Everybody who is asked says this.
    fn answering(mut self, yes: bool) -> Self {
        self.asked.yes = yes;
        self.pipeline = self.pipeline.approver(self.asked.clone());
        self
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let arguments = arguments.to_string();
        self.pipeline.call(&self.session, Call::new(tool, arguments.as_str())).await
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Output {
        self.call(tool, arguments).await.result.unwrap_or_else(|error| panic!("{error:?}"))
    }

    async fn error(&self, tool: &str, arguments: Value) -> ToolError {
        self.call(tool, arguments).await.result.expect_err("it fails")
    }

    async fn check(&self, tool: &str, arguments: Value) -> Checked {
        let arguments = arguments.to_string();
        let checked = self.pipeline.check(&self.session, Call::new(tool, arguments.as_str()));
        checked.await.unwrap()
    }

    async fn patch(&self, body: &str) -> Result<Output, ToolError> {
        self.call("apply_patch", json!({ "input": patch(body) })).await.result
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Every file below the folder, with its text.
    fn files(&self) -> Vec<(String, String)> {
        fn walk(folder: &Path, top: &Path, found: &mut Vec<(String, String)>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(top).unwrap().display().to_string();
                match path.is_dir() {
                    true => walk(&path, top, found),
                    false => found.push((name, fs::read_to_string(&path).unwrap())),
                }
            }
        }
        let mut found = Vec::new();
        walk(self.folder.path(), self.folder.path(), &mut found);
        found.sort();
        found
    }

    /// What the only ask showed.
    fn preview(&self) -> Value {
        let asks = self.asked.asks.lock().unwrap();
        assert_eq!(asks.len(), 1);
        asks[0].preview.clone().unwrap()
    }
}

fn patch(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch")
}

fn named(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn every_example_works() {
    let desk = Desk::new(&[("src/main.rs", "fn main() {}\n")]);
    let view = desk.pipeline.toolset().view();
    for definition in view.definitions() {
        assert!(!definition.examples.is_empty(), "{}", definition.name);
        for example in &definition.examples {
            desk.ok(definition.name.as_str(), serde_json::from_str(example).unwrap()).await;
        }
    }
}

// F142
#[tokio::test]
async fn a_file_is_created_with_its_folders_and_then_overwritten() {
    let desk = Desk::new(&[]);
    let output = desk.ok("write_file", json!({ "path": "a/b.txt", "content": "one\ntwo\n" })).await;
    assert_eq!(output.as_text(), "Created `a/b.txt` (+2 -0 lines).");
    let shown = output.display_data().unwrap();
    assert_eq!((&shown["type"], &shown["operation"]), (&json!("diff"), &json!("create")));
    assert_eq!(shown["unified"], "--- /dev/null\n+++ a/b.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n");

    let output = desk.ok("write_file", json!({ "path": "./a//b.txt", "content": "one\n" })).await;
    assert_eq!(output.as_text(), "Overwrote `a/b.txt` (+0 -1 lines).");
    assert_eq!(output.display_data().unwrap()["operation"], "write");
    assert_eq!(desk.files(), named(&[("a/b.txt", "one\n")]));
}

// F142, F143: line ends, byte order mark and a missing last line end stay what they are.
#[tokio::test]
async fn the_form_of_a_text_stays() {
    for (old, new, expected) in [
        ("a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n"),
        ("a\nb\n", "c\r\nd", "c\nd"),
        ("\u{feff}a\r\n", "c\n", "\u{feff}c\r\n"),
        ("\u{feff}a", "\u{feff}c\n", "\u{feff}c\n"),
        ("a", "c\r\n", "c\r\n"),
    ] {
        let desk = Desk::new(&[("f", old)]);
        desk.ok("write_file", json!({ "path": "f", "content": new })).await;
        assert_eq!(desk.text("f"), expected, "{old:?}");
    }
    for (old, expected) in
        [("\u{feff}x\r\nb\r\nz", "\u{feff}x\r\ny\r\ny2\r\nz"), ("x\nb\r\nz\n", "x\ny\r\ny2\r\nz\n")]
    {
        let desk = Desk::new(&[("f", old)]);
        let edit = json!({ "path": "f", "old_string": "b\n", "new_string": "y\ny2\n" });
        desk.ok("edit_file", edit).await;
        assert_eq!(desk.text("f"), expected);
    }
    let desk = Desk::new(&[("f", "\u{feff}a\r\nb")]);
    desk.patch("*** Update File: f\n@@\n-a\n+A\n+A2").await.unwrap();
    assert_eq!(desk.text("f"), "\u{feff}A\r\nA2\r\nb");
}

// F143
#[tokio::test]
async fn an_edit_says_how_it_was_found() {
    let desk = Desk::new(&[("f", "say \u{201c}hi\u{201d}\nx\nx\n")]);
    let edit = json!({ "path": "f", "old_string": "say \"hi\"", "new_string": "say \"ho\"" });
    let output = desk.ok("edit_file", edit).await;
    assert!(output.as_text().starts_with("Edited `f` in 1 place (+1 -1 lines).\nNote: "));
    assert_eq!(output.metadata_map().unwrap()["match_strategy"], "punctuation");

    let all = json!({ "path": "f", "old_string": "x", "new_string": "k", "replace_all": true });
    assert!(desk.ok("edit_file", all).await.as_text().starts_with("Edited `f` in 2 places"));
    let edits = json!([
        { "old_string": "ho", "new_string": "hu" },
        { "old_string": "k", "new_string": "z", "replace_all": true },
    ]);
    desk.ok("edit_file", json!({ "path": "f", "edits": edits })).await;
    assert_eq!(desk.text("f"), "say \"hu\"\nz\nz\n");
}

// F143: the number of matches, the nearest lines, similar names; and nothing is written.
#[tokio::test]
async fn an_edit_that_does_not_fit_says_why() {
    let desk = Desk::new(&[("main.rs", "fn one() {}\nfn two() {}\n")]);
    let before = desk.files();
    for (edit, kind, says) in [
        (json!({ "old_string": "fn ", "new_string": "f" }), ErrorKind::Failed, "2 times"),
        (
            json!({ "old_string": "fn  two() {}", "new_string": "x" }),
            ErrorKind::Failed,
            "closest is line 2",
        ),
        (json!({ "old_string": "", "new_string": "x" }), ErrorKind::InvalidArgs, "empty"),
        (json!({ "old_string": "x", "new_string": "x" }), ErrorKind::InvalidArgs, "identical"),
        (json!({ "old_string": "x" }), ErrorKind::InvalidArgs, "belong together"),
        (json!({}), ErrorKind::InvalidArgs, "either"),
        (json!({ "edits": [] }), ErrorKind::InvalidArgs, "either"),
        (
            json!({ "edits": [
                { "old_string": "one", "new_string": "1" },
                { "old_string": "three", "new_string": "3" },
            ] }),
            ErrorKind::Failed,
            "edit 2 of 2",
        ),
        (
            json!({ "path": "mian.rs", "old_string": "x", "new_string": "y" }),
            ErrorKind::NotFound,
            "did you mean `main.rs`",
        ),
    ] {
        let mut arguments = json!({ "path": "main.rs" });
        arguments.as_object_mut().unwrap().extend(edit.as_object().unwrap().clone());
        let error = desk.error("edit_file", arguments).await;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(desk.files(), before);
}

// F143: the lock covers reading and writing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_of_one_file_at_the_same_time_all_survive() {
    let lines: String = (0..32).map(|line| format!("line {line} old\n")).collect();
    let desk = Arc::new(Desk::new(&[("f", &lines)]));
    let calls: Vec<_> = (0..32)
        .map(|line| {
            let desk = Arc::clone(&desk);
            tokio::spawn(async move {
                let (old, new) = (format!("line {line} old"), format!("line {line} new"));
                let edit = json!({ "path": "f", "old_string": old, "new_string": new });
                desk.ok("edit_file", edit).await;
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(desk.text("f"), lines.replace("old", "new"));
}

// F140
#[tokio::test]
async fn a_patch_changes_many_files_at_once() {
    let desk = Desk::new(&[("a", "1\n2\n3\n"), ("old/name", "x\n"), ("gone", "bye\n")]);
    let output = desk
        .patch(concat!(
            "*** Delete File: gone\n",
            "*** Update File: a\n@@\n 1\n-2\n+two\n",
            "*** Update File: old/name\n*** Move to: new/name\n@@\n-x\n+y\n",
            "*** Add File: deep/er\n+new"
        ))
        .await
        .unwrap();
    assert_eq!(
        output.as_text(),
        "Success. Updated the following files:\nA deep/er\nM a\nM new/name\nD gone"
    );
    let expected = [("a", "1\ntwo\n3\n"), ("deep/er", "new\n"), ("new/name", "y\n")];
    assert_eq!(desk.files(), named(&expected));
    let shown = output.display_data().unwrap();
    assert_eq!((&shown["type"], &shown["added"]), (&json!("diff"), &json!(3)));
    let operations: Vec<_> =
        shown["files"].as_array().unwrap().iter().map(|file| file["operation"].clone()).collect();
    assert_eq!(operations, ["delete", "edit", "move", "create"]);
}

// F140: nobody takes what was replaced for something new.
#[tokio::test]
async fn a_file_that_is_added_over_another_was_changed() {
    let desk = Desk::new(&[("a", "old\n")]);
    let output = desk.patch("*** Add File: a\n+new").await.unwrap();
    assert_eq!(output.as_text(), "Success. Updated the following files:\nM a");
    let shown = output.display_data().unwrap();
    assert_eq!(shown["files"][0]["operation"], "edit");
    assert!(shown["unified"].as_str().unwrap().contains("\n-old\n+new\n"), "{shown}");
    assert_eq!(desk.files(), named(&[("a", "new\n")]));
}

// F140: everything is verified first, and nobody is asked about what cannot be read.
#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let files = [("a", "1\n2\n"), ("dir/b", "b\n")];
    let add = "*** Add File: new\n+x\n";
    for (body, kind, says) in [
        ("*** Update File: a\n@@\n-3\n+4", ErrorKind::Failed, "Failed to find expected lines"),
        ("*** Update File: no\n@@\n-3\n+4", ErrorKind::Failed, "there is no `no`"),
        ("*** Delete File: no", ErrorKind::Failed, "there is no `no`"),
        ("*** Delete File: dir", ErrorKind::Failed, "a folder"),
        ("*** Add File: a/b\n+x", ErrorKind::Failed, "not a folder"),
        ("*** Add File: q/y\n+y\n*** Add File: q\n+q", ErrorKind::InvalidArgs, "`q/y` cannot be"),
        ("*** Delete File: a\n*** Add File: a/b\n+x", ErrorKind::InvalidArgs, "below `a`"),
        ("*** Add File: new\n+y", ErrorKind::InvalidArgs, "two operations"),
        ("*** Frobnicate File: a", ErrorKind::InvalidArgs, "Invalid patch"),
        ("*** Update File: a\n*** Move to: /etc/x\n@@\n-1\n+2", ErrorKind::Denied, "external"),
    ] {
        let desk = Desk::new(&files);
        let error = desk.patch(&format!("{add}{body}")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{body}: {error}");
        assert!(error.to_string().contains(says), "{body}: {error}");
        assert_eq!(desk.files(), named(&files), "{body}");
    }
    let desk = Desk::with_rules(&files, &[]).answering(true);
    assert_eq!(desk.patch("nothing").await.unwrap_err().kind(), ErrorKind::InvalidArgs);
    let empty = json!({ "input": "*** Begin Patch\n*** End Patch" });
    assert_eq!(desk.error("apply_patch", empty).await.message(), "No files were modified.");
    assert!(desk.asked.asks.lock().unwrap().is_empty());
}

// F140: the cases of another system; `tool-std/tests/fixtures` says whose they are.
#[tokio::test]
async fn patches_do_to_files_what_the_cases_say() {
    let text = include_str!("../../tool-std/tests/fixtures/opencode-apply-patch/cases.json");
    let fixture: Value = serde_json::from_str(text).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    let mut compared = 0;
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let before: Vec<_> = case["files"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| (&**k, v.as_str().unwrap()))
            .collect();
        let desk = Desk::new(&before);
        for folder in case["dirs"].as_array().into_iter().flatten() {
            fs::create_dir(desk.path(folder.as_str().unwrap())).unwrap();
        }
        let before = desk.files();
        let found = desk.call("apply_patch", json!({ "input": case["patch"] })).await.result;
        if case["error_contains"].is_string() {
            assert!(found.is_err(), "{name}");
            assert_eq!(desk.files(), before, "{name}");
        } else if case["conflict"].is_null() {
            assert!(found.is_ok(), "{name}: {found:?}");
            for (path, text) in case["expected_files"].as_object().unwrap() {
                assert_eq!(&desk.text(path), text.as_str().unwrap(), "{name}");
            }
        } else {
            // How the last line ends is decided otherwise here; the engine's tests say how.
            assert!(found.is_ok(), "{name}: {found:?}");
            continue;
        }
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
}

// F140: two names of one file are one file.
#[cfg(unix)]
#[tokio::test]
async fn a_patch_may_not_reach_a_file_twice_through_a_link() {
    let desk = Desk::new(&[("a", "1\n")]);
    std::os::unix::fs::symlink("a", desk.path("b")).unwrap();
    let body = "*** Update File: a\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n+3";
    let error = desk.patch(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().contains("another name"), "{error}");
    assert_eq!(desk.text("a"), "1\n");
}

// F174
#[tokio::test]
async fn every_ask_carries_the_difference() {
    let diff = "--- f\n+++ f\n@@ -1 +1 @@\n-old\n+new\n";
    for (tool, arguments) in [
        ("write_file", json!({ "path": "f", "content": "new\n" })),
        ("edit_file", json!({ "path": "f", "old_string": "old", "new_string": "new" })),
        ("apply_patch", json!({ "input": patch("*** Update File: f\n@@\n-old\n+new") })),
    ] {
        let desk = Desk::with_rules(&[("f", "old\n")], &[]).answering(false);
        assert_eq!(desk.error(tool, arguments).await.kind(), ErrorKind::Denied);
        let preview = desk.preview();
        assert_eq!(preview["unified"], diff, "{tool}");
        assert_eq!((&preview["added"], &preview["removed"]), (&json!(1), &json!(1)));
        assert_eq!(desk.text("f"), "old\n");
    }
    let desk = Desk::with_rules(&[("f", "old\n")], &[]).answering(false);
    let edit = json!({ "path": "f", "old_string": "nope", "new_string": "new" });
    desk.error("edit_file", edit).await;
    assert!(desk.preview()["error"].as_str().unwrap().contains("not in the file"));
}

/// Says yes, after it changed the file that it was asked about.
struct Meddling(PathBuf, &'static str);

impl Approver for Meddling {
    fn ask(&self, _: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        fs::write(&self.0, self.1).unwrap();
        Box::pin(std::future::ready(Some(Reply::Once)))
    }
}

// F174, F142: the text that the preview showed is the one that is replaced, and no other.
#[tokio::test]
async fn what_was_shown_is_what_is_replaced() {
    for (files, meanwhile) in [(&[("f", "old\n")][..], "theirs\n"), (&[], "theirs\n")] {
        let mut desk = Desk::with_rules(files, &[]);
        let meddling = Meddling(desk.path("f"), meanwhile);
        desk.pipeline = desk.pipeline.approver(meddling);
        let write = json!({ "path": "f", "content": "new\n" });
        let error = desk.error("write_file", write.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert_eq!(desk.files(), named(&[("f", meanwhile)]));
        // Asked again, they see what is there now.
        desk.ok("write_file", write).await;
        assert_eq!(desk.text("f"), "new\n");
    }
    // An edit quotes what it replaces, and so it may go on.
    let mut desk = Desk::with_rules(&[("f", "old\n")], &[]);
    let meddling = Meddling(desk.path("f"), "more\nold\n");
    desk.pipeline = desk.pipeline.approver(meddling);
    let edit = json!({ "path": "f", "old_string": "old", "new_string": "new" });
    desk.ok("edit_file", edit).await;
    assert_eq!(desk.text("f"), "more\nnew\n");
}

// F140: one ask for all files of a patch.
#[tokio::test]
async fn a_patch_asks_once() {
    let desk = Desk::with_rules(&[("a", "1\n"), ("b", "1\n")], &[]).answering(true);
    let body =
        "*** Update File: a\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n+2\n*** Add File: c\n+3";
    desk.patch(body).await.unwrap();
    let asks = desk.asked.asks.lock().unwrap();
    let subjects: Vec<_> = asks[0].subjects.iter().map(|subject| subject.text()).collect();
    assert_eq!((asks.len(), subjects), (1, vec!["a", "b", "c"]));
}

// PA7: to allow edits is not to allow what runs later.
#[tokio::test]
async fn what_runs_later_is_asked_about_whatever_is_allowed() {
    let calls = [
        ("write_file", json!({ "path": ".git/hooks/pre-commit", "content": "x" })),
        ("edit_file", json!({ "path": ".envrc", "old_string": "a", "new_string": "b" })),
        (
            "apply_patch",
            json!({ "input": patch("*** Add File: x\n+x\n*** Add File: .git/config\n+x") }),
        ),
    ];
    for (tool, arguments) in calls {
        let desk = Desk::new(&[(".envrc", "a")]);
        let before = desk.files();
        assert_eq!(desk.error(tool, arguments.clone()).await.kind(), ErrorKind::Denied, "{tool}");
        assert_eq!(desk.files(), before);
        let decision = serde_json::to_value(desk.check(tool, arguments.clone()).await).unwrap();
        assert_eq!(decision["decision"], "ask", "{tool}");

        let desk = desk.answering(true);
        desk.ok(tool, arguments).await;
        let asks = desk.asked.asks.lock().unwrap();
        assert_eq!(asks[0].subjects[0].permission(), Some("protected_path"), "{tool}");
    }
    let desk = Desk::with_rules(&[], &["allow edit", "allow protected_path(.vscode/*)"]);
    desk.ok("write_file", json!({ "path": ".vscode/tasks.json", "content": "{}" })).await;
}

// PA2: a path outside is asked about by its own name, and then it is that path and no other.
#[tokio::test]
async fn what_is_outside_is_asked_about() {
    let other = TempDir::new().unwrap();
    let file = other.path().canonicalize().unwrap().join("new/file");
    let write = json!({ "path": file, "content": "x" });
    let desk = Desk::new(&[]);
    let error = desk.error("write_file", write.clone()).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("external_directory("), "{error}");
    assert!(!file.exists());

    let desk = desk.answering(true);
    let output = desk.ok("write_file", write.clone()).await;
    assert_eq!(output.as_text(), format!("Created `{}` (+1 -0 lines).", file.display()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");

    let rule = format!("allow external_directory({}/*)", other.path().display());
    let desk = Desk::with_rules(&[], &["allow edit", &rule]);
    desk.ok("write_file", write.clone()).await;
    let desk =
        Desk::with_rules(&[], &["allow external_directory", "allow edit", "deny edit(file)"]);
    assert_eq!(desk.error("write_file", write.clone()).await.kind(), ErrorKind::Denied);

    // F92: the folders that may be written are a limit for everybody.
    let mut desk = Desk::with_rules(&[], &["allow *"]);
    let root = desk.folder.path().canonicalize().unwrap();
    desk.pipeline = desk.pipeline.writable_roots([root]);
    assert_eq!(desk.error("write_file", write).await.kind(), ErrorKind::Denied);
    desk.ok("write_file", json!({ "path": "inside", "content": "x" })).await;
}

// PA6: a rule on a file holds for every way to name it.
#[cfg(unix)]
#[tokio::test]
async fn a_denial_holds_through_links() {
    let desk = Desk::with_rules(&[("secret", "x")], &["allow edit", "deny edit(secret)"]);
    std::os::unix::fs::symlink("secret", desk.path("link")).unwrap();
    for path in ["secret", "./secret", "link", "a/../link"] {
        let write = json!({ "path": path, "content": "y" });
        desk.error("write_file", write).await;
        assert_eq!(desk.text("secret"), "x", "{path}");
    }
}

// F92
#[tokio::test]
async fn a_folder_that_may_only_be_read_says_so() {
    let lent = TempDir::new().unwrap();
    let mut desk = Desk::with_rules(&[], &["allow *"]);
    let workspace = Workspace::open([desk.folder.path()]).unwrap().readable(lent.path()).unwrap();
    desk.session = Session::new("s").lend(workspace);
    let path = lent.path().canonicalize().unwrap().join("page");
    let error = desk.error("write_file", json!({ "path": path, "content": "x" })).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().ends_with("is in a folder that may only be read"), "{error}");
    assert!(!path.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_and_folders_are_refused_at_once() {
    let desk = Desk::new(&[("dir/f", "x")]);
    let made = std::process::Command::new("mkfifo").arg(desk.path("pipe")).status().unwrap();
    assert!(made.success());
    for path in ["pipe", "dir", "."] {
        for (tool, arguments) in [
            ("write_file", json!({ "path": path, "content": "x" })),
            ("edit_file", json!({ "path": path, "old_string": "x", "new_string": "y" })),
            ("apply_patch", json!({ "input": patch(&format!("*** Delete File: {path}")) })),
        ] {
            let error = desk.error(tool, arguments).await;
            assert_eq!(error.kind(), ErrorKind::Failed, "{tool} {path}: {error}");
        }
    }
}

// A call that is dropped half-way leaves the old file or the new one, and nothing else.
#[test]
fn whoever_leaves_early_leaves_no_litter() {
    let calls = [
        ("write_file", json!({ "path": "f", "content": "new" })),
        ("write_file", json!({ "path": "deep/down/f", "content": "new" })),
        ("edit_file", json!({ "path": "f", "old_string": "old", "new_string": "new" })),
        ("apply_patch", json!({ "input": patch("*** Delete File: g\n*** Add File: f\n+new") })),
    ];
    for (tool, arguments) in calls {
        for polls in 0..12 {
            let desk = Desk::new(&[("f", "old"), ("g", "g")]);
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let mut call = pin!(desk.call(tool, arguments.clone()));
                let mut context = std::task::Context::from_waker(Waker::noop());
                for _ in 0..polls {
                    if call.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    tokio::task::yield_now().await;
                    std::thread::yield_now();
                }
            });
            // Waits for the threads that still work.
            drop(runtime);
            for (path, text) in desk.files() {
                let known = match &*path {
                    "f" => ["old", "new", "new\n"].contains(&&*text),
                    "g" => text == "g",
                    "deep/down/f" => text == "new",
                    _ => false,
                };
                assert!(known, "{tool} after {polls}: `{path}` is {text:?}");
            }
            let is_whole = desk.path("deep/down/f").exists() || !desk.path("deep").exists();
            assert!(is_whole, "{tool} after {polls}: empty folders");
        }
    }
}
