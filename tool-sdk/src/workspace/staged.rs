//! One file change of a transaction: staged in a temporary file, then committed by a rename.
//!
//! All operations are relative to the handle of the parent folder, which is opened once per
//! transaction.
//!
//! **Invariant:** a change that is not committed leaves no temporary file and no new folder.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::expected::Expected;
use super::temporary::Temporary;
use super::turns::lockable;
use super::{Access, Located, Snapshot};
use crate::error::{ErrorKind, ToolError};

/// The change of one file.
pub(super) struct Change {
    pub(super) place: Located,
    /// The expected state of the file before the change.
    pub(super) before: Snapshot,
    /// The new content; `None` removes the file.
    pub(super) after: Option<Vec<u8>>,
    /// The file from which mode, owner and extended attributes are copied.
    pub(super) like: Snapshot,
}

/// A change that is checked and perhaps staged, but not committed yet.
pub(super) struct Staged {
    change: Change,
    dir: Arc<Dir>,
    temporary: Option<Temporary>,
    /// Whether the temporary file was flushed to disk.
    is_durable: bool,
    is_done: bool,
}

impl Staged {
    /// Checks that the change is allowed, and opens the parent folder.
    pub(super) fn new(change: Change, folders: &Folders) -> Result<Self, ToolError> {
        refuse(&change)?;
        let dir = folders.holder(&change.place, change.after.is_some())?;
        if change.before.facts().is_some_and(|facts| !facts.is_link) {
            may_write(&dir, &change.place)?;
        }
        Ok(Self { change, dir, temporary: None, is_durable: false, is_done: false })
    }

    /// Returns whether [`write`](Self::write) must still be called.
    pub(super) fn is_unwritten(&self, durable: bool) -> bool {
        let is_written = self.temporary.is_some() && (self.is_durable || !durable);
        self.change.after.is_some() && !is_written
    }

    /// Writes the temporary file. After this, [`commit`](Self::commit) fails only on a conflict or
    /// when the folder changed.
    pub(super) fn write(&mut self, durable: bool) -> Result<(), ToolError> {
        let Change { place, after, like, .. } = &self.change;
        if let Some(content) = after {
            let temporary = Temporary::write(&self.dir, content, like.facts(), durable);
            self.temporary = Some(temporary.map_err(|error| unwritten(place, error))?);
            self.is_durable = durable;
        }
        Ok(())
    }

    /// Returns the new content; `None` for a removal.
    pub(super) fn content(&self) -> Option<&[u8]> {
        self.change.after.as_deref()
    }

    /// Returns whether the change removes the file.
    pub(super) fn removes(&self) -> bool {
        self.change.after.is_none()
    }

    /// Returns whether the change was committed.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the path of the file.
    pub(super) fn place(&self) -> &Located {
        &self.change.place
    }

    /// Returns how many bytes are compared and written.
    pub(super) fn bytes(&self) -> usize {
        let Change { before, after, .. } = &self.change;
        before.content().map_or(0, <[u8]>::len) + after.as_ref().map_or(0, Vec::len)
    }

    /// Returns the parent folder.
    pub(super) fn dir(&self) -> &Arc<Dir> {
        &self.dir
    }

    /// Makes the change, unless the file differs from its expected state. The caller must hold
    /// the lock of the parent folder, as for [`roll_back`](Self::roll_back).
    pub(super) fn commit(&mut self) -> Result<(), ToolError> {
        let Change { place, before, after, .. } = &self.change;
        let next = self.temporary.take().zip(after.as_deref());
        let facts = before.facts();
        let expected = before.content().map(|content| Expected { content, facts });
        let is_put = self.put(next, expected).map_err(|error| unwritten(place, error));
        if !is_put? {
            return Err(ToolError::conflict(format_args!(
                "`{}` was changed since it was looked at for this call, and was not written",
                place.display()
            ))
            .hint("read it again, and base the change on its current content"));
        }
        self.is_done = true;
        Ok(())
    }

    /// Restores the state before [`commit`](Self::commit).
    pub(super) fn undo(&self) -> io::Result<()> {
        let Change { before, after, .. } = &self.change;
        let write = |content| -> io::Result<_> {
            Ok((Temporary::write(&self.dir, content, before.facts(), false)?, content))
        };
        let expected = after.as_deref().map(|content| Expected { content, facts: None });
        match self.put(before.content().map(write).transpose()?, expected)? {
            true => Ok(()),
            false => Err(io::Error::other("it was changed again")),
        }
    }

    /// Replaces the file by `next`, or removes it. Returns whether the file was in the expected
    /// state.
    fn put(
        &self,
        next: Option<(Temporary, &[u8])>,
        expected: Option<Expected<'_>>,
    ) -> io::Result<bool> {
        let name = self.change.place.last_name();
        match (next, expected) {
            (Some((next, content)), _) => next.put(content, name, expected),
            (None, Some(expected)) => Temporary::take_out(&self.dir, name, expected),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// The error for a file that could not be written.
fn unwritten(place: &Located, error: io::Error) -> ToolError {
    if error.kind() != io::ErrorKind::NotFound || place.root().is_gone() {
        return place.error("write", error);
    }
    // `NotFound` while writing means that the parent folder was removed.
    ToolError::conflict(format_args!(
        "the folder of `{}` was removed in the meantime, or takes no new files",
        place.display()
    ))
    .hint("list the folder, and try again")
    .source(error)
}

/// Rejects changes that are never allowed.
fn refuse(change: &Change) -> Result<(), ToolError> {
    let place = &change.place;
    if place.root().access == Access::Read {
        return Err(ToolError::denied(format_args!(
            "`{}` is in a folder that may only be read",
            place.display()
        )));
    }
    if place.file_name().is_none() {
        return Err(place.not_a_file("a folder"));
    }
    if change.before.facts().is_some_and(|facts| facts.permissions.readonly()) {
        return Err(ToolError::denied(format_args!(
            "`{}` is marked as read-only",
            place.display()
        )));
    }
    Ok(())
}

/// Rejects a file that the user may not write. With write access to the folder a rename could
/// replace it all the same, against the intent of its permissions.
#[cfg(unix)]
fn may_write(dir: &Dir, place: &Located) -> Result<(), ToolError> {
    use rustix::fs::{Access, AtFlags, accessat};
    use rustix::io::Errno;

    match accessat(dir, place.last_name(), Access::WRITE_OK, AtFlags::empty()) {
        Err(error @ (Errno::ACCESS | Errno::PERM)) => {
            let path = place.display();
            let message = format_args!("the system does not let this user write `{path}`");
            Err(ToolError::denied(message).source(io::Error::from(error)))
        }
        Err(error @ Errno::ROFS) => Err(place.error("write", error.into())),
        // A missing file is detected when it is replaced.
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn may_write(_: &Dir, _: &Located) -> Result<(), ToolError> {
    Ok(())
}

/// The folder handles of a transaction: each folder is opened once, and missing ones are created.
///
/// Created folders are removed again on drop, unless they are kept.
#[derive(Default)]
pub(super) struct Folders(Mutex<Opened>);

#[derive(Default)]
struct Opened {
    /// Handles by absolute path.
    open: HashMap<OsString, Arc<Dir>>,
    made: Vec<(Arc<Dir>, OsString)>,
}

impl Folders {
    /// Opens the parent folder of a path without following links. Creates missing folders if
    /// `create` is set.
    fn holder(&self, place: &Located, create: bool) -> Result<Arc<Dir>, ToolError> {
        self.open(place, create).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => place.is_below_a_file(ErrorKind::Failed).source(error),
            _ => unwritten(place, error),
        })
    }

    /// Opens the parent folder of a path, which must exist.
    pub(super) fn existing(&self, place: &Located) -> io::Result<Arc<Dir>> {
        self.open(place, false)
    }

    fn open(&self, place: &Located, create: bool) -> io::Result<Arc<Dir>> {
        let mut path = place.absolute();
        path.pop();
        let path = path.into_os_string();
        let mut opened = self.opened();
        if let Some(dir) = opened.open.get(&path) {
            return Ok(Arc::clone(dir));
        }
        let mut dir = Arc::new(place.root().dir.try_clone()?);
        for name in place.relative.parent().into_iter().flatten() {
            let found = match dir.open_dir_nofollow(name) {
                Err(error) if create && error.kind() == io::ErrorKind::NotFound => {
                    opened.make(&dir, name.to_owned())
                }
                found => found,
            };
            dir = Arc::new(found?);
        }
        let dir = Arc::new(lockable(&dir)?);
        opened.open.insert(path, Arc::clone(&dir));
        Ok(dir)
    }

    /// Keeps the created folders, and flushes them to disk if `durable` is set.
    pub(super) fn keep(&self, durable: bool) {
        let mut opened = self.opened();
        let made = std::mem::take(&mut opened.made);
        if durable {
            made.iter().map(|(dir, _)| dir).chain(opened.open.values()).for_each(|dir| sync(dir));
        }
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    fn make(&mut self, dir: &Arc<Dir>, name: OsString) -> io::Result<Dir> {
        match dir.create_dir(&name) {
            Ok(()) => self.made.push((Arc::clone(dir), name.clone())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        dir.open_dir_nofollow(name)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (dir, name) in self.made.iter().rev() {
            // Fails, and keeps the folder, when another process has put files into it.
            let _ = dir.remove_dir(name);
        }
    }
}

#[cfg(unix)]
fn sync(dir: &Dir) {
    // Best effort: the changes are committed and the files are on disk, and some file systems
    // cannot sync folders.
    let _ = dir.open(".").and_then(|dir| dir.sync_all());
}

#[cfg(not(unix))]
fn sync(_: &Dir) {}
