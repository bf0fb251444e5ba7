//! Errors of the databases.
//!
//! Each message names the file, the problem and what to do. The traits of the runtime return
//! [`io::Error`], whose kind says what a caller can do about it and whose source is the
//! [`StoreError`].

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tool_sdk_core::PrivateFileError;

/// A database could not be opened, read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The host has no folder for state.
    #[error("there is no state folder; set `--state-dir` or HOME")]
    NoFolder,
    /// Another user could have written the file or the folder.
    #[error("`{}` is not trusted: {why}; make it private or choose another state folder", path.display())]
    Untrusted {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The program is linked with an SQLite that can corrupt a file which several processes use.
    #[error(
        "SQLite {version} is too old; at least 3.51.3 is needed, because earlier ones can corrupt a file that several processes use"
    )]
    OldSqlite {
        /// Its version.
        version: &'static str,
    },
    /// A newer program wrote the file.
    #[error("`{}` has version {found} and this program knows versions up to {known}; use the newer program, or another state folder", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The last version that is known.
        known: i64,
    },
    /// The file is a database of another program.
    #[error("`{}` is a database of another program; choose another state folder", path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// The step to a newer version failed; the file is as it was.
    #[error("cannot bring `{}` from version {from} to {to}; it is unchanged", path.display())]
    Migration {
        /// The database.
        path: PathBuf,
        /// Its version.
        from: i64,
        /// The version that could not be reached.
        to: i64,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The file was corrupt and has been renamed; the next call starts a new one.
    #[error("`{}` was corrupt and was set aside as `{}`; try again to start with a new one", path.display(), aside.display())]
    SetAside {
        /// The database.
        path: PathBuf,
        /// Its new path.
        aside: PathBuf,
    },
    /// The file is corrupt, and other processes have it open.
    #[error("`{}` is corrupt and other processes use it; end them and try again", path.display())]
    CorruptInUse {
        /// The database.
        path: PathBuf,
    },
    /// Other processes held a lock for too long.
    #[error("other processes are writing to `{}`; try again", path.display())]
    Busy {
        /// The database or lock file.
        path: PathBuf,
    },
    /// The disk is full; the last complete state is kept.
    #[error("the disk with `{}` is full; nothing was changed", path.display())]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("`{}` is read-only; nothing was changed", path.display())]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// A row could not be read back.
    #[error("`{}` has an entry that cannot be read: {why}", path.display())]
    InvalidRow {
        /// The database.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another error of SQLite.
    #[error("SQLite cannot use `{}`: {source}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// An I/O error.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl StoreError {
    /// Returns a closure for `map_err` that adds the failed operation and the path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    /// Converts an error of a private file or folder.
    pub(crate) fn from_private(error: PrivateFileError, at: &Path) -> Self {
        match error {
            PrivateFileError::Untrusted { path, why } => Self::Untrusted { path, why },
            PrivateFileError::Busy { path } => Self::Busy { path },
            PrivateFileError::Io { doing, path, source } => Self::Io { doing, path, source },
            other => {
                Self::Io { doing: "use", path: at.to_owned(), source: io::Error::other(other) }
            }
        }
    }

    /// Converts an error of SQLite.
    pub(crate) fn from_sqlite(source: rusqlite::Error, path: &Path) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            _ => match source {
                rusqlite::Error::FromSqlConversionFailure(_, _, why) => {
                    Self::InvalidRow { path, why: why.to_string() }
                }
                source => Self::Sqlite { path, source },
            },
        }
    }

    /// Returns the kind of the [`io::Error`] that a store returns for the error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NoFolder => io::ErrorKind::NotFound,
            Self::Untrusted { .. } => io::ErrorKind::PermissionDenied,
            Self::OldSqlite { .. } | Self::Newer { .. } => io::ErrorKind::Unsupported,
            Self::Busy { .. } | Self::CorruptInUse { .. } => io::ErrorKind::ResourceBusy,
            Self::DiskFull { .. } => io::ErrorKind::StorageFull,
            Self::ReadOnly { .. } => io::ErrorKind::ReadOnlyFilesystem,
            Self::Foreign { .. } | Self::SetAside { .. } | Self::InvalidRow { .. } => {
                io::ErrorKind::InvalidData
            }
            Self::Io { source, .. } => source.kind(),
            Self::Migration { .. } | Self::Sqlite { .. } => io::ErrorKind::Other,
        }
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// Why a database could not be opened.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    /// It is corrupt, and can be set aside.
    Corrupt,
    /// Another reason.
    Refused(StoreError),
}

impl OpenFailure {
    pub(crate) fn from_sqlite(error: rusqlite::Error, path: &Path) -> Self {
        if is_corrupt(&error) {
            return Self::Corrupt;
        }
        Self::Refused(StoreError::from_sqlite(error, path))
    }
}

/// Returns whether SQLite found the file to be corrupt, or no database at all.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}
