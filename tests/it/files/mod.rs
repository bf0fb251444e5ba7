//! The standard tools that write files, run through a pipeline on real folders.

#![expect(clippy::unwrap_used, reason = "what these tests are made of unwraps as they do")]

mod asks;
mod cancelled;
#[cfg(unix)]
mod commands;
mod nested_paths;
mod offers;
mod patches;
mod paths;
mod subjects;
mod trees;
#[cfg(unix)]
mod turns;
mod untold;

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_sdk::{
    ApprovalRequest, ApprovalResponse, Approver, Call, CheckOutcome, ErrorKind, Mode, Outcome,
    Output, Pipeline, Registry, Rule, Session, ToolError, Workspace, tools,
};
use tool_std::fs::{apply_patch, edit_file, write_file};

/// Answers every ask, and remembers it.
#[derive(Clone, Default)]
struct Asked {
    yes: bool,
    asks: Arc<Mutex<Vec<Arc<ApprovalRequest>>>>,
}

impl Approver for Asked {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        self.asks.lock().unwrap().push(ask);
        let reply = if self.yes { ApprovalResponse::Once } else { ApprovalResponse::Reject };
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
        let session = Session::new("s").with_service(Workspace::open([folder.path()]).unwrap());
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

    async fn check(&self, tool: &str, arguments: Value) -> CheckOutcome {
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

    /// How often somebody was asked.
    fn asked(&self) -> usize {
        self.asked.asks.lock().unwrap().len()
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
        ("a\rb\r", "c\nd\r\n", "c\rd\r"),
        ("50%\r100%\n", "c\nd\n", "c\nd\n"),
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
