//! Staged writes: new contents that are written to temporary files before the transaction is
//! complete.
//!
//! A tool that changes many files computes their contents one by one, on several threads. Each
//! content is written while it is still in the processor's cache. The renames happen when the
//! [`FileTransaction`](super::FileTransaction) is committed.
//!
//! **Invariant:** a staged write has a random name, and is removed on drop unless it is committed.

use std::fmt;
use std::sync::Arc;

use super::shutdown_latch::ShutdownGuard;
use super::staged_file::{FileChange, StagedFile, TransactionFolders};
use super::{Durability, ResolvedPath, Snapshot, Workspace};
use crate::error::WorkspaceError;

/// Stages new contents beside their files, for a [`FileTransaction`](super::FileTransaction) that
/// is not complete yet.
///
/// # Examples
///
/// ```
/// use tool_sdk::{FileTransaction, StagedWrites, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let workspace = Workspace::open([folder.path()])?;
/// let path = workspace.resolve("notes.txt")?;
/// let before = path.snapshot(1024)?;
///
/// let write = StagedWrites::begin(&workspace)?.write(path.clone(), before, "bye")?;
/// assert_eq!(path.snapshot(1024)?.content(), Some(&b"hello"[..]));
/// FileTransaction::new().write_staged(write).commit(|| false)?;
/// assert_eq!(path.snapshot(1024)?.content(), Some(&b"bye"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StagedWrites {
    scope: Arc<TransactionScope>,
    durable: bool,
}

/// A new content in a temporary file. It is removed unless a
/// [`FileTransaction`](super::FileTransaction) commits it.
#[must_use = "the staged file is removed when this is dropped"]
pub struct StagedWrite {
    // Declared first, so that files are removed before the folders that were created for them.
    pub(super) staged: StagedFile,
    pub(super) scope: Arc<TransactionScope>,
}

/// State that the changes of a transaction share.
pub(super) struct TransactionScope {
    pub(super) folders: TransactionFolders,
    // Declared last, so that shutdown waits until everything else is dropped.
    pub(super) shutdown_guard: ShutdownGuard,
}

impl TransactionScope {
    pub(super) fn new() -> Result<Arc<Self>, WorkspaceError> {
        let underway = ShutdownGuard::begin()?;
        Ok(Arc::new(Self { folders: TransactionFolders::default(), shutdown_guard: underway }))
    }
}

impl StagedWrites {
    /// Starts staging writes.
    ///
    /// # Errors
    ///
    /// Fails with `aborted` when the program is shutting down.
    pub fn begin(workspace: &Workspace) -> Result<Self, WorkspaceError> {
        Ok(Self {
            scope: TransactionScope::new()?,
            durable: workspace.0.durability == Durability::Always,
        })
    }

    /// Reads a whole file like [`ResolvedPath::snapshot`], through the folder handle that is open
    /// for its new content.
    ///
    /// # Errors
    ///
    /// Fails like [`ResolvedPath::snapshot`].
    pub fn snapshot(&self, path: &ResolvedPath, limit: u64) -> Result<Snapshot, WorkspaceError> {
        path.snapshot_in(limit, || self.scope.folders.open_existing_parent(path))
    }

    /// Writes the new content of a file to a temporary file beside it. `before` is the snapshot
    /// from which the content was made. Creates missing folders for a new file.
    ///
    /// # Errors
    ///
    /// Fails like [`FileTransaction::commit`](super::FileTransaction::commit).
    pub fn write(
        &self,
        path: ResolvedPath,
        before: Snapshot,
        content: impl Into<Vec<u8>>,
    ) -> Result<StagedWrite, WorkspaceError> {
        if self.scope.shutdown_guard.is_shutting_down() {
            return Err(WorkspaceError::aborted(
                "the program is shutting down, and nothing was written",
            ));
        }
        let (path, like) = (path.into_canonical()?, before.clone());
        let change = FileChange { path, before, after: Some(content.into()), template: like };
        let mut staged = StagedFile::new(change, &self.scope.folders)?;
        staged.write(self.durable)?;
        Ok(StagedWrite { staged, scope: Arc::clone(&self.scope) })
    }
}

impl StagedWrite {
    /// Returns the new content.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        self.staged.content().unwrap_or_default()
    }
}

impl fmt::Debug for StagedWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedWrites").finish_non_exhaustive()
    }
}

impl fmt::Debug for StagedWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StagedWrite").field(self.staged.path()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::FileTransaction;
    use crate::error::WorkspaceErrorKind;

    fn workspace(folder: &Path) -> Workspace {
        for name in ["a", "b"] {
            fs::write(folder.join(name), "old").unwrap();
        }
        Workspace::open([folder]).unwrap()
    }

    fn write(writes: &StagedWrites, workspace: &Workspace, path: &str) -> StagedWrite {
        let path = workspace.resolve(path).unwrap();
        let before = writes.snapshot(&path, 100).unwrap();
        writes.write(path, before, "new").unwrap()
    }

    #[track_caller]
    fn check(folder: &Path, expected: [&str; 2]) {
        assert_eq!(["a", "b"].map(|name| fs::read_to_string(folder.join(name)).unwrap()), expected);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    }

    #[test]
    fn uncommitted_writes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = workspace(folder.path());
        let writes = StagedWrites::begin(&workspace).unwrap();
        let made = [write(&writes, &workspace, "a"), write(&writes, &workspace, "x/y/z")];
        assert_eq!(made[0].content(), b"new");
        // Created folders are removed with the last staged write.
        drop((writes, made));
        check(folder.path(), ["old", "old"]);
    }

    #[test]
    fn commits_writes_of_several_stages_with_other_changes() {
        for durability in [Durability::Auto, Durability::Always, Durability::Never] {
            let folder = tempfile::tempdir().unwrap();
            let workspace = workspace(folder.path()).durability(durability);
            let begin = || StagedWrites::begin(&workspace).unwrap();
            let made = [write(&begin(), &workspace, "a"), write(&begin(), &workspace, "b")];
            let path = workspace.resolve("x/y").unwrap();
            let changes =
                made.into_iter().fold(FileTransaction::new(), FileTransaction::write_staged);
            changes.write(path, Snapshot::absent(), "").commit(|| false).unwrap();
            assert!(folder.path().join("x/y").exists());
            fs::remove_dir_all(folder.path().join("x")).unwrap();
            check(folder.path(), ["new", "new"]);
        }
    }

    // PA5: a staged write never overwrites a concurrent change.
    #[test]
    fn a_conflict_rolls_back_all_staged_writes() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = workspace(folder.path());
        let writes = StagedWrites::begin(&workspace).unwrap();
        let made = ["a", "b"].map(|path| write(&writes, &workspace, path));
        fs::write(folder.path().join("b"), "theirs").unwrap();
        let changes = made.into_iter().fold(FileTransaction::new(), FileTransaction::write_staged);
        let error = changes.commit(|| false).unwrap_err();
        assert_eq!(error.kind(), WorkspaceErrorKind::Conflict);
        check(folder.path(), ["old", "theirs"]);
    }
}
