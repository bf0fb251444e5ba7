//! New contents that are written beside their files while others are still being made.
//!
//! Who changes many files makes their contents one by one, and on several threads. What was
//! just made is written fastest at once; which names change is decided when all of it is there.
//!
//! **Invariant:** a draft has no name that anybody looks for, and goes away with its value.

use std::fmt;
use std::sync::Arc;

use super::staged::{Change, Folders, Staged};
use super::underway::Underway;
use super::{Durability, Located, Snapshot, Workspace};
use crate::error::ToolError;

/// Writes new contents beside their files, for [`Changes`](super::Changes) that are not
/// complete yet.
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

/// A new content beside its file; without [`Changes`](super::Changes) that take it, it goes away.
#[must_use = "it goes away when it is dropped"]
pub struct Draft {
    // Declared first, so that files are gone before the folders that were made for them.
    pub(super) staged: Staged,
    pub(super) begun: Arc<Begun>,
}

/// What changes have in common that were begun.
pub(super) struct Begun {
    pub(super) folders: Folders,
    // Declared last, so that the end of the program waits for everything else.
    pub(super) underway: Underway,
}

impl Begun {
    pub(super) fn new() -> Result<Arc<Self>, ToolError> {
        let underway = Underway::begin()?;
        Ok(Arc::new(Self { folders: Folders::default(), underway }))
    }
}

impl Drafts {
    /// No drafts yet.
    ///
    /// # Errors
    ///
    /// Fails with `aborted` when the program ends.
    pub fn begin(workspace: &Workspace) -> Result<Self, ToolError> {
        Ok(Self { begun: Begun::new()?, durable: workspace.0.durability == Durability::Always })
    }

    /// Reads a whole file like [`Located::snapshot`], through the folder that is open for its
    /// new content.
    ///
    /// # Errors
    ///
    /// Fails like [`Located::snapshot`].
    pub fn snapshot(&self, place: &Located, limit: u64) -> Result<Snapshot, ToolError> {
        place.snapshot_in(limit, || self.begun.folders.existing(place))
    }

    /// Writes the new content of a file beside it, which was made from `before`; where there
    /// was none, folders on the way are made.
    ///
    /// # Errors
    ///
    /// Fails like [`Changes::apply`](super::Changes::apply).
    pub fn write(
        &self,
        place: Located,
        before: Snapshot,
        content: impl Into<Vec<u8>>,
    ) -> Result<Draft, ToolError> {
        if self.begun.underway.is_unwanted() {
            return Err(ToolError::aborted("the program ends, and nothing was written"));
        }
        let (place, like) = (place.into_real()?, before.clone());
        let change = Change { place, before, after: Some(content.into()), like };
        let mut staged = Staged::new(change, &self.begun.folders)?;
        staged.write(self.durable)?;
        Ok(Draft { staged, begun: Arc::clone(&self.begun) })
    }
}

impl Draft {
    /// What the file is to say.
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

    use super::super::Changes;
    use super::*;
    use crate::error::ErrorKind;

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
    fn a_draft_that_nobody_takes_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = workspace(folder.path());
        let drafts = Drafts::begin(&workspace).unwrap();
        let made = [draft(&drafts, &workspace, "a"), draft(&drafts, &workspace, "x/y/z")];
        assert_eq!(made[0].content(), b"new");
        // The folders go with the last of what was begun.
        drop((drafts, made));
        check(folder.path(), ["old", "old"]);
    }

    #[test]
    fn drafts_of_several_threads_are_made_together_with_other_changes() {
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

    // PA5: a draft is no reason to lose what somebody else wrote meanwhile.
    #[test]
    fn what_was_changed_since_is_a_conflict_and_all_of_it_is_undone() {
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
