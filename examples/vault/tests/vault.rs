//! The tools of the vault, called as a host calls them.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use tool_sdk::testing::{self, Harness, ToolChecks};
use tool_sdk::{
    ApprovalRequest, ApprovalResponse, Approver, ErrorKind, Mode, Registry, Rule, Session,
    Workspace,
};

tool_sdk::link!(tool_vault);

const NOTES: &[(&str, &str)] = &[
    ("Tea.md", "---\ntags: [drinks]\n---\n# Tea\n\nNeeds a [[Pot]]. #green\n"),
    ("things/Pot.md", "# The pot\n\nFor [tea](../Tea.md).\n"),
    ("log.md", "Drank [[Tea|some tea]] and [[Milk]]. `[[Tea]]`\n"),
    (".trash/Old.md", "[[Tea]]\n"),
    ("picture.txt", "[[Tea]]\n"),
];

fn folder(notes: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in notes {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn harness(folder: &TempDir, rules: &[&str]) -> Harness {
    harness_in(Mode::Bypass, folder, rules)
}

fn harness_in(mode: Mode, folder: &TempDir, rules: &[&str]) -> Harness {
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    Harness::from_registry(Registry::linked().unwrap())
        .lend(Workspace::open([folder.path()]).unwrap())
        .map_pipeline(|pipeline| pipeline.mode(mode).rules(rules))
}

async fn text(harness: &Harness, tool: &str, args: serde_json::Value) -> String {
    harness.ok(tool, args).await.into_text()
}

// F159: notes are listed, read and searched.
#[tokio::test]
async fn finds_and_reads_notes() {
    let folder = folder(NOTES);
    let harness = harness(&folder, &[]);
    let listed = text(&harness, "vault_list", json!({})).await;
    let expected = "\
Tea.md: Tea #drinks #green (2 backlinks)
log.md: log
things/Pot.md: The pot (1 backlink)";
    assert_eq!(listed, expected);
    let listed = text(&harness, "vault_list", json!({ "tag": "#Green" })).await;
    assert_eq!(listed.lines().count(), 1);

    let read = text(&harness, "vault_read", json!({ "note": "log.md" })).await;
    let expected = "\
log.md: log
Links: Tea.md
Links to no note: Milk
---
Drank [[Tea|some tea]] and [[Milk]]. `[[Tea]]`
";
    assert_eq!(read, expected);
    let read = text(&harness, "vault_read", json!({ "note": "Tea.md" })).await;
    assert!(read.contains("\nBacklinks: log.md, things/Pot.md\n"), "{read}");
    let error = harness.error("vault_read", json!({ "note": "pot.md" })).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("did you mean `things/Pot.md`?"), "{error}");

    let found = text(&harness, "vault_search", json!({ "query": "TEA pot" })).await;
    assert!(
        found.starts_with("Found 2 notes.\nthings/Pot.md: The pot\n  1: # The pot\n"),
        "{found}"
    );
    let found = text(&harness, "vault_search", json!({ "query": "#drinks" })).await;
    assert!(found.starts_with("Found 1 note.\nTea.md: Tea"), "{found}");
}

// F159: a note is created, added to, and replaced only on purpose.
#[tokio::test]
async fn writes_notes() {
    let folder = folder(NOTES);
    let harness = harness(&folder, &[]);
    let write = |mode: &str| json!({ "note": "new/Cup.md", "content": "# Cup\n", "mode": mode });
    assert_eq!(text(&harness, "vault_write", write("create")).await, "Created `new/Cup.md`.");
    let error = harness.error("vault_write", write("create")).await;
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(text(&harness, "vault_write", write("append")).await, "Added to `new/Cup.md`.");
    assert_eq!(fs::read_to_string(folder.path().join("new/Cup.md")).unwrap(), "# Cup\n# Cup\n");
    for note in ["Cup.txt", ".hidden/Cup.md", "a[b].md", "../Cup.md"] {
        harness.error("vault_write", json!({ "note": note, "content": "" })).await;
    }
}

// F159: links lead where they led, tags stay, and all files change or none.
#[tokio::test]
async fn a_move_keeps_every_link() {
    let folder = folder(NOTES);
    let harness = harness(&folder, &[]);
    let args = json!({ "from": "Tea.md", "to": "drinks/Green tea.md" });
    let moved = text(&harness, "vault_move", args).await;
    let expected = "\
Moved `Tea.md` to `drinks/Green tea.md`.
Changed links in:
  log.md (1)
  things/Pot.md (1)";
    assert_eq!(moved, expected);
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(read("log.md"), "Drank [[Green tea|some tea]] and [[Milk]]. `[[Tea]]`\n");
    assert_eq!(read("things/Pot.md"), "# The pot\n\nFor [tea](../drinks/Green%20tea.md).\n");
    assert_eq!(read(".trash/Old.md"), "[[Tea]]\n");
    assert!(!folder.path().join("Tea.md").exists());
    let read = text(&harness, "vault_read", json!({ "note": "drinks/Green tea.md" })).await;
    assert!(read.contains("Tags: drinks, green\nLinks: things/Pot.md\n"), "{read}");
    assert!(read.contains("Backlinks: log.md, things/Pot.md\n"), "{read}");
    let error =
        harness.error("vault_move", json!({ "from": "log.md", "to": "things/Pot.md" })).await;
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

// A note that the rules deny is not changed and not mentioned; one that they ask about is counted.
#[tokio::test]
async fn a_note_that_the_rules_hide_is_not_changed() {
    for (rule, expected) in [
        ("deny edit(log.md)", "(1)"),
        ("ask edit(log.md)", "The rules left 1 notes out; their links are as before."),
    ] {
        let folder = folder(NOTES);
        let harness = harness_in(Mode::default(), &folder, &["allow edit", rule]);
        let args = json!({ "from": "Tea.md", "to": "tea/Leaf.md" });
        let moved = text(&harness, "vault_move", args).await;
        assert!(!moved.contains("log.md") && moved.ends_with(expected), "{moved}");
        let log = fs::read_to_string(folder.path().join("log.md")).unwrap();
        assert!(log.contains("[[Tea|some tea]]"), "{log}");
    }
}

#[tokio::test]
async fn a_rule_about_either_path_stops_the_move() {
    for rule in ["deny edit(Tea.md)", "deny edit(tea/**)"] {
        let folder = folder(NOTES);
        let harness = harness(&folder, &[rule]);
        let args = json!({ "from": "Tea.md", "to": "tea/Leaf.md" });
        let error = harness.error("vault_move", args).await;
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(folder.path().join("Tea.md").exists());
    }
}

/// Writes a note with a link while the user is asked, then approves.
struct LinkingApprover(PathBuf);

impl Approver for LinkingApprover {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        fs::write(&self.0, "[[Tea]]\n").unwrap();
        Box::pin(std::future::ready(Some(ApprovalResponse::Once)))
    }
}

// A note that was not among those that the rules judged is not changed.
#[tokio::test]
async fn a_move_changes_only_notes_that_were_judged() {
    let folder = folder(NOTES);
    let late = folder.path().join("late.md");
    let approver = LinkingApprover(late.clone());
    let harness =
        harness_in(Mode::Auto, &folder, &[]).map_pipeline(|pipeline| pipeline.approver(approver));
    let args = json!({ "from": "Tea.md", "to": "tea/Leaf.md" });
    let error = harness.error("vault_move", args.clone()).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("what the call touches changed"), "{error}");
    assert_eq!(fs::read_to_string(&late).unwrap(), "[[Tea]]\n");
    assert!(folder.path().join("Tea.md").exists());
    // The next call has the note among its resources.
    let moved = text(&harness, "vault_move", args).await;
    assert!(moved.contains("late.md (1)"), "{moved}");
}

// A move that cannot be planned is refused before the user is asked.
#[tokio::test]
async fn a_move_that_cannot_be_planned_is_refused() {
    let folder = folder(NOTES);
    let late = folder.path().join("late.md");
    let approver = LinkingApprover(late.clone());
    let harness =
        harness_in(Mode::Auto, &folder, &[]).map_pipeline(|pipeline| pipeline.approver(approver));
    let error = harness.error("vault_move", json!({ "from": "no.md", "to": "a.md" })).await;
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(!late.exists());
}

// What would be too large to read again is not written.
#[tokio::test]
async fn notes_stay_readable() {
    let folder =
        folder(&[("big.md", &"a".repeat(1 << 20)), ("threads/big.md", &"a".repeat(1 << 20))]);
    fs::write(folder.path().join("threads/latin.md"), b"# gr\xfc\xdfe\n").unwrap();
    let harness = harness(&folder, &[]);
    for (tool, args, why) in [
        ("vault_write", json!({ "note": "big.md", "content": "b", "mode": "append" }), "1 MiB"),
        ("thread_push", json!({ "thread": "big", "text": "b" }), "1 MiB"),
        ("thread_push", json!({ "thread": "latin", "text": "b" }), "not UTF-8"),
        ("thread_read", json!({ "thread": "latin" }), "not UTF-8"),
    ] {
        let error = harness.error(tool, args).await;
        assert!(error.to_string().contains(why), "{tool}: {error}");
    }
    assert_eq!(fs::metadata(folder.path().join("big.md")).unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn denied_notes_are_not_found() {
    let folder = folder(NOTES);
    let harness = harness(&folder, &["deny read(things/**)"]);
    for (tool, args) in [
        ("vault_list", json!({})),
        ("vault_search", json!({ "query": "pot" })),
        ("vault_read", json!({ "note": "Tea.md" })),
    ] {
        let found = text(&harness, tool, args).await;
        assert!(!found.contains("things/"), "{tool}: {found}");
    }
}

// F161: a thread grows entry by entry.
#[tokio::test]
async fn threads_grow_entry_by_entry() {
    let folder = folder(&[]);
    let harness = harness(&folder, &[]);
    assert_eq!(text(&harness, "thread_list", json!({})).await, "There are no threads.");
    for number in 1..=3 {
        let args = json!({ "thread": "plan", "text": format!("## step {number}") });
        let pushed = text(&harness, "thread_push", args).await;
        assert_eq!(pushed, format!("Added entry {number} to `plan`."));
    }
    assert_eq!(text(&harness, "thread_list", json!({})).await, "plan: 3 entries");
    let read = text(&harness, "thread_read", json!({ "thread": "plan", "limit": 1 })).await;
    assert_eq!(read, "plan: 3 entries\n\n## 3 agent\n\n### step 3");
    let read = text(&harness, "thread_read", json!({ "thread": "plan", "first": 2 })).await;
    assert!(read.starts_with("plan: 3 entries\n\n## 2 agent") && read.contains("step 3"), "{read}");
    let error = harness.error("thread_read", json!({ "thread": "none" })).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    harness.error("thread_push", json!({ "thread": "../x", "text": "a" })).await;
}

#[tokio::test]
async fn every_tool_is_well_made() {
    let folder = folder(NOTES);
    let workspace = Workspace::open([folder.path()]).unwrap();
    let session = Session::new("checks").with_service(workspace);
    let registry = Registry::linked().unwrap();
    ToolChecks::default().examples_in(session).run_writing_tools().run(&registry);
}

#[test]
fn schemas_are_as_committed() {
    testing::check_schemas("schemas");
}
