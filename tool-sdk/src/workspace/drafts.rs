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

use super::staged::{Change, Folders, Staged};
use super::underway::Underway;
use super::{Durability, Located, Snapshot, Workspace};
use crate::error::ToolError;

/// Stages new contents beside their files, for a [`FileTransaction`](super::FileTransaction) that
/// is not complete yet.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Changes, Drafts, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let workspace = Workspace::open([folder.path()])?;
/// let place = workspace.resolve("notes.txt")?;
/// let before = place.snapshot(1024)?;
///
/// let draft = Drafts::begin(&workspace)?.write(place.clone(), before, "bye")?;
/// assert_eq!(place.snapshot(1024)?.content(), Some(&b"hello"[..]));
/// Changes::new().put(draft).apply(|| false)?;
/// assert_eq!(place.snapshot(1024)?.content(), Some(&b"bye"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Drafts {
    begun: Arc<Begun>,
    durable: bool,
}

/// A new content in a temporary file. It is removed unless a
/// [`FileTransaction`](super::FileTransaction) commits it.
#[must_use = "the staged file is removed when this is dropped"]
pub struct Draft {
    // Declared first, so that files are removed before the folders that were created for them.
    pub(super) staged: Staged,
    pub(super) begun: Arc<Begun>,
}

/// State that the changes of a transaction share.
pub(super) struct Begun {
    pub(super) folders: Folders,
    // Declared last, so that shutdown waits until everything else is dropped.
    pub(super) underway: Underway,
}

impl Begun {
    pub(super) fn new() -> Result<Arc<Self>, ToolError> {
        let underway = Underway::begin()?;
        Ok(Arc::new(Self { folders: Folders::default(), underway }))
    }
}

impl Drafts {
    /// Starts staging writes.
    ///
    /// # Errors
    ///
    /// Fails with `aborted` when the program is shutting down.
    pub fn begin(workspace: &Workspace) -> Result<Self, ToolError> {
        Ok(Self { begun: Begun::new()?, durable: workspace.0.durability == Durability::Always })
    }

    /// Reads a whole file like [`ResolvedPath::snapshot`], through the folder handle that is open
    /// for its new content.
    ///
    /// # Errors
    ///
    /// Fails like [`ResolvedPath::snapshot`].
    pub fn snapshot(&self, place: &Located, limit: u64) -> Result<Snapshot, ToolError> {
        place.snapshot_in(limit, || self.begun.folders.existing(place))
    }

    /// Writes the new content of a file to a temporary file beside it. `before` is the snapshot
    /// from which the content was made. Creates missing folders for a new file.
    ///
    /// # Errors
    ///
    /// Fails like [`FileTransaction::commit`](super::FileTransaction::commit).
    pub fn write(
        &self,
        place: Located,
        before: Snapshot,
        content: impl Into<Vec<u8>>,
    ) -> Result<Draft, ToolError> {
        if self.begun.underway.is_unwanted() {
            return Err(ToolError::aborted(
                "the program is shutting down, and nothing was written",
            ));
        }
        let (place, like) = (place.into_real()?, before.clone());
        let change = Change { place, before, after: Some(content.into()), like };
        let mut staged = Staged::new(change, &self.begun.folders)?;
        staged.write(self.durable)?;
        Ok(Draft { staged, begun: Arc::clone(&self.begun) })
    }
}

impl Draft {
    /// Returns the new content.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        self.staged.content().unwrap_or_default()
    }
}

impl fmt::Debug for Drafts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drafts").finish_non_exhaustive()
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Draft").field(self.staged.place()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::error::ErrorKind;
    use crate::workspace::Changes;

    fn workspace(folder: &Path) -> Workspace {
        for name in ["a", "b"] {
            fs::write(folder.join(name), "old").unwrap();
        }
        Workspace::open([folder]).unwrap()
    }

    fn draft(drafts: &Drafts, workspace: &Workspace, path: &str) -> Draft {
        let place = workspace.resolve(path).unwrap();
        let before = drafts.snapshot(&place, 100).unwrap();
        drafts.write(place, before, "new").unwrap()
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
        let drafts = Drafts::begin(&workspace).unwrap();
        let made = [draft(&drafts, &workspace, "a"), draft(&drafts, &workspace, "x/y/z")];
        assert_eq!(made[0].content(), b"new");
        // Created folders are removed with the last staged write.
        drop((drafts, made));
        check(folder.path(), ["old", "old"]);
    }

    #[test]
    fn commits_writes_of_several_stages_with_other_changes() {
        for durability in [Durability::Auto, Durability::Always, Durability::Never] {
            let folder = tempfile::tempdir().unwrap();
            let workspace = workspace(folder.path()).durability(durability);
            let begin = || Drafts::begin(&workspace).unwrap();
            let made = [draft(&begin(), &workspace, "a"), draft(&begin(), &workspace, "b")];
            let place = workspace.resolve("x/y").unwrap();
            let changes = made.into_iter().fold(Changes::new(), Changes::put);
            changes.write(place, Snapshot::absent(), "").apply(|| false).unwrap();
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
        let drafts = Drafts::begin(&workspace).unwrap();
        let made = ["a", "b"].map(|path| draft(&drafts, &workspace, path));
        fs::write(folder.path().join("b"), "theirs").unwrap();
        let changes = made.into_iter().fold(Changes::new(), Changes::put);
        let error = changes.apply(|| false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        check(folder.path(), ["old", "theirs"]);
    }
}
