//! One database: opened on first use, by one connection of the process, on blocking threads.
//!
//! One connection is enough, because transactions are short, and it keeps the process from waiting
//! for its own locks. Other processes have connections of their own; SQLite orders their writes.
//!
//! **Invariant:** while the connection is open, the process holds the shared lock of the database.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use tool_sdk_core::internal::private_file::{
    FileLock, LOCK_TIMEOUT, PrivateFolder, acquire_shared_lock,
};

use crate::error::{OpenFailure, is_corrupt};
use crate::migrations::{self, migrate};
use crate::set_aside::{set_aside, with_suffix};
use crate::{StoreError, creation};

/// How long a statement waits for the writes of other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// The first version of SQLite whose write-ahead log is safe with several processes. Up to 3.51.2 a
/// checkpoint with a stale header could write an inconsistent database.
const MIN_SQLITE: i32 = 3_051_003;

/// The size that the log keeps after its content was moved to the database.
const MAX_LOG_BYTES: i64 = 4 << 20;

/// How often opening is tried again after another process created or replaced the database.
const MAX_ATTEMPTS: usize = 4;

/// Which of the two databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    /// Small and precious: notes and plans.
    State,
    /// Large and replaceable: calls, events and conversations.
    History,
}

impl DatabaseKind {
    pub(crate) const fn file_name(self) -> &'static str {
        match self {
            Self::State => "state.db",
            Self::History => "history.db",
        }
    }

    pub(crate) const fn migrations(self) -> &'static [&'static str] {
        match self {
            Self::State => migrations::STATE,
            Self::History => migrations::HISTORY,
        }
    }

    /// How SQLite flushes to disk. Neither loses a write when the process dies; a power failure may
    /// lose the last calls of the history.
    const fn synchronous(self) -> &'static str {
        match self {
            Self::State => "FULL",
            Self::History => "NORMAL",
        }
    }
}

/// A database that is opened on first use.
#[derive(Clone)]
pub(crate) struct Database {
    shared: Arc<SharedDatabase>,
}

struct SharedDatabase {
    kind: DatabaseKind,
    /// The folder; `None` if the host has none.
    folder: Option<PathBuf>,
    open: Mutex<Option<OpenDatabase>>,
}

/// An open connection. The fields are dropped in this order.
struct OpenDatabase {
    connection: Connection,
    path: PathBuf,
    _lock: FileLock,
}

impl Database {
    pub(crate) fn new(kind: DatabaseKind, folder: Option<PathBuf>) -> Self {
        Self { shared: Arc::new(SharedDatabase { kind, folder, open: Mutex::new(None) }) }
    }

    pub(crate) fn kind(&self) -> DatabaseKind {
        self.shared.kind
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.shared.folder.as_deref()
    }

    /// Runs `read` on a blocking thread.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(move |open| read(&open.connection)).await
    }

    /// Runs `read` on a blocking thread if there is a database; `None` without one.
    pub(crate) async fn read_existing<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        if self.folder().is_none() {
            return self.read(read).await.map(Some);
        }
        let path = self.path_for_messages();
        let missing = tokio::task::spawn_blocking(move || creation::is_missing(&path)).await;
        // A check that did not end is answered by the read.
        match missing.unwrap_or(Ok(false))? {
            true => Ok(None),
            false => self.read(read).await.map(Some),
        }
    }

    /// Runs `write` in a transaction on a blocking thread. The transaction takes the write lock at
    /// its start, so that it never has to give up half-way because another process wrote.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(move |open| {
            let begun = open.connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let transaction = begun?;
            let value = write(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OpenDatabase) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.shared);
        let ended = tokio::task::spawn_blocking(move || shared.run(work)).await;
        ended.unwrap_or_else(|failure| match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(StoreError::Busy { path: self.path_for_messages() }),
        })
    }

    fn path_for_messages(&self) -> PathBuf {
        let name = self.shared.kind.file_name();
        self.shared.folder.as_deref().map_or_else(|| name.into(), |folder| folder.join(name))
    }
}

impl SharedDatabase {
    fn run<T>(
        &self,
        work: impl FnOnce(&mut OpenDatabase) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut slot = self.lock_slot();
        let open = match &mut *slot {
            Some(open) => open,
            empty => empty.insert(self.open()?),
        };
        let error = match work(open) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let path = open.path.clone();
        if !is_corrupt(&error) {
            return Err(StoreError::from_sqlite(error, &path));
        }
        let _ = keep_log_on_close(&open.connection, true);
        // Closes the connection and releases the lock.
        *slot = None;
        let reported = set_aside(self.kind, &path, &lock_path(&path)).unwrap_or_else(Some);
        Err(reported.unwrap_or_else(|| StoreError::from_sqlite(error, &path)))
    }

    /// A panic in a closure rolls its transaction back, so a poisoned lock still guards a usable
    /// connection.
    fn lock_slot(&self) -> MutexGuard<'_, Option<OpenDatabase>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<OpenDatabase, StoreError> {
        check_sqlite_version()?;
        let folder = self.folder.clone().ok_or(StoreError::NoFolder)?;
        let private = PrivateFolder::new(folder.clone()).create_folder();
        let folder = private.map_err(|error| StoreError::from_private(error, &folder))?;
        let path = folder.join(self.kind.file_name());
        let lock_path = lock_path(&path);
        for _ in 0..MAX_ATTEMPTS {
            let lock = acquire_shared_lock(&lock_path, LOCK_TIMEOUT)
                .map_err(|error| StoreError::from_private(error, &lock_path))?;
            if creation::is_missing(&path)? {
                drop(lock);
                creation::create(self.kind, &path, &lock_path)?;
                continue;
            }
            match open_current(self.kind, &path) {
                Ok(connection) => return Ok(OpenDatabase { connection, path, _lock: lock }),
                Err(OpenFailure::Refused(error)) => return Err(error),
                Err(OpenFailure::Corrupt) => {
                    drop(lock);
                    if let Some(error) = set_aside(self.kind, &path, &lock_path)? {
                        return Err(error);
                    }
                }
            }
        }
        Err(StoreError::Busy { path })
    }
}

/// Returns the lock file of a database: shared by those that have it open, and held alone to create
/// it or to set it aside.
fn lock_path(path: &Path) -> PathBuf {
    with_suffix(path, ".lock")
}

/// Fails if the linked SQLite can corrupt a database that several processes use.
pub(crate) fn check_sqlite_version() -> Result<(), StoreError> {
    if rusqlite::version_number() >= MIN_SQLITE {
        return Ok(());
    }
    Err(StoreError::OldSqlite { version: rusqlite::version() })
}

/// Opens an existing database, and brings it to the last version.
pub(crate) fn open_current(kind: DatabaseKind, path: &Path) -> Result<Connection, OpenFailure> {
    let sqlite = |error| OpenFailure::from_sqlite(error, path);
    let mut connection = connect(kind, path).map_err(sqlite)?;
    migrate(&mut connection, kind.migrations(), path)?;
    keep_log_on_close(&connection, false).map_err(sqlite)?;
    Ok(connection)
}

/// Decides whether closing the connection leaves the log as it is, so that the log of a corrupt
/// database can be set aside with it.
fn keep_log_on_close(connection: &Connection, keep: bool) -> rusqlite::Result<bool> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
}

/// Opens an existing file, and sets what holds for a connection.
pub(crate) fn connect(kind: DatabaseKind, path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    keep_log_on_close(&connection, true)?;
    set_up_connection(&connection, kind)?;
    Ok(connection)
}

fn set_up_connection(connection: &Connection, kind: DatabaseKind) -> rusqlite::Result<()> {
    // No SQL, not even that of a manipulated schema, can write past the tables.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.pragma_update(None, "synchronous", kind.synchronous())?;
    // After a large transaction, the log gives its space back.
    connection.pragma_update_and_check(None, "journal_size_limit", MAX_LOG_BYTES, |_| Ok(()))?;
    // What was deleted is overwritten.
    connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))
}
