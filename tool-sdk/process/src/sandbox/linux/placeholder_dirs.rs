//! Placeholder folders for protected files that do not exist yet.
//!
//! A path that does not exist cannot be mounted read-only, so an empty folder takes its place
//! while a child runs. Each user of the folder, also in other host processes, holds a shared
//! `flock` on it, and the last one removes it.
//!
//! Placeholders are recognized by their mode, so one that was left behind by a crash is removed
//! later.
//!
//! **Invariant:** no other folder is ever removed, even if it is empty.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, lstat, openat};

/// The mode of a placeholder: sticky and private, which ordinary folders are not.
const PLACEHOLDER_MODE: u32 = 0o1700;

/// The bits of a mode that can be set.
const MODE_BITS: u32 = 0o7777;

/// An empty folder that is removed with its last user.
#[derive(Debug)]
pub(crate) struct PlaceholderDir {
    path: PathBuf,
    folder: OwnedFd,
}

impl PlaceholderDir {
    /// Creates or shares a placeholder. Returns `None` if `path` exists otherwise, or cannot be
    /// created.
    pub(crate) fn create(path: &Path) -> Option<Self> {
        if fs::symlink_metadata(path).is_err() {
            // If this process cannot create it, its child cannot either.
            fs::DirBuilder::new().mode(PLACEHOLDER_MODE).create(path).ok()?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty()).ok()?;
        // An existing folder needs no placeholder.
        let is_own = fstat(&folder).ok()?.st_mode & MODE_BITS == PLACEHOLDER_MODE;
        if !is_own || fs::read_dir(path).ok()?.next().is_some() {
            return None;
        }
        flock(&folder, FlockOperation::NonBlockingLockShared).ok()?;
        Some(Self { path: path.to_owned(), folder })
    }
}

impl Drop for PlaceholderDir {
    fn drop(&mut self) {
        // Fails while another placeholder of this path is in use.
        let unused = flock(&self.folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        if unused && self.is_same_folder().unwrap_or_default() {
            // Fails if the folder is not empty any more.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

impl PlaceholderDir {
    /// Returns whether the path still refers to this folder, not to a later one.
    fn is_same_folder(&self) -> io::Result<bool> {
        let (own, found) = (fstat(&self.folder)?, lstat(&self.path)?);
        Ok((own.st_dev, own.st_ino) == (found.st_dev, found.st_ino))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SB3: a placeholder stays while any child needs it.
    #[test]
    fn the_last_one_clears_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        let first = PlaceholderDir::create(&path).unwrap();
        let second = PlaceholderDir::create(&path).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_was_left_is_cleared_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        fs::DirBuilder::new().mode(PLACEHOLDER_MODE).create(&path).unwrap();
        drop(PlaceholderDir::create(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn what_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".git");
        fs::create_dir_all(path.join("hooks")).unwrap();
        assert!(PlaceholderDir::create(&path).is_none());
        assert!(path.join("hooks").exists());

        // An empty folder with another mode is not removed.
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        assert!(PlaceholderDir::create(&own).is_none());
        assert!(own.exists());

        // A placeholder that was filled meanwhile is not removed.
        let other = folder.path().join("other");
        let stand_in = PlaceholderDir::create(&other).unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        drop(stand_in);
        assert!(other.join("kept").exists());

        // A later folder of the same name is not removed.
        let third = folder.path().join("third");
        let stand_in = PlaceholderDir::create(&third).unwrap();
        fs::remove_dir(&third).unwrap();
        fs::create_dir(&third).unwrap();
        drop(stand_in);
        assert!(third.exists());
        assert!(PlaceholderDir::create(&folder.path().join("no/such")).is_none());
    }
}
