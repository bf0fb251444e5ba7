//! Versioned migrations: brings a database to the schema that the program knows.
//!
//! The version is `PRAGMA user_version`. It is read first, so that a database of the current
//! version is opened without a write lock. Each step runs in the one transaction that also sets the
//! version, after the version was read again: of several processes that start at once, one
//! migrates.
//!
//! **Invariant:** a database is at one of the known versions, or it is not opened. A step that fails
//! leaves the database as it was.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;
use crate::error::OpenFailure;

/// The steps of `state.db`; the first one creates version 1.
pub(crate) const STATE: &[&str] = &[include_str!("state_1.sql")];

/// The steps of `history.db`.
pub(crate) const HISTORY: &[&str] = &[include_str!("history_1.sql"), include_str!("history_2.sql")];

/// Marks the databases of this crate: `tsdk`.
const APPLICATION_ID: i64 = 0x7473_646b;

/// Brings the database to the last version.
pub(crate) fn migrate(
    connection: &mut Connection,
    steps: &[&str],
    path: &Path,
) -> Result<(), OpenFailure> {
    let sqlite = |error| OpenFailure::from_sqlite(error, path);
    let from = current_version(connection).map_err(sqlite)?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if is_foreign(connection, from).map_err(sqlite)? {
        return Err(OpenFailure::Refused(StoreError::Foreign { path: path.to_owned() }));
    }
    if from > known {
        let path = path.to_owned();
        return Err(OpenFailure::Refused(StoreError::Newer { path, found: from, known }));
    }
    if from == known {
        return Ok(());
    }
    if from > 0 {
        keep_backup(connection, from, path).map_err(sqlite)?;
    }
    run_steps(connection, steps).map_err(|source| match sqlite(source) {
        OpenFailure::Refused(StoreError::Sqlite { path, source }) => {
            OpenFailure::Refused(StoreError::Migration { path, from, to: known, source })
        }
        known_cause => known_cause,
    })
}

pub(crate) fn current_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Returns whether another program made the database. An empty one is of no program yet.
fn is_foreign(connection: &Connection, version: i64) -> rusqlite::Result<bool> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    // Also reads the schema, which finds most corrupt files.
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(id != APPLICATION_ID && (id != 0 || version != 0 || tables != 0))
}

fn run_steps(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = usize::try_from(current_version(&transaction)?).unwrap_or_default();
    for step in steps.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    let version = i64::try_from(steps.len().max(done)).unwrap_or(i64::MAX);
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

/// Keeps a copy of the database as it was, beside it, unless an earlier attempt already did.
fn keep_backup(connection: &Connection, version: i64, path: &Path) -> rusqlite::Result<()> {
    let mut copy = path.as_os_str().to_owned();
    copy.push(format!(".version-{version}"));
    match crate::creation::create_private(Path::new(&copy)) {
        Ok(()) => connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map(drop),
        // The migration is a transaction; the copy is for users who go back to an older program.
        Err(_) => Ok(()),
    }
}
