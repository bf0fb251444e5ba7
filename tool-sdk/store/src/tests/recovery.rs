//! Databases that are corrupt, locked or cannot be written.

use std::path::{Path, PathBuf};

use super::{add_note, owner};
use crate::{SqliteStore, StoreError};
use tool_sdk_core::{MemoryStore as _, NoteQuery};

/// The files that were set aside, by their names.
fn files_aside(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.contains(".corrupt-"));
    names.sort();
    names
}

fn overwrite(path: &Path, at: usize, with: &[u8]) {
    let mut bytes = std::fs::read(path).unwrap();
    let end = (at + with.len()).min(bytes.len());
    bytes[at..end].copy_from_slice(&with[..end - at]);
    std::fs::write(path, bytes).unwrap();
}

fn store_error(error: &std::io::Error) -> &StoreError {
    error.get_ref().and_then(|it| it.downcast_ref()).expect("it is an error of the store")
}

/// Creates a database with a note and returns its path.
async fn create(folder: &Path) -> PathBuf {
    add_note(&SqliteStore::in_folder(folder), "old").await.unwrap();
    folder.join("state.db")
}

// The user is told by the error; the next call starts anew, and nothing is deleted.
#[tokio::test]
async fn a_corrupt_file_is_set_aside_with_its_date() {
    let garbage = [0x5a_u8; 8192];
    for (at, length) in [(0, 100), (0, 8192), (8192, 8192)] {
        let folder = tempfile::tempdir().unwrap();
        let path = create(folder.path()).await;
        overwrite(&path, at, &garbage[..length]);
        let before = std::fs::read(&path).unwrap();

        let store = SqliteStore::in_folder(folder.path());
        let error = add_note(&store, "new").await.unwrap_err();
        let StoreError::SetAside { aside, .. } = store_error(&error) else { panic!("{error}") };
        assert!(error.to_string().contains("try again to start with a new one"), "{error}");
        assert_eq!(std::fs::read(aside).unwrap(), before, "it is kept as it was");
        let name = aside.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("state.db.corrupt-20") && name.ends_with('Z'), "{name}");
        assert_eq!(add_note(&store, "new").await.unwrap(), ["new"]);
        assert_eq!(files_aside(folder.path())[0], name);
        assert_eq!(store.describe().await.unwrap().set_aside[0], *aside);
    }
}

#[tokio::test]
async fn the_log_of_a_corrupt_file_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = create(folder.path()).await;
    overwrite(&path, 0, &[0x5a; 100]);
    std::fs::write(folder.path().join("state.db-wal"), "log").unwrap();
    std::fs::write(folder.path().join("state.db-shm"), "index").unwrap();
    let store = SqliteStore::in_folder(folder.path());
    add_note(&store, "new").await.unwrap_err();
    let aside = files_aside(folder.path());
    assert_eq!(aside.len(), 3, "{aside:?}");
    assert!(aside[1] == format!("{}-shm", aside[0]) && aside[2] == format!("{}-wal", aside[0]));
    assert_eq!(add_note(&store, "new").await.unwrap(), ["new"]);
}

// A file that another process has open is not renamed under it.
#[tokio::test]
async fn a_corrupt_file_in_use_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = create(folder.path()).await;
    let other = SqliteStore::in_folder(folder.path());
    other.search_notes(&owner(), &NoteQuery::new("")).await.unwrap();
    // The other store has the log and the pages in memory.
    overwrite(&path, 0, &[0x5a; 100]);
    let error = add_note(&SqliteStore::in_folder(folder.path()), "new").await.unwrap_err();
    assert!(matches!(store_error(&error), StoreError::CorruptInUse { .. }), "{error}");
    assert_eq!(files_aside(folder.path()), [""; 0]);
}

// What a process that died while it created the database leaves.
#[tokio::test]
async fn an_unfinished_creation_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    crate::creation::create_private(&path).unwrap();
    assert_eq!(add_note(&SqliteStore::in_folder(folder.path()), "a").await.unwrap(), ["a"]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    crate::creation::create_private(&path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    drop(connection);
    assert_eq!(add_note(&SqliteStore::in_folder(folder.path()), "a").await.unwrap(), ["a"]);
}

// Opening takes no write lock, so it does not wait for a process that writes for long.
#[tokio::test]
async fn a_reader_does_not_wait_for_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = create(folder.path()).await;
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; DELETE FROM notes").unwrap();
    let store = SqliteStore::in_folder(folder.path());
    let page = store.search_notes(&owner(), &NoteQuery::new("old")).await.unwrap();
    assert_eq!(page.matches.len(), 1);
}
