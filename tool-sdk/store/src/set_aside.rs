//! Sets a corrupt database aside: its three files get new names together.
//!
//! **Invariant:** nothing is deleted, and no file is renamed while a connection is open. Each
//! process holds the shared lock of the folder while it has one, and this needs the exclusive lock.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use tool_sdk_core::internal::private_file::{acquire_lock, metadata_if_exists, sync_folder};
use tool_sdk_core::internal::rfc3339;

use crate::StoreError;
use crate::database::{DatabaseKind, connect};

/// How long to wait for other processes to close the database.
const PATIENCE: Duration = Duration::from_secs(2);

/// What SQLite keeps beside a database. The log goes first: one that stayed behind would be taken
/// for that of the new database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Renames the database if it is still corrupt. Returns the error that tells of it, or `None` if
/// another process has already replaced it. The caller holds no lock and no connection.
pub(crate) fn set_aside(
    kind: DatabaseKind,
    path: &Path,
    lock: &Path,
) -> Result<Option<StoreError>, StoreError> {
    let Ok(_lock) = acquire_lock(lock, PATIENCE) else {
        return Err(StoreError::CorruptInUse { path: path.to_owned() });
    };
    if is_sound(kind, path) {
        return Ok(None);
    }
    let aside = free_name(path)?;
    for companion in COMPANIONS {
        let (from, to) = (with_suffix(path, companion), with_suffix(&aside, companion));
        match fs::rename(&from, to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io("set aside", &from)(error));
            }
            _ => {}
        }
    }
    fs::rename(path, &aside).map_err(StoreError::io("set aside", path))?;
    let folder = path.parent().unwrap_or(path);
    sync_folder(folder).map_err(StoreError::io("write", folder))?;
    let error = StoreError::SetAside { path: path.to_owned(), aside };
    tracing::error!("{error}");
    Ok(Some(error))
}

/// Returns whether SQLite finds nothing wrong with the database.
fn is_sound(kind: DatabaseKind, path: &Path) -> bool {
    let Ok(connection) = connect(kind, path) else { return false };
    check_soundness(&connection).is_ok_and(|found| found == "ok")
}

/// Returns `ok`, or the first thing that is wrong with the database.
pub(crate) fn check_soundness(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
}

/// Returns a path beside the database that does not exist, with the time in it.
fn free_name(path: &Path) -> Result<PathBuf, StoreError> {
    let now = rfc3339(SystemTime::now()).replace([':', '.'], "-");
    for number in 0..1000 {
        let suffix = match number {
            0 => format!(".corrupt-{now}"),
            number => format!(".corrupt-{now}-{number}"),
        };
        let aside = with_suffix(path, &suffix);
        let there = metadata_if_exists(&aside);
        if there.map_err(|error| StoreError::from_private(error, path))?.is_none() {
            return Ok(aside);
        }
    }
    let error = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
    Err(StoreError::io("set aside", path)(error))
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
