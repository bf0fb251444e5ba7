//! Creates a database: a private file, its journal mode, and its first schema.
//!
//! **Invariant:** the journal mode is set here and never again, because setting it takes a lock that
//! other processes would have to wait for.

use std::io;
use std::path::Path;

use rusqlite::Connection;
use tool_sdk_core::internal::private_file::{
    LOCK_TIMEOUT, acquire_lock, check_private_path, create_new,
};

use crate::StoreError;
use crate::database::{DatabaseKind, connect, open_current};
use crate::error::OpenFailure;
use crate::file_system::journal_mode_for;

/// Returns whether the database is missing or empty. A process that died while it created the
/// database leaves an empty file, or one of version 0 that the next migration completes.
pub(crate) fn is_missing(path: &Path) -> Result<bool, StoreError> {
    let metadata =
        check_private_path(path).map_err(|error| StoreError::from_private(error, path))?;
    Ok(metadata.is_none_or(|metadata| metadata.len() == 0))
}

/// Creates the database, unless another process did so while this one waited for the lock.
pub(crate) fn create(kind: DatabaseKind, path: &Path, lock: &Path) -> Result<(), StoreError> {
    let _lock =
        acquire_lock(lock, LOCK_TIMEOUT).map_err(|error| StoreError::from_private(error, lock))?;
    if !is_missing(path)? {
        return Ok(());
    }
    match create_private(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(match error.kind() {
                io::ErrorKind::StorageFull => StoreError::DiskFull { path: path.to_owned() },
                io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path: path.to_owned() },
                _ => StoreError::io("create", path)(error),
            });
        }
        _ => {}
    }
    let set_up = connect(kind, path).and_then(|connection| set_up_file(&connection, path));
    set_up.map_err(|error| StoreError::from_sqlite(error, path))?;
    match open_current(kind, path) {
        Err(OpenFailure::Refused(error)) => Err(error),
        // Where it is corrupt, the next attempt to open it sets it aside.
        Ok(_) | Err(OpenFailure::Corrupt) => Ok(()),
    }
}

/// Sets what is only possible for an empty file, or only needed once.
fn set_up_file(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let mode = journal_mode_for(path.parent().unwrap_or(path)).as_str();
    connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))
}

/// Creates an empty file with mode `0o600`. SQLite gives its other files the mode of the database.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    create_new(path).map(drop)
}
