//! Why what is kept could not be read or changed.

use std::io;
use std::path::{Path, PathBuf};

/// What is kept could not be read or changed.
///
/// Whatever it is, nothing counts as approved or seen because of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else could have written it, so it is not believed.
    #[error(
        "`{}` is not trusted with what was approved: {why}; make it private or choose another \
         state folder",
        path.display()
    )]
    Refused {
        /// What is not trusted.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// Another process did not let go of it in time.
    #[error("another process is writing to `{}`; try again", path.display())]
    Busy {
        /// The file that says who may write.
        path: PathBuf,
    },
    /// The file was not what this version writes.
    #[error(
        "the stored approvals were set aside as `{}`, because {why}; what they allowed is \
         asked again",
        aside.display()
    )]
    Corrupt {
        /// Where the file is now.
        aside: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The workspace is not there, or another folder took its place.
    #[error(
        "`{}` is not the folder that the session started in; start a new session",
        path.display()
    )]
    Workspace {
        /// The workspace.
        path: PathBuf,
    },
    /// There are too many approvals.
    #[error("there is no room for more approvals in `{}`; revoke some", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl StoreError {
    /// For `map_err`: says what could not be done.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    pub(crate) fn refused(path: &Path, why: &'static str) -> Self {
        Self::Refused { path: path.to_owned(), why }
    }
}
