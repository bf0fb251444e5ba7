//! Errors of private files, such as the stored approvals.

use std::io;
use std::path::{Path, PathBuf};

/// A private file, such as the stored approvals, could not be read or changed.
///
/// It fails closed: after an error no call counts as approved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateFileError {
    /// Another user could have written the file, so it is not trusted.
    #[error(
        "`{}` is not trusted with what was approved: {why}; make it private or choose another \
         state folder",
        path.display()
    )]
    Untrusted {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// Another process held the lock until the timeout.
    #[error("another process is writing to `{}`; try again", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
    /// The file is corrupt or has an unknown format, and was renamed.
    #[error(
        "the stored approvals were set aside as `{}`, because {why}; what they allowed is \
         asked again",
        aside.display()
    )]
    Corrupt {
        /// The new path of the file.
        aside: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The workspace was removed, or replaced by another folder.
    #[error(
        "`{}` is not the folder that the session started in; start a new session",
        path.display()
    )]
    WorkspaceReplaced {
        /// The workspace.
        path: PathBuf,
    },
    /// The limit of stored approvals is reached.
    #[error("the limit of approvals in `{}` is reached; revoke some", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// An I/O error.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl PrivateFileError {
    /// Returns a closure for `map_err` that adds the failed operation and the path.
    #[doc(hidden)]
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    pub(crate) fn untrusted(path: &Path, why: &'static str) -> Self {
        Self::Untrusted { path: path.to_owned(), why }
    }
}
