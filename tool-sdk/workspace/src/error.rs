//! The error of file access, with a message for the model and a cause for the host.

use std::error::Error;
use std::fmt;

/// The kind of a [`WorkspaceError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkspaceErrorKind {
    /// The text is not a valid path.
    InvalidPath,
    /// The file or folder does not exist.
    NotFound,
    /// The path is outside of every root, or it may not be written, or the system denies access.
    Denied,
    /// The file changed after it was read.
    Conflict,
    /// The operation was cancelled, and nothing was written.
    Aborted,
    /// The operation failed.
    Failed,
}

/// Why a workspace could not be opened, or a file not be read or changed.
///
/// Message and hint are for the model: what is wrong with the path and what to send instead. The
/// [source](Error::source) is for the host. It converts into a `ToolError` of the same kind and
/// with the same texts.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ToolError, Workspace, WorkspaceErrorKind};
///
/// # let folder = tempfile::tempdir()?;
/// let error = Workspace::open([folder.path()])?.resolve("../notes").unwrap_err();
/// assert_eq!(error.kind(), WorkspaceErrorKind::Denied);
/// assert_eq!(error.message(), "`../notes` is outside the workspace");
/// assert!(error.suggestion().unwrap().starts_with("only files below"));
///
/// assert_eq!(ToolError::from(error).kind(), tool_sdk::ErrorKind::Denied);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WorkspaceError(Box<ErrorParts>);

struct ErrorParts {
    kind: WorkspaceErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl WorkspaceError {
    pub(crate) fn new(kind: WorkspaceErrorKind, message: impl fmt::Display) -> Self {
        Self(Box::new(ErrorParts { kind, message: message.to_string(), hint: None, source: None }))
    }

    pub(crate) fn invalid_path(message: impl fmt::Display) -> Self {
        Self::new(WorkspaceErrorKind::InvalidPath, message)
    }

    pub(crate) fn not_found(message: impl fmt::Display) -> Self {
        Self::new(WorkspaceErrorKind::NotFound, message)
    }

    pub(crate) fn denied(message: impl fmt::Display) -> Self {
        Self::new(WorkspaceErrorKind::Denied, message)
    }

    pub(crate) fn conflict(message: impl fmt::Display) -> Self {
        Self::new(WorkspaceErrorKind::Conflict, message)
    }

    pub(crate) fn aborted(message: impl fmt::Display) -> Self {
        Self::new(WorkspaceErrorKind::Aborted, message)
    }

    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::new(WorkspaceErrorKind::Failed, message)
    }

    /// Sets the hint: what the model should do instead.
    pub(crate) fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint = Some(hint.to_string());
        self
    }

    /// Sets the cause, for the host only.
    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub fn kind(&self) -> WorkspaceErrorKind {
        self.0.kind
    }

    /// Returns the message for the model.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the hint for the model.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the cause.
    #[must_use]
    pub fn into_source(self) -> Option<Box<dyn Error + Send + Sync>> {
        self.0.source
    }
}

impl fmt::Display for WorkspaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for WorkspaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorParts { kind, message, hint, source } = &*self.0;
        f.debug_struct("WorkspaceError")
            .field("kind", kind)
            .field("message", message)
            .field("hint", hint)
            .field("source", source)
            .finish()
    }
}

impl Error for WorkspaceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
