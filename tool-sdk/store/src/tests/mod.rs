//! What the store promises: the checks of the runtime, privacy, copies and limits.

mod migrations;
mod recovery;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};
use tool_sdk_core::{
    CallRecord, CallStatus, ConversationQuery, ConversationRecord, ConversationStore as _,
    ConversationSummary, MemoryOwner, MemoryStore as _, NoteDraft, NoteQuery, PlanStore as _,
    SessionPlan, SessionStore as _,
};

use crate::database::check_sqlite_version;
use crate::{ExportCursor, SqliteStore};

pub(super) fn owner() -> MemoryOwner {
    MemoryOwner { user: None, project: Some("p".to_owned()) }
}

/// Keeps a note and returns the texts of all notes.
pub(super) async fn add_note(store: &SqliteStore, content: &str) -> std::io::Result<Vec<String>> {
    store.create_note(&owner(), NoteDraft::new(content)).await?;
    let page = store.search_notes(&owner(), &NoteQuery::new("")).await?;
    Ok(page.matches.into_iter().map(|it| it.note.content).collect())
}

pub(super) fn record(call: &str, started_at: SystemTime) -> CallRecord {
    CallRecord {
        call: call.to_owned(),
        session: "s".to_owned(),
        user: None,
        tool: "t".to_owned(),
        arguments: json!({}),
        request: None,
        status: CallStatus::Completed,
        started_at,
        elapsed_ms: None,
        response: None,
    }
}

fn conversation(id: &str, seconds: u64, text: &str) -> ConversationRecord {
    let summary = ConversationSummary {
        id: id.to_owned(),
        folder: None,
        title: None,
        entries: 1,
        changed_at: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds),
    };
    ConversationRecord { summary, transcript: json!([text]) }
}

// F151, F152
#[tokio::test]
async fn keeps_the_promises_of_the_memory_store() {
    let folder = tempfile::tempdir().unwrap();
    tool_sdk_core::testing::check_memory_store(&SqliteStore::in_folder(folder.path())).await;
}

#[tokio::test]
async fn keeps_the_promises_of_the_session_store() {
    let folder = tempfile::tempdir().unwrap();
    tool_sdk_core::testing::check_session_store(&SqliteStore::in_folder(folder.path())).await;
}

#[tokio::test]
async fn keeps_the_promises_of_the_conversation_store() {
    let folder = tempfile::tempdir().unwrap();
    tool_sdk_core::testing::check_conversation_store(&SqliteStore::in_folder(folder.path())).await;
}

// F149, F150
#[tokio::test]
async fn keeps_the_promises_of_the_plan_store() {
    let folder = tempfile::tempdir().unwrap();
    tool_sdk_core::testing::check_plan_store(&SqliteStore::in_folder(folder.path())).await;
}

// Up to 3.51.2, several processes could corrupt a database with a write-ahead log.
#[test]
fn the_linked_sqlite_is_safe_with_several_processes() {
    check_sqlite_version().unwrap();
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[tokio::test]
async fn nothing_is_created_before_the_first_use() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("state");
    let store = SqliteStore::in_folder(&folder);
    assert!(!folder.exists());
    let report = store.describe().await.unwrap();
    assert!(report.databases.is_empty() && !folder.exists());
    assert_eq!(store.load_plan("k").await.unwrap().version, 0);
    assert!(!folder.exists(), "each call of a tool looks for a plan");
    assert_eq!(store.list_conversations(&ConversationQuery::default()).await.unwrap(), []);
    assert!(!folder.exists());
    let error = SqliteStore::unavailable().load_plan("k").await.unwrap_err();
    assert!(error.to_string().contains("set `--state-dir` or HOME"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn every_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::in_folder(folder.path());
    add_note(&store, "a").await.unwrap();
    store.save_call(record("c", SystemTime::now())).await.unwrap();
    store.back_up(&folder.path().join("copy.db")).await.unwrap();
    let names: BTreeSet<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{:?}", entry.path());
            entry.file_name().into_string().unwrap()
        })
        .collect();
    for name in ["state.db", "state.db-wal", "state.db-shm", "history.db", "copy.db"] {
        assert!(names.contains(name), "{names:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_may_write_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    add_note(&SqliteStore::in_folder(folder.path()), "a").await.unwrap();
    let path = folder.path().join("state.db");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = add_note(&SqliteStore::in_folder(folder.path()), "b").await.unwrap_err();
    assert!(error.to_string().contains("others may write to it"), "{error}");

    let link = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&path, link.path().join("state.db")).unwrap();
    let error = add_note(&SqliteStore::in_folder(link.path()), "b").await.unwrap_err();
    assert!(error.to_string().contains("it is a link"), "{error}");
}

#[tokio::test]
async fn a_backup_is_a_database_and_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    let store = SqliteStore::in_folder(folder.path());
    add_note(&store, "kept").await.unwrap();
    let copies = store.back_up(&copy.join("state.db")).await.unwrap();
    assert_eq!(copies.history, None, "no call was recorded");
    let restored = SqliteStore::in_folder(&copy);
    assert_eq!(add_note(&restored, "new").await.unwrap(), ["new", "kept"]);
    let error = store.back_up(&copy.join("state.db")).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);

    store.save_call(record("c", SystemTime::now())).await.unwrap();
    let copies = store.back_up(&folder.path().join("copy.db")).await.unwrap();
    assert_eq!(copies.history, Some(folder.path().join("copy-history.db")));
    std::fs::rename(folder.path().join("copy-history.db"), copy.join("history.db")).unwrap();
    let restored = SqliteStore::in_folder(&copy);
    assert!(restored.find_call("c").await.unwrap().is_some());
    // A file that is in the way of the history leaves no half backup.
    std::fs::write(folder.path().join("two-history.db"), "").unwrap();
    let error = store.back_up(&folder.path().join("two.db")).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert!(!folder.path().join("two.db").exists());
}

async fn export(folder: &Path) -> Vec<Value> {
    let store = SqliteStore::in_folder(folder);
    let (mut all, mut cursor) = (Vec::new(), Some(ExportCursor::default()));
    while let Some(at) = cursor {
        let (entries, next) = store.export_page(at).await.unwrap();
        all.extend(entries);
        cursor = next;
    }
    all
}

#[tokio::test]
async fn an_export_has_every_entry() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(export(folder.path()).await, [Value::Null; 0]);
    let store = SqliteStore::in_folder(folder.path());
    for number in 0..3 {
        add_note(&store, &format!("note {number}")).await.unwrap();
    }
    store.save_plan("k", SessionPlan::default()).await.unwrap();
    store.save_call(record("c", SystemTime::UNIX_EPOCH)).await.unwrap();
    let event = tool_sdk_core::EventRecord {
        call: "c".to_owned(),
        session: "s".to_owned(),
        at: SystemTime::UNIX_EPOCH,
        event: json!({ "type": "completed" }),
    };
    store.save_event(event).await.unwrap();
    store.save_conversation(conversation("v", 0, "hello")).await.unwrap();
    let all = export(folder.path()).await;
    let kinds: Vec<_> = all.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["note", "note", "note", "plan", "call", "event", "conversation"]);
    assert_eq!((&all[6]["id"], &all[6]["transcript"]), (&json!("v"), &json!(["hello"])));
    assert_eq!((&all[0]["content"], &all[0]["project"]), (&json!("note 0"), &json!("p")));
    assert_eq!((&all[3]["key"], &all[4]["call"]), (&json!("k"), &json!("c")));
    assert_eq!(all[5]["at"], "1970-01-01T00:00:00.000Z");
}

#[tokio::test]
async fn a_history_over_its_limit_loses_the_oldest_calls() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::in_folder(folder.path()).with_max_history_bytes(200_000);
    for number in 0..100 {
        let started = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number);
        let large = json!("x".repeat(10_000));
        let call = CallRecord { response: Some(large), ..record(&format!("c{number}"), started) };
        store.save_call(call).await.unwrap();
    }
    let calls = store.list_calls("s").await.unwrap();
    assert!((10..25).contains(&calls.len()), "{}", calls.len());
    assert_eq!(calls.last().unwrap().call, "c99");
}

// Conversations may take half of the history; beyond that, they go before calls do.
#[tokio::test]
async fn conversations_over_their_half_go_before_calls() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::in_folder(folder.path()).with_max_history_bytes(300_000);
    store.save_call(record("c", SystemTime::UNIX_EPOCH)).await.unwrap();
    for number in 0..60 {
        let long = conversation(&format!("v{number}"), number, &"x".repeat(10_000));
        store.save_conversation(long).await.unwrap();
    }
    let kept = store.list_conversations(&ConversationQuery::default()).await.unwrap();
    assert!((10..28).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept[0].id, "v59");
    assert!(store.find_call("c").await.unwrap().is_some());
}

// A deleted note leaves no word in the file, and the index stays in step with the notes.
#[tokio::test]
async fn a_deleted_note_leaves_no_trace_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::in_folder(folder.path());
    let note = store.create_note(&owner(), NoteDraft::new("xyzzyplugh")).await.unwrap();
    add_note(&store, "other").await.unwrap();
    store.delete_note(&owner(), &note.id, None).await.unwrap();
    let report = store.describe().await.unwrap();
    assert_eq!(report.databases[0].soundness, "ok");
    assert_eq!(report.databases[0].entries, [("notes", 1), ("plans", 0)]);
    let copy = folder.path().join("copy.db");
    store.back_up(&copy).await.unwrap();
    let bytes = std::fs::read(&copy).unwrap();
    assert!(!bytes.windows(10).any(|it| it == b"xyzzyplugh"), "it is still there");
}
