//! One change on its way to the disk: written beside the file first, then put in its place.
//!
//! Everything is done relative to the handle of the file's folder, which is opened once.
//! Whatever ends a change early, the temporary file and the folders made for it go away.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};

use super::snapshot::Facts;
use super::{Access, Located, Snapshot};
use crate::error::ToolError;

/// How much of a file is compared at once.
const CHUNK: usize = 64 * 1024;

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
    is_done: bool,
}

impl Staged {
    /// Looks whether the change may be made, and opens the folder of the file.
    pub(super) fn new(change: Change, folders: &mut Folders) -> Result<Self, ToolError> {
        refuse(&change)?;
        let dir = folders.holder(&change.place, change.after.is_some())?;
        Ok(Self { change, dir, temporary: None, is_done: false })
    }

    /// Does everything else that may fail for other reasons than somebody else's change.
    pub(super) fn write(&mut self, durable: bool) -> Result<(), ToolError> {
        let Change { place, after, like, .. } = &self.change;
        if let Some(content) = after {
            let temporary = Temporary::write(&self.dir, content, like.facts(), durable);
            self.temporary = Some(temporary.map_err(|error| place.error("write", error))?);
        }
        Ok(())
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

    /// Puts the change in its place, unless the file is no longer what it was.
    pub(super) fn commit(&mut self) -> Result<(), ToolError> {
        let place = &self.change.place;
        let failed = |error| place.error("write", error);
        if !self.holds(self.change.before.content()).map_err(failed)? {
            return Err(ToolError::conflict(format_args!(
                "`{}` was changed by somebody else in the meantime, and was not written",
                place.display()
            ))
            .hint("read it again, and base the change on what it says now"));
        }
        match self.temporary.take() {
            Some(temporary) => temporary.replace(place),
            None => self.dir.remove_file(place.last_name()),
        }
        .map_err(failed)?;
        self.is_done = true;
        Ok(())
    }

    /// Puts back what was there before [`commit`](Self::commit).
    pub(super) fn undo(&self) -> io::Result<()> {
        let Change { place, before, after, .. } = &self.change;
        if !self.holds(after.as_deref())? {
            return Err(io::Error::other("it was changed again"));
        }
        match before.content() {
            Some(content) => {
                Temporary::write(&self.dir, content, before.facts(), false)?.replace(place)
            }
            None => self.dir.remove_file(place.last_name()),
        }
    }

    /// Whether the file holds `expected` and nothing else, or is not there.
    fn holds(&self, expected: Option<&[u8]>) -> io::Result<bool> {
        let name = self.change.place.last_name();
        let there = self.dir.symlink_metadata(name);
        let is_file = match (there, expected) {
            (Ok(metadata), Some(expected)) => {
                metadata.is_file() && metadata.len() == expected.len() as u64
            }
            (Ok(_), None) => false,
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(expected.is_none());
            }
            (Err(error), _) => return Err(error),
        };
        match expected {
            Some(expected) if is_file => {
                let mut options = OpenOptions::new();
                options.read(true).nonblock(true).follow(FollowSymlinks::No);
                same(self.dir.open_with(name, &options)?.into_std(), expected)
            }
            _ => Ok(false),
        }
    }
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

fn same(mut file: File, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; CHUNK.min(expected.len() + 1)];
    let mut rest = expected;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(rest.is_empty()),
            read => match rest.strip_prefix(&buffer[..read]) {
                Some(left) => rest = left,
                None => return Ok(false),
            },
        }
    }
}

/// A file that goes away unless it gets another's name.
struct Temporary {
    dir: Arc<Dir>,
    /// Empty once it got the other name.
    name: OsString,
    durable: bool,
}

impl Temporary {
    /// Writes `content` to a new file of its own name; `like` says what is to be like it.
    fn write(
        dir: &Arc<Dir>,
        content: &[u8],
        like: Option<&Facts>,
        durable: bool,
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if like.is_some() {
            private(&mut options);
        }
        let name = OsString::from(format!(".{:032x}.tmp", random()?));
        let file = dir.open_with(&name, &options)?;
        // From here on, a failure removes it.
        let temporary = Self { dir: Arc::clone(dir), name, durable };
        (&file).write_all(content)?;
        if let Some(facts) = like {
            give(&file, facts)?;
        }
        if durable {
            file.sync_all()?;
        }
        Ok(temporary)
    }

    /// Gives it the name of `place`; what has that name goes.
    fn replace(mut self, place: &Located) -> io::Result<()> {
        if !self.durable && exchange(&self.dir, &self.name, place.last_name()) {
            // What was there before has the name of the temporary file, and goes with it.
            return Ok(());
        }
        self.dir.rename(&self.name, &self.dir, place.last_name())?;
        self.name.clear();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Lets two files change their names, where the system can do that and both are there.
///
/// Some file systems put a new file on the disk at once when it takes the name of another.
/// Where nobody wants to wait for the disk, that would be most of the time.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn exchange(dir: &Dir, one: &OsStr, other: &Path) -> bool {
    rustix::fs::renameat_with(dir, one, dir, other, rustix::fs::RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn exchange(_: &Dir, _: &OsStr, _: &Path) -> bool {
    false
}

fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// Until it has the mode of the file that it replaces, nobody else reads it.
#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;

    options.mode(0o600);
}

#[cfg(not(unix))]
fn private(_: &mut OpenOptions) {}

fn give(file: &cap_std::fs::File, facts: &Facts) -> io::Result<()> {
    #[cfg(unix)]
    {
        let (user, group) = facts.owner;
        let own = rustix::fs::fstat(file)?;
        if (own.st_uid, own.st_gid) != facts.owner {
            // Only some users may give files away; all others write their own.
            let _ = std::os::unix::fs::fchown(file, Some(user), Some(group));
        }
    }
    file.set_permissions(facts.permissions.clone())
}

/// The folders of some changes: each is opened once, and those that were missing are made.
///
/// Unless they are kept, those that were made go away again.
#[derive(Default)]
pub(super) struct Folders {
    open: HashMap<PathBuf, Arc<Dir>>,
    made: Vec<(Arc<Dir>, OsString)>,
}

impl Folders {
    /// The folder that holds `place`; no link on the way there is followed.
    fn holder(&mut self, place: &Located, create: bool) -> Result<Arc<Dir>, ToolError> {
        let mut path = place.absolute();
        path.pop();
        if let Some(dir) = self.open.get(&path) {
            return Ok(Arc::clone(dir));
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotADirectory => ToolError::failed(format_args!(
                "a part of the path to `{}` is not a folder",
                place.display()
            ))
            .source(error),
            _ => place.error("write", error),
        };
        let mut dir = Arc::new(place.root().dir.try_clone().map_err(failed)?);
        for name in place.relative.parent().into_iter().flatten() {
            let opened = match dir.open_dir_nofollow(name) {
                Err(error) if create && error.kind() == io::ErrorKind::NotFound => {
                    self.make(&dir, name.to_owned())
                }
                opened => opened,
            };
            dir = Arc::new(opened.map_err(failed)?);
        }
        self.open.insert(path, Arc::clone(&dir));
        Ok(dir)
    }

    fn make(&mut self, dir: &Arc<Dir>, name: OsString) -> io::Result<Dir> {
        match dir.create_dir(&name) {
            Ok(()) => self.made.push((Arc::clone(dir), name.clone())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        dir.open_dir_nofollow(name)
    }

    /// Lets the folders stay that were made, and has the system write down what is in them.
    pub(super) fn keep(mut self, durable: bool) {
        let made = std::mem::take(&mut self.made);
        if durable {
            made.iter().map(|(dir, _)| dir).chain(self.open.values()).for_each(|dir| sync(dir));
        }
    }
}

impl Drop for Folders {
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
