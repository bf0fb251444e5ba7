//! Detects whether a file changed since it was read, by its metadata (cache validation).
//!
//! **Invariant:** a replaced file is never mistaken for the old one.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::SystemTime;

use super::{PrivateFileError, location};

/// The version of a file that was read.
#[derive(Debug)]
pub struct FileVersion {
    stamp: FileStamp,
    /// Kept open, so that the system does not reuse the inode number.
    file: File,
}

impl FileVersion {
    /// Records the version. Call this before reading the content, so that a concurrent write makes
    /// the version stale.
    #[doc(hidden)]
    pub fn from_file(file: File, path: &Path) -> Result<Self, PrivateFileError> {
        let metadata = file.metadata().map_err(PrivateFileError::io("look at", path))?;
        Ok(Self { stamp: FileStamp::from_metadata(&metadata), file })
    }

    #[doc(hidden)]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether the file at `path` still has this version, or is still missing if `last` is
    /// `None`.
    #[doc(hidden)]
    pub fn is_current(last: Option<&Self>, path: &Path) -> Result<bool, PrivateFileError> {
        let Some(metadata) = location::metadata_if_exists(path)? else { return Ok(last.is_none()) };
        location::check_private_file(path, &metadata)?;
        Ok(last.is_some_and(|last| last.stamp == FileStamp::from_metadata(&metadata)))
    }
}

/// Inode, size and modification time of a file.
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    /// Device and inode, where the system has them.
    number: Option<(u64, u64)>,
    length: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    fn from_metadata(metadata: &Metadata) -> Self {
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
        assert!(FileVersion::is_current(None, &path).unwrap());
        let write = |text: &str| {
            use std::io::Write as _;
            crate::private_file::replace_file(&path, |file| file.write_all(text.as_bytes()))
                .unwrap();
        };
        write("one");
        assert!(!FileVersion::is_current(None, &path).unwrap());
        let version = FileVersion::from_file(File::open(&path).unwrap(), &path).unwrap();
        assert!(FileVersion::is_current(Some(&version), &path).unwrap());
        // The same length, and perhaps the same modification time.
        write("two");
        assert!(!FileVersion::is_current(Some(&version), &path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!FileVersion::is_current(Some(&version), &path).unwrap());
    }
}
