//! The two databases of a state folder as one store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::creation::create_private;
use crate::database::{Database, DatabaseKind};

/// A store in a folder, which implements the store traits of the runtime.
///
/// `state.db` has the notes and the plans, `history.db` the calls with their events and the
/// conversations of agents. Nothing is created or opened before the first use. Clones share the connections. Methods run on blocking threads of the
/// `tokio` runtime that polls them.
///
/// Notes and plans survive the death of the process and a power failure as soon as a method has returned.
/// The history survives the death of the process, and is limited to
/// [`DEFAULT_MAX_HISTORY_BYTES`](Self::DEFAULT_MAX_HISTORY_BYTES): over it, the oldest
/// conversations go if they take more than half of it, otherwise the oldest calls.
///
/// # Examples
///
/// ```
/// use tool_sdk::store::SqliteStore;
/// use tool_sdk::{MemoryOwner, MemoryStore, NoteDraft, NoteQuery};
///
/// # let folder = std::env::temp_dir().join(format!("sqlite-store-{}", std::process::id()));
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let owner = MemoryOwner { user: None, project: Some("garden".to_owned()) };
/// let store = SqliteStore::in_folder(&folder);
/// store.create_note(&owner, NoteDraft::new("roses need sun")).await?;
///
/// let later = SqliteStore::in_folder(&folder);
/// let page = later.search_notes(&owner, &NoteQuery::new("roses")).await?;
/// assert_eq!(page.matches[0].note.content, "roses need sun");
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) state: Database,
    pub(crate) history: Database,
    pub(crate) max_history_bytes: u64,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("folder", &self.folder()).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// The size that the history is limited to by default.
    pub const DEFAULT_MAX_HISTORY_BYTES: u64 = 256 << 20;

    /// Creates a store in `folder`, which must be private to the user; it is created on first use.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self::new(Some(folder.into()))
    }

    /// Creates a store for a host without a state folder: each method fails and says so.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::new(None)
    }

    fn new(folder: Option<PathBuf>) -> Self {
        Self {
            state: Database::new(DatabaseKind::State, folder.clone()),
            history: Database::new(DatabaseKind::History, folder),
            max_history_bytes: Self::DEFAULT_MAX_HISTORY_BYTES,
        }
    }

    /// Limits the size of the history in bytes.
    #[must_use]
    pub fn with_max_history_bytes(self, bytes: u64) -> Self {
        Self { max_history_bytes: bytes, ..self }
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.state.folder()
    }

    /// Copies `state.db` to the new file `target`, and `history.db`, if there is one, to a file beside
    /// `target` whose name ends with `-history`: `copy-history.db` beside `copy.db`. The files have mode
    /// `0o600`, and other processes may write to the databases meanwhile.
    ///
    /// Each copy is a database of its own, as of one moment. To restore them, put them into an empty
    /// folder under the names of the databases.
    ///
    /// # Errors
    ///
    /// Fails if one of the files exists or cannot be written; then no new file is left.
    pub async fn back_up(&self, target: &Path) -> io::Result<StateBackup> {
        let history = self.history.exists()?.then(|| history_copy_path(target));
        copy_database(&self.state, target).await?;
        if let Some(history) = &history
            && let Err(error) = copy_database(&self.history, history).await
        {
            let _ = std::fs::remove_file(target);
            return Err(error.into());
        }
        Ok(StateBackup { state: target.to_owned(), history })
    }
}

/// The files of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateBackup {
    /// The copy of `state.db`.
    pub state: PathBuf,
    /// The copy of `history.db`, if there was one.
    pub history: Option<PathBuf>,
}

/// Returns the file for the history beside that for the state.
fn history_copy_path(target: &Path) -> PathBuf {
    let mut name = target.file_stem().unwrap_or_default().to_owned();
    name.push("-history");
    if let Some(extension) = target.extension() {
        name.push(".");
        name.push(extension);
    }
    target.with_file_name(name)
}

/// Copies a database to a new file; no file is left when that fails.
async fn copy_database(database: &Database, target: &Path) -> Result<(), StoreError> {
    create_private(target).map_err(StoreError::io("create", target))?;
    let file = target.to_owned();
    let copy = database
        .read(move |connection| connection.execute("VACUUM INTO ?1", [file.to_string_lossy()]));
    copy.await.map(drop).inspect_err(|_| {
        // SQLite has closed it, so no lock is lost.
        let _ = std::fs::remove_file(target);
    })
}
