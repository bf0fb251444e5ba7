//! Empty folders where something protected is not there yet.
//!
//! What does not exist cannot be held read-only, so an empty folder stands in for it while
//! a child runs. It goes when the last child goes that needed it, also one of another
//! process: everybody who needs it holds a lock on it.
//!
//! It is known by its mode, so that one that somebody could not clear up is cleared up later.
//!
//! **Invariant:** no other folder is ever removed, however empty.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, lstat, openat};

/// Nobody else has a folder of one user sticky.
const MODE: u32 = 0o1700;

/// The bits of a mode that can be set.
const SETTABLE: u32 = 0o7777;

/// An empty folder, for as long as this is there.
#[derive(Debug)]
pub(in super::super) struct StandIn {
    path: PathBuf,
    folder: OwnedFd,
}

impl StandIn {
    /// Makes one, or shares one; `None` where something else is already, or nothing can be made.
    pub(in super::super) fn at(path: &Path) -> Option<Self> {
        if fs::symlink_metadata(path).is_err() {
            // Where this process may not make it, its child may not either.
            fs::DirBuilder::new().mode(MODE).create(path).ok()?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty()).ok()?;
        // What others made or filled holds its place itself.
        let is_own = fstat(&folder).ok()?.st_mode & SETTABLE == MODE;
        if !is_own || fs::read_dir(path).ok()?.next().is_some() {
            return None;
        }
        flock(&folder, FlockOperation::NonBlockingLockShared).ok()?;
        Some(Self { path: path.to_owned(), folder })
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // Fails while somebody else needs it.
        let unused = flock(&self.folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        if unused && self.is_there().unwrap_or_default() {
            // Fails when it is not empty any more.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

impl StandIn {
    /// Whether the path still leads to this folder and not to one that came after it.
    fn is_there(&self) -> io::Result<bool> {
        let (own, found) = (fstat(&self.folder)?, lstat(&self.path)?);
        Ok((own.st_dev, own.st_ino) == (found.st_dev, found.st_ino))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SB3: what is protected and not there is held for as long as anybody needs that.
    #[test]
    fn the_last_one_clears_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        let first = StandIn::at(&path).unwrap();
        let second = StandIn::at(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_was_left_is_cleared_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        fs::DirBuilder::new().mode(MODE).create(&path).unwrap();
        drop(StandIn::at(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn what_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        fs::create_dir_all(path.join("hooks")).unwrap();
        assert!(StandIn::at(&path).is_none());
        assert!(path.join("hooks").exists());

        // Neither is an empty one that is somebody's own.
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        assert!(StandIn::at(&own).is_none());
        assert!(own.exists());

        // One that was filled meanwhile is no stand-in any more.
        let other = folder.path().join("other");
        let stand_in = StandIn::at(&other).unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        drop(stand_in);
        assert!(other.join("kept").exists());

        // Neither is one that came after it.
        let third = folder.path().join("third");
        let stand_in = StandIn::at(&third).unwrap();
        fs::remove_dir(&third).unwrap();
        fs::create_dir(&third).unwrap();
        drop(stand_in);
        assert!(third.exists());
        assert!(StandIn::at(&folder.path().join("no/such")).is_none());
    }
}
