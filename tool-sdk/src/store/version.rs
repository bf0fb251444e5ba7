//! Detects whether a file changed since it was read, by its metadata (cache validation).
//!
//! **Invariant:** a replaced file is never mistaken for the old one.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::SystemTime;

use super::{StoreError, place};

/// The version of a file that was read.
#[derive(Debug)]
pub(crate) struct Version {
    stamp: Stamp,
    /// Kept open, so that the system does not reuse the inode number.
    file: File,
}

impl Version {
    /// Records the version. Call this before reading the content, so that a concurrent write makes
    /// the version stale.
    pub(crate) fn of(file: File, path: &Path) -> Result<Self, StoreError> {
        let metadata = file.metadata().map_err(StoreError::io("look at", path))?;
        Ok(Self { stamp: Stamp::of(&metadata), file })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether the file at `path` still has this version, or is still missing if `last` is
    /// `None`.
    pub(crate) fn is_still(last: Option<&Self>, path: &Path) -> Result<bool, StoreError> {
        let Some(metadata) = place::look(path)? else { return Ok(last.is_none()) };
        place::private_file(path, &metadata)?;
        Ok(last.is_some_and(|last| last.stamp == Stamp::of(&metadata)))
    }
}

/// Inode, size and modification time of a file.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    /// Device and inode, where the system has them.
    number: Option<(u64, u64)>,
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt as _;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let number = None;
        Self { number, length: metadata.len(), modified: metadata.modified().ok() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_replaced_file_has_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        assert!(Version::is_still(None, &path).unwrap());
        let write = |text: &str| {
            use std::io::Write as _;
            crate::store::replace(&path, |file| file.write_all(text.as_bytes())).unwrap();
        };
        write("one");
        assert!(!Version::is_still(None, &path).unwrap());
        let version = Version::of(File::open(&path).unwrap(), &path).unwrap();
        assert!(Version::is_still(Some(&version), &path).unwrap());
        // The same length, and perhaps the same modification time.
        write("two");
        assert!(!Version::is_still(Some(&version), &path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!Version::is_still(Some(&version), &path).unwrap());
    }
}
