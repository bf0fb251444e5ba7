//! One change on its way to the disk: written beside the file first, then put in its place.
//!
//! Everything is done relative to the handle of the file's folder, which is opened once.
//! Whatever ends a change early, the temporary file and the folders made for it go away.

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

/// What is to become of one file.
pub(super) struct Change {
    pub(super) place: Located,
    /// What it must hold for that.
    pub(super) before: Snapshot,
    /// Its new content; `None` removes it.
    pub(super) after: Option<Vec<u8>>,
    /// The file whose mode and owner it gets.
    pub(super) like: Snapshot,
}

/// A change on its way.
pub(super) struct Staged {
    change: Change,
    dir: Arc<Dir>,
    temporary: Option<Temporary>,
    /// Whether what is beside the file is on the disk.
    is_durable: bool,
    is_done: bool,
}

impl Staged {
    /// Looks whether the change may be made, and opens the folder of the file.
    pub(super) fn new(change: Change, folders: &Folders) -> Result<Self, ToolError> {
        refuse(&change)?;
        let dir = folders.holder(&change.place, change.after.is_some())?;
        if change.before.facts().is_some_and(|facts| !facts.is_link) {
            may_write(&dir, &change.place)?;
        }
        Ok(Self { change, dir, temporary: None, is_durable: false, is_done: false })
    }

    /// Whether there is something to [`write`](Self::write) yet.
    pub(super) fn is_unwritten(&self, durable: bool) -> bool {
        let is_written = self.temporary.is_some() && (self.is_durable || !durable);
        self.change.after.is_some() && !is_written
    }

    /// Does everything else that may fail for other reasons than somebody else's change.
    pub(super) fn write(&mut self, durable: bool) -> Result<(), ToolError> {
        let Change { place, after, like, .. } = &self.change;
        if let Some(content) = after {
            let temporary = Temporary::write(&self.dir, content, like.facts(), durable);
            self.temporary = Some(temporary.map_err(|error| unwritten(place, error))?);
            self.is_durable = durable;
        }
        Ok(())
    }

    /// What the file is to say; nothing where it goes.
    pub(super) fn content(&self) -> Option<&[u8]> {
        self.change.after.as_deref()
    }

    /// Whether the file goes.
    pub(super) fn removes(&self) -> bool {
        self.change.after.is_none()
    }

    /// Whether the change was made.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The file.
    pub(super) fn place(&self) -> &Located {
        &self.change.place
    }

    /// How many bytes are compared and put in place.
    pub(super) fn bytes(&self) -> usize {
        let Change { before, after, .. } = &self.change;
        before.content().map_or(0, <[u8]>::len) + after.as_ref().map_or(0, Vec::len)
    }

    /// The folder of the file.
    pub(super) fn dir(&self) -> &Arc<Dir> {
        &self.dir
    }

    /// Puts the change in its place, unless the file is no longer what it was. Whoever calls
    /// this has the turn in its folder, and so for [`undo`](Self::undo).
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
            .hint("read it again, and base the change on what it says now"));
        }
        self.is_done = true;
        Ok(())
    }

    /// Puts back what was there before [`commit`](Self::commit).
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

    /// Puts `next` with its content in its place, or nothing; says whether the file held what
    /// was expected.
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

/// What the model should know of a failure to write a file.
fn unwritten(place: &Located, error: io::Error) -> ToolError {
    if error.kind() != io::ErrorKind::NotFound || place.root().is_gone() {
        return place.error("write", error);
    }
    // Whether the file was there does not matter: its folder is not, or takes none.
    ToolError::conflict(format_args!(
        "the folder of `{}` was removed in the meantime, or takes no new files",
        place.display()
    ))
    .hint("look at what is there, and try again")
    .source(error)
}

/// What is refused before anything is written.
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

/// Refuses a file that this user may not write. Who may write in its folder could replace it
/// all the same, and would take it from whoever closed it.
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
        // Whether it is still there is seen when it is replaced.
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn may_write(_: &Dir, _: &Located) -> Result<(), ToolError> {
    Ok(())
}

/// The folders of some changes: each is opened once, and those that were missing are made.
///
/// Unless they are kept, those that were made go away again.
#[derive(Default)]
pub(super) struct Folders(Mutex<Opened>);

#[derive(Default)]
struct Opened {
    /// By their paths, which say the same only where they are the same.
    open: HashMap<OsString, Arc<Dir>>,
    made: Vec<(Arc<Dir>, OsString)>,
}

impl Folders {
    /// The folder that holds `place`; no link on the way there is followed.
    fn holder(&self, place: &Located, create: bool) -> Result<Arc<Dir>, ToolError> {
        self.open(place, create).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => place.is_below_a_file(ErrorKind::Failed).source(error),
            _ => unwritten(place, error),
        })
    }

    /// The same, where it is there.
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

    /// Lets the folders stay that were made, and has the system write down what is in them.
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
            // One that somebody else uses by now is not empty, and stays.
            let _ = dir.remove_dir(name);
        }
    }
}

#[cfg(unix)]
fn sync(dir: &Dir) {
    // The changes are made, and the files themselves are on the disk: a file system that
    // cannot do this is no reason to call that a failure.
    let _ = dir.open(".").and_then(|dir| dir.sync_all());
}

#[cfg(not(unix))]
fn sync(_: &Dir) {}
