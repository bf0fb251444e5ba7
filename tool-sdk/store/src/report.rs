//! What the databases hold, for people.

use std::io;
use std::path::{Path, PathBuf};

use tool_sdk_core::internal::private_file::metadata_if_exists;

use crate::database::{Database, DatabaseKind};
use crate::migrations::current_version;
use crate::set_aside::{check_soundness, with_suffix};
use crate::{SqliteStore, StoreError};

/// What the state folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateReport {
    /// The folder.
    pub folder: PathBuf,
    /// The version of the linked SQLite.
    pub sqlite: &'static str,
    /// The databases that exist.
    pub databases: Vec<DatabaseReport>,
    /// The files of corrupt databases that were set aside, and copies of older versions.
    pub set_aside: Vec<PathBuf>,
}

/// What a database holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseReport {
    /// The file.
    pub path: PathBuf,
    /// Its size with its log, in bytes.
    pub bytes: u64,
    /// The version of its schema.
    pub version: i64,
    /// `ok`, or the first thing that SQLite finds wrong.
    pub soundness: String,
    /// The number of entries of each kind.
    pub entries: Vec<(&'static str, u64)>,
}

impl DatabaseKind {
    /// The kinds of entries, each with its table.
    const fn tables(self) -> &'static [&'static str] {
        match self {
            Self::State => &["notes", "plans"],
            Self::History => &["calls", "events", "conversations"],
        }
    }
}

impl SqliteStore {
    /// Reports what the folder holds. Databases that do not exist are not created.
    ///
    /// # Errors
    ///
    /// Fails when a database cannot be opened.
    pub async fn describe(&self) -> io::Result<StateReport> {
        let folder = self.folder().ok_or(StoreError::NoFolder)?.to_owned();
        let mut databases = Vec::new();
        for database in [&self.state, &self.history] {
            databases.extend(describe_database(database).await?);
        }
        let set_aside = list_set_aside(&folder)?;
        Ok(StateReport { folder, sqlite: rusqlite::version(), databases, set_aside })
    }
}

impl Database {
    /// Returns whether the database was ever created.
    pub(crate) fn exists(&self) -> Result<bool, StoreError> {
        let Some(folder) = self.folder() else { return Ok(false) };
        let path = folder.join(self.kind().file_name());
        let found =
            metadata_if_exists(&path).map_err(|error| StoreError::from_private(error, &path))?;
        Ok(found.is_some())
    }
}

async fn describe_database(database: &Database) -> Result<Option<DatabaseReport>, StoreError> {
    let Some(folder) = database.folder() else { return Ok(None) };
    if !database.exists()? {
        return Ok(None);
    }
    let path = folder.join(database.kind().file_name());
    let tables = database.kind().tables();
    let described = database.read(move |connection| {
        let mut entries = Vec::new();
        for table in tables {
            let sql = format!("SELECT count(*) FROM {table}");
            let count: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
            entries.push((*table, count.try_into().unwrap_or_default()));
        }
        Ok((current_version(connection)?, check_soundness(connection)?, entries))
    });
    let (version, soundness, entries) = described.await?;
    let bytes = file_size(&path) + file_size(&with_suffix(&path, "-wal"));
    Ok(Some(DatabaseReport { path, bytes, version, soundness, entries }))
}

fn file_size(path: &Path) -> u64 {
    metadata_if_exists(path).ok().flatten().map_or(0, |metadata| metadata.len())
}

/// Lists the files beside the databases that no program uses any more.
fn list_set_aside(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("list", folder))?,
    };
    let is_left = |name: &str| {
        [DatabaseKind::State, DatabaseKind::History].iter().any(|kind| {
            name.strip_prefix(kind.file_name())
                .is_some_and(|rest| rest.starts_with(".corrupt-") || rest.starts_with(".version-"))
        })
    };
    let mut left: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_left))
        .map(|entry| entry.path())
        .collect();
    left.sort();
    Ok(left)
}
