//! One file change of a transaction: staged in a temporary file, then committed by a rename.
//!
//! All operations are relative to the handle of the parent folder, which is opened once per
//! transaction.
//!
//! **Invariant:** a change that is not committed leaves no temporary file and no new folder.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::dir_lock::open_lockable;
use super::expected_file::ExpectedFile;
use super::temp_file::{TempFile, random_name};
use super::{ResolvedPath, RootAccess, Snapshot};
use crate::error::{WorkspaceError, WorkspaceErrorKind};

/// The change of one file.
pub(super) struct FileChange {
    pub(super) path: ResolvedPath,
    /// The expected state of the file before the change.
    pub(super) before: Snapshot,
    /// The new content; `None` removes the file.
    pub(super) after: Option<Vec<u8>>,
    /// The file from which mode, owner and extended attributes are copied.
    pub(super) template: Snapshot,
}

/// A change that is checked and perhaps staged, but not committed yet.
pub(super) struct StagedFile {
    change: FileChange,
    dir: Arc<Dir>,
    /// The name of the temporary file; a removal has none.
    temp_name: Option<OsString>,
    temp_file: Option<TempFile>,
    is_committed: bool,
}

impl StagedFile {
    /// Checks that the change is allowed, and opens the parent folder.
    pub(super) fn new(
        change: FileChange,
        folders: &mut TransactionFolders,
    ) -> Result<Self, WorkspaceError> {
        check_allowed(&change)?;
        let dir = folders.open_parent(&change.path, change.after.is_some())?;
        if change.before.metadata().is_some_and(|saved| !saved.is_link) {
            check_writable(&dir, &change.path)?;
        }
        let temp_name = change.after.is_some().then(random_name);
        Ok(Self { change, dir, temp_name, temp_file: None, is_committed: false })
    }

    /// Writes the temporary file; a removal has none. After this, [`commit`](Self::commit) fails
    /// only on a conflict or when the folder changed.
    pub(super) fn write(&mut self, durable: bool) -> Result<(), WorkspaceError> {
        let FileChange { path, after, template: like, .. } = &self.change;
        if let (Some(content), Some(name)) = (after, &self.temp_name) {
            let (name, like) = (name.clone(), like.metadata());
            let temporary = TempFile::create_named(name, &self.dir, content, like, durable);
            self.temp_file = Some(temporary.map_err(|error| write_error(path, error))?);
        }
        Ok(())
    }

    /// Returns whether the change removes the file.
    pub(super) fn is_removal(&self) -> bool {
        self.change.after.is_none()
    }

    /// Returns whether the change was committed.
    pub(super) fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &ResolvedPath {
        &self.change.path
    }

    /// Returns the name of the temporary file; a removal has none.
    pub(super) fn temporary_name(&self) -> Option<&OsStr> {
        self.temp_name.as_deref()
    }

    /// Returns the expected content, and whether it is the target of a symbolic link.
    pub(super) fn before(&self) -> Option<(&[u8], bool)> {
        let before = &self.change.before;
        Some((before.content()?, before.metadata().is_some_and(|saved| saved.is_link)))
    }

    /// Returns the new content; `None` removes the file.
    pub(super) fn after(&self) -> Option<&[u8]> {
        self.change.after.as_deref()
    }

    /// Returns how many bytes are compared and written.
    pub(super) fn byte_count(&self) -> usize {
        let FileChange { before, after, .. } = &self.change;
        before.content().map_or(0, <[u8]>::len) + after.as_ref().map_or(0, Vec::len)
    }

    /// Returns the parent folder.
    pub(super) fn parent_dir(&self) -> &Arc<Dir> {
        &self.dir
    }

    /// Makes the change, unless the file differs from its expected state. The caller must hold
    /// the lock of the parent folder, as for [`roll_back`](Self::roll_back).
    pub(super) fn commit(&mut self) -> Result<(), WorkspaceError> {
        let FileChange { path, before, after, .. } = &self.change;
        let next = self.temp_file.take().zip(after.as_deref());
        let saved = before.metadata();
        let expected = before.content().map(|content| ExpectedFile { content, metadata: saved });
        let is_put = self.replace_entry(next, expected).map_err(|error| write_error(path, error));
        if !is_put? {
            return Err(WorkspaceError::conflict(format_args!(
                "`{}` was changed since it was looked at for this call, and was not written",
                path.display()
            ))
            .with_hint("read it again, and base the change on its current content"));
        }
        self.is_committed = true;
        Ok(())
    }

    /// Restores the state before [`commit`](Self::commit).
    pub(super) fn roll_back(&self) -> io::Result<()> {
        let FileChange { before, after, .. } = &self.change;
        let write = |content| -> io::Result<_> {
            Ok((TempFile::create_with(&self.dir, content, before.metadata(), false)?, content))
        };
        let expected = after.as_deref().map(|content| ExpectedFile { content, metadata: None });
        match self.replace_entry(before.content().map(write).transpose()?, expected)? {
            true => Ok(()),
            false => Err(io::Error::other("it was changed again")),
        }
    }

    /// Replaces the file by `next`, or removes it. Returns whether the file was in the expected
    /// state.
    fn replace_entry(
        &self,
        next: Option<(TempFile, &[u8])>,
        expected: Option<ExpectedFile<'_>>,
    ) -> io::Result<bool> {
        let name = self.change.path.entry_name();
        match (next, expected) {
            (Some((next, content)), _) => next.replace_expected(content, name, expected),
            (None, Some(expected)) => TempFile::remove_expected(&self.dir, name, expected),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// The error for a file that could not be written.
fn write_error(path: &ResolvedPath, error: io::Error) -> WorkspaceError {
    if error.kind() != io::ErrorKind::NotFound || path.root().is_removed() {
        return path.io_error("write", error);
    }
    // `NotFound` while writing means that the parent folder was removed.
    WorkspaceError::conflict(format_args!(
        "the folder of `{}` was removed in the meantime, or takes no new files",
        path.display()
    ))
    .with_hint("list the folder, and try again")
    .with_source(error)
}

/// Rejects changes that are never allowed.
fn check_allowed(change: &FileChange) -> Result<(), WorkspaceError> {
    let path = &change.path;
    if path.root().access == RootAccess::ReadOnly {
        return Err(WorkspaceError::denied(format_args!(
            "`{}` is in a folder that may only be read",
            path.display()
        )));
    }
    if path.file_name().is_none() {
        return Err(path.not_a_file_error("a folder"));
    }
    if change.before.metadata().is_some_and(|saved| saved.permissions.readonly()) {
        return Err(WorkspaceError::denied(format_args!(
            "`{}` is marked as read-only",
            path.display()
        )));
    }
    Ok(())
}

/// Rejects a file that the user may not write. With write access to the folder a rename could
/// replace it all the same, against the intent of its permissions.
#[cfg(unix)]
fn check_writable(dir: &Dir, path: &ResolvedPath) -> Result<(), WorkspaceError> {
    use rustix::fs::{Access, AtFlags, accessat};
    use rustix::io::Errno;

    match accessat(dir, path.entry_name(), Access::WRITE_OK, AtFlags::empty()) {
        Err(error @ (Errno::ACCESS | Errno::PERM)) => {
            let path = path.display();
            let message = format_args!("the system does not let this user write `{path}`");
            Err(WorkspaceError::denied(message).with_source(io::Error::from(error)))
        }
        Err(error @ Errno::ROFS) => Err(path.io_error("write", error.into())),
        // A missing file is detected when it is replaced.
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_writable(_: &Dir, _: &ResolvedPath) -> Result<(), WorkspaceError> {
    Ok(())
}

/// The folder handles of a transaction: each folder is opened once, and missing ones are created.
///
/// Created folders are removed again on drop, unless they are kept.
#[derive(Default)]
pub(super) struct TransactionFolders {
    /// Handles by absolute path.
    open: HashMap<OsString, Arc<Dir>>,
    created: Vec<(Arc<Dir>, OsString)>,
}

impl TransactionFolders {
    /// Opens the parent folder of a path without following links. Creates missing folders if
    /// `create` is set.
    fn open_parent(
        &mut self,
        path: &ResolvedPath,
        create: bool,
    ) -> Result<Arc<Dir>, WorkspaceError> {
        self.open_or_create_parent(path, create).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => {
                path.parent_not_folder_error(WorkspaceErrorKind::Failed).with_source(error)
            }
            _ => write_error(path, error),
        })
    }

    fn open_or_create_parent(&mut self, path: &ResolvedPath, create: bool) -> io::Result<Arc<Dir>> {
        let mut folder_path = path.absolute_path();
        folder_path.pop();
        let folder_path = folder_path.into_os_string();
        if let Some(dir) = self.open.get(&folder_path) {
            return Ok(Arc::clone(dir));
        }
        let mut dir = Arc::new(path.root().dir.try_clone()?);
        for name in path.relative.parent().into_iter().flatten() {
            let found = match dir.open_dir_nofollow(name) {
                Err(error) if create && error.kind() == io::ErrorKind::NotFound => {
                    self.create_folder(&dir, name.to_owned())
                }
                found => found,
            };
            dir = Arc::new(found?);
        }
        let dir = Arc::new(open_lockable(&dir)?);
        self.open.insert(folder_path, Arc::clone(&dir));
        Ok(dir)
    }

    fn create_folder(&mut self, dir: &Arc<Dir>, name: OsString) -> io::Result<Dir> {
        match dir.create_dir(&name) {
            Ok(()) => self.created.push((Arc::clone(dir), name.clone())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        dir.open_dir_nofollow(name)
    }

    /// Keeps the created folders, and flushes them to disk if `durable` is set.
    pub(super) fn keep_created(&mut self, durable: bool) {
        let created = std::mem::take(&mut self.created);
        if durable {
            let parents = created.iter().map(|(dir, _)| dir);
            parents.chain(self.open.values()).for_each(|dir| sync_folder(dir));
        }
    }
}

impl Drop for TransactionFolders {
    fn drop(&mut self) {
        for (dir, name) in self.created.iter().rev() {
            // Fails, and keeps the folder, when another process has put files into it.
            let _ = dir.remove_dir(name);
        }
    }
}

#[cfg(unix)]
fn sync_folder(dir: &Dir) {
    // Best effort: the changes are committed and the files are on disk, and some file systems
    // cannot sync folders.
    let _ = dir.open(".").and_then(|dir| dir.sync_all());
}

#[cfg(not(unix))]
fn sync_folder(_: &Dir) {}
