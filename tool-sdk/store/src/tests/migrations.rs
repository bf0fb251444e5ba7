//! The mechanism of migrations, held by schemas of two versions.

use rusqlite::Connection;
use tool_sdk_core::{ConversationStore as _, SessionStore as _};

use super::{add_note, conversation};
use crate::error::OpenFailure;
use crate::migrations::{HISTORY, STATE, current_version, migrate};
use crate::{SqliteStore, StoreError};

const FIRST: &str = "CREATE TABLE words (word TEXT); INSERT INTO words VALUES ('old');";
const SECOND: &str = "ALTER TABLE words ADD COLUMN length INTEGER; UPDATE words SET length = 3;";

fn open(folder: &tempfile::TempDir) -> (Connection, std::path::PathBuf) {
    let path = folder.path().join("words.db");
    (Connection::open(&path).unwrap(), path)
}

fn refused(result: Result<(), OpenFailure>) -> StoreError {
    match result {
        Err(OpenFailure::Refused(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_database_is_brought_to_the_last_version() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open(&folder);
    migrate(&mut connection, &[FIRST], &path).unwrap();
    assert_eq!(current_version(&connection).unwrap(), 1);
    migrate(&mut connection, &[FIRST, SECOND], &path).unwrap();
    migrate(&mut connection, &[FIRST, SECOND], &path).unwrap();
    let sql = "SELECT word, length FROM words";
    let row: (String, i64) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(row, ("old".to_owned(), 3));
    let before = Connection::open(folder.path().join("words.db.version-1")).unwrap();
    assert_eq!(current_version(&before).unwrap(), 1, "a copy of the old version is kept");
}

#[test]
fn a_failed_step_leaves_the_old_version() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open(&folder);
    migrate(&mut connection, &[FIRST], &path).unwrap();
    let broken = "DELETE FROM words; INSERT INTO absent VALUES (1);";
    let error = refused(migrate(&mut connection, &[FIRST, broken], &path));
    assert!(matches!(error, StoreError::Migration { from: 1, to: 2, .. }), "{error:?}");
    assert!(error.to_string().ends_with("from version 1 to 2; it is unchanged"), "{error}");
    let count: i64 =
        connection.query_row("SELECT count(*) FROM words", [], |row| row.get(0)).unwrap();
    assert_eq!((count, current_version(&connection).unwrap()), (1, 1));
}

#[test]
fn a_newer_version_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open(&folder);
    migrate(&mut connection, &[FIRST, SECOND], &path).unwrap();
    let error = refused(migrate(&mut connection, &[FIRST], &path));
    let words = "has version 2 and this program knows versions up to 1; use the newer program";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open(&folder);
    connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = refused(migrate(&mut connection, &[FIRST], &path));
    assert!(error.to_string().contains("of another program"), "{error}");
}

#[test]
fn of_two_migrations_at_once_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (mut connection, path) = open(&folder);
    migrate(&mut connection, &[FIRST], &path).unwrap();
    let counting = "CREATE TABLE runs (x); INSERT INTO runs VALUES (1);";
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut own = Connection::open(&path).unwrap();
                own.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
                migrate(&mut own, &[FIRST, counting], &path).unwrap();
            });
        }
    });
    let runs: i64 =
        connection.query_row("SELECT count(*) FROM runs", [], |row| row.get(0)).unwrap();
    assert_eq!(runs, 1);
}

/// Puts a database of an earlier version into a folder.
fn place(bytes: &[u8], folder: &tempfile::TempDir, name: &str) {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// The first published version, with one note: later versions must still open it.
#[tokio::test]
async fn a_database_of_version_1_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    place(include_bytes!("state_version_1.db"), &folder, "state.db");
    let store = SqliteStore::in_folder(folder.path());
    assert_eq!(add_note(&store, "new").await.unwrap(), ["new", "from version 1"]);
    let report = store.describe().await.unwrap();
    assert_eq!(report.databases[0].version, i64::try_from(STATE.len()).unwrap());
}

/// The version before conversations were kept, with one call and its event.
#[tokio::test]
async fn a_history_of_version_1_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    place(include_bytes!("history_version_1.db"), &folder, "history.db");
    let store = SqliteStore::in_folder(folder.path());
    let call = store.find_call("c").await.unwrap().unwrap();
    assert_eq!((call.tool.as_str(), store.list_events("c").await.unwrap().len()), ("t", 1));
    assert!(store.add_conversation(conversation("v", 1, "hello")).await.unwrap());
    let report = store.describe().await.unwrap();
    assert_eq!(report.databases[0].version, i64::try_from(HISTORY.len()).unwrap());
    assert_eq!(report.set_aside, [folder.path().join("history.db.version-1")]);
}
