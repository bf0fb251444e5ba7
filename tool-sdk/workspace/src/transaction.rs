//! File transactions: several file changes that are committed together or rolled back.
//!
//! New contents are first staged in temporary files beside their targets, then renamed over them
//! while the folders are locked ([`dir_lock`](super::dir_lock)).
//!
//! **Invariant:** after a failed commit every file is as it was, or the hint names the exception.

use std::path::Path;

use super::dir_lock::{DirLocks, LockTimeout};
use super::journal;
use super::shutdown_latch::ShutdownGuard;
use super::staged_file::{FileChange, StagedFile, TransactionFolders};
use super::{Durability, ResolvedPath, Root, RootAccess, Snapshot};
use crate::error::WorkspaceError;

/// How many files are replaced between two checks for cancellation.
const BATCH_FILES: usize = 256;

/// With [`Durability::Auto`], transactions of up to this many files wait for the disk; the delay
/// is then not noticeable.
const AUTO_DURABLE_FILES: usize = 16;

/// How many bytes are replaced under one lock, so that other processes do not time out.
const BATCH_BYTES: usize = 64 * 1024 * 1024;

/// Several file changes that are committed together, or not at all.
///
/// Each file is replaced atomically: its new content is written to a temporary file in the same
/// folder and renamed over it. A reader sees the old file or the new one, and when the disk is
/// full the old one stays. A file that differs from its [`Snapshot`] in content, mode or owner is
/// a `conflict`. When one change fails, the earlier ones are rolled back.
///
/// Files are removed after all writes are in place. Missing parent folders are created. Every
/// path may occur in one change only. A replaced file keeps its mode, on Linux its access
/// control list and other extended attributes, and its owner where the system allows it. Of a
/// file with several hard links only this link is replaced. A file that the user may not write
/// is not replaced either. No temporary file is left behind, even when the transaction is
/// cancelled. When the process is killed, each file is still the old one or the new one; whether all
/// files become whole again depends on [`Workspace::with_journal`](crate::Workspace::with_journal).
///
/// # Examples
///
/// ```
/// use tool_sdk::{WorkspaceErrorKind, FileTransaction, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// let workspace = Workspace::open([folder.path()])?;
/// let path = workspace.resolve("new/notes.txt")?;
///
/// let before = path.snapshot(1024)?;
/// assert_eq!(before.content(), None);
/// FileTransaction::new().write(path.clone(), before.clone(), "hello").commit(|| false)?;
/// assert_eq!(path.snapshot(1024)?.content(), Some(&b"hello"[..]));
///
/// // The file has changed since the snapshot.
/// let error = FileTransaction::new().write(path, before, "bye").commit(|| false).unwrap_err();
/// assert_eq!(error.kind(), WorkspaceErrorKind::Conflict);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
#[must_use = "nothing changes before `commit`"]
pub struct FileTransaction {
    changes: Vec<FileChange>,
    durable: Option<bool>,
}

impl FileTransaction {
    /// Creates an empty transaction.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes new content to a file, and creates it when `before` is [absent](Snapshot::absent).
    /// `before` is the snapshot from which the content was made.
    pub fn write(self, path: ResolvedPath, before: Snapshot, content: impl Into<Vec<u8>>) -> Self {
        let like = before.clone();
        self.with_change(FileChange { path, before, after: Some(content.into()), template: like })
    }

    /// Removes a file; `before` is its expected state.
    pub fn remove(self, path: ResolvedPath, before: Snapshot) -> Self {
        let like = Snapshot::absent();
        self.with_change(FileChange { path, before, after: None, template: like })
    }

    /// Moves a file to another path and writes new content to it. A file at `to` is replaced if
    /// it still equals its snapshot. The mode of the moved file is kept.
    pub fn rename(
        self,
        (from, before): (ResolvedPath, Snapshot),
        (to, replaced): (ResolvedPath, Snapshot),
        content: impl Into<Vec<u8>>,
    ) -> Self {
        let after = Some(content.into());
        self.with_change(FileChange { path: to, before: replaced, after, template: before.clone() })
            .remove(from, before)
    }

    /// Sets whether [`commit`](Self::commit) waits until the files are on disk (`fsync`).
    /// Overrides the [durability](crate::Workspace::durability) of the workspace.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = Some(durable);
        self
    }

    fn is_durable(&self) -> bool {
        let of_workspace = || match self.changes.first().map(|it| it.path.durability()) {
            Some(Durability::Always) => true,
            Some(Durability::Never) => false,
            Some(Durability::Auto) | None => self.changes.len() <= AUTO_DURABLE_FILES,
        };
        self.durable.unwrap_or_else(of_workspace)
    }

    fn with_change(mut self, change: FileChange) -> Self {
        self.changes.push(change);
        self
    }

    /// Commits the changes, unless `stopped` returns `true` before all of them are made.
    ///
    /// # Errors
    ///
    /// Fails with `conflict` when a file differs from its snapshot, with `denied` when it may
    /// not be written, with `aborted` when `stopped` returned `true`, and with `failed` for
    /// other I/O errors. All changes are then rolled back. When a change could not be rolled
    /// back, because another process changed the file again, the hint says so.
    pub fn commit(self, stopped: impl Fn() -> bool) -> Result<(), WorkspaceError> {
        // Dropped in reverse order: created folders are removed after the files in them, and
        // shutdown waits for all of it.
        let shutdown_guard = ShutdownGuard::begin()?;
        self.recover_interrupted()?;
        let journal = self.changes.first().and_then(|change| change.path.journal());
        let journal = journal.map(Path::to_owned);
        let mut folders = TransactionFolders::default();
        let durable = self.is_durable();
        let mut staged = Vec::with_capacity(self.changes.len());
        for change in self.changes {
            let change = FileChange { path: change.path.into_canonical()?, ..change };
            staged.push(StagedFile::new(change, &mut folders)?);
        }
        staged.sort_by_key(StagedFile::is_removal);
        // Best effort: without a journal the change is the same, unless the process is killed.
        let entry = journal.and_then(|folder| journal::begin_entry(&folder, &staged, durable).ok());
        let stopped = || shutdown_guard.is_shutting_down() || stopped();
        let done = write_all(&mut staged, durable, &stopped)
            .and_then(|()| commit_all(&mut staged, &stopped))
            .map_err(|error| roll_back_all(staged, error));
        if let Some(entry) = entry.flatten() {
            entry.finish();
        }
        done?;
        folders.keep_created(durable);
        Ok(())
    }

    /// Finishes the transactions below the same roots that killed processes left.
    fn recover_interrupted(&self) -> Result<(), WorkspaceError> {
        let mut recovered: Vec<&Root> = Vec::new();
        for change in &self.changes {
            let root = change.path.root();
            let Some(folder) = change.path.journal() else { continue };
            if root.access != RootAccess::ReadWrite
                || recovered.iter().any(|done| std::ptr::eq(*done, root))
            {
                continue;
            }
            recovered.push(root);
            let left = journal::recover_root(folder, root).left;
            if !left.is_empty() {
                return Err(WorkspaceError::failed(format_args!(
                    "an earlier change was interrupted and cannot be finished: {}",
                    left.join("; ")
                ))
                .with_hint("its files were left as they are; check them, then call again"));
            }
        }
        Ok(())
    }
}

/// Writes the temporary files.
fn write_all(
    staged: &mut [StagedFile],
    durable: bool,
    stopped: &impl Fn() -> bool,
) -> Result<(), WorkspaceError> {
    for change in staged {
        check_cancelled(stopped)?;
        change.write(durable)?;
    }
    Ok(())
}

/// Renames all staged files to their targets, then removes files, which come last.
fn commit_all(
    staged: &mut [StagedFile],
    stopped: &impl Fn() -> bool,
) -> Result<(), WorkspaceError> {
    let written = staged.partition_point(|change| !change.is_removal());
    let (written, removed) = staged.split_at_mut(written);
    let mut patience = LockTimeout::default();
    for some in lock_batches(written).chain(lock_batches(removed)) {
        let _turns =
            DirLocks::acquire(some.iter().map(StagedFile::parent_dir), &mut patience, stopped);
        check_cancelled(stopped)?;
        some.iter_mut().try_for_each(StagedFile::commit)?;
    }
    Ok(())
}

/// Splits the changes into batches; the folders of a batch are locked together.
fn lock_batches(mut rest: &mut [StagedFile]) -> impl Iterator<Item = &mut [StagedFile]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |change: &&StagedFile| {
            bytes += change.byte_count();
            bytes <= BATCH_BYTES
        };
        let count = rest.iter().take(BATCH_FILES).take_while(fits).count();
        rest.split_off_mut(..count.max(1))
    })
}

fn check_cancelled(stopped: &impl Fn() -> bool) -> Result<(), WorkspaceError> {
    match stopped() {
        true => Err(WorkspaceError::aborted("the call was cancelled, and nothing was written")),
        false => Ok(()),
    }
}

/// Rolls back the committed changes in reverse order. Adds a hint that names those that failed.
fn roll_back_all(mut staged: Vec<StagedFile>, error: WorkspaceError) -> WorkspaceError {
    staged.retain(StagedFile::is_committed);
    staged.reverse();
    let mut patience = LockTimeout::default();
    let mut stuck = Vec::new();
    for some in lock_batches(&mut staged) {
        let _turns =
            DirLocks::acquire(some.iter().map(StagedFile::parent_dir), &mut patience, &|| false);
        stuck.extend(some.iter().filter_map(|change| {
            let error = change.roll_back().err()?;
            Some(format!("`{}` ({error})", change.path().display()))
        }));
    }
    match stuck.is_empty() {
        true => error,
        false => error.with_hint(format_args!(
            "the change of {} could not be undone; read the files before you continue",
            stuck.join(" and ")
        )),
    }
}

impl std::fmt::Debug for FileTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.changes.iter().map(|change| &change.path)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workspace;

    #[test]
    fn durability_defaults_to_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let is_durable = |durability: Option<Durability>, files: usize, said: Option<bool>| {
            let workspace = Workspace::open([folder.path()]).unwrap();
            let workspace = match durability {
                Some(durability) => workspace.durability(durability),
                None => workspace,
            };
            let changes = (0..files).fold(FileTransaction::new(), |changes, at| {
                let path = workspace.resolve(&format!("f{at}")).unwrap();
                changes.write(path, Snapshot::absent(), "")
            });
            said.into_iter().fold(changes, FileTransaction::durable).is_durable()
        };
        for (durability, files, said, expected) in [
            (None, AUTO_DURABLE_FILES, None, true),
            (None, AUTO_DURABLE_FILES + 1, None, false),
            (Some(Durability::Auto), AUTO_DURABLE_FILES, None, true),
            (Some(Durability::Auto), AUTO_DURABLE_FILES + 1, None, false),
            (Some(Durability::Always), AUTO_DURABLE_FILES + 1, None, true),
            (Some(Durability::Never), 1, None, false),
            (Some(Durability::Never), 1, Some(true), true),
            (Some(Durability::Always), 1, Some(false), false),
        ] {
            assert_eq!(is_durable(durability, files, said), expected, "{durability:?} {files}");
        }
    }

    #[test]
    fn batches_are_limited_in_files_and_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open([folder.path()]).unwrap();
        let mut folders = TransactionFolders::default();
        let mut stage = |len| {
            let change = FileChange {
                path: workspace.resolve("file").unwrap(),
                before: Snapshot::absent(),
                after: Some(vec![0; len]),
                template: Snapshot::absent(),
            };
            StagedFile::new(change, &mut folders).unwrap()
        };
        let cases: [(&[usize], &[usize]); 4] = [
            (&[], &[]),
            (&[1; BATCH_FILES + 1], &[BATCH_FILES, 1]),
            (&[BATCH_BYTES, 1, BATCH_BYTES - 1, 1], &[1, 2, 1]),
            (&[BATCH_BYTES + 1, BATCH_BYTES + 1], &[1, 1]),
        ];
        for (lens, expected) in cases {
            let mut staged: Vec<_> = lens.iter().map(|len| stage(*len)).collect();
            let counts: Vec<usize> = lock_batches(&mut staged).map(|some| some.len()).collect();
            assert_eq!(counts, expected);
        }
    }
}
