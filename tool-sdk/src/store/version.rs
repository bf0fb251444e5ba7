//! Whether a file is still the one that was read, as far as that is seen without reading it.
//!
//! **Invariant:** a file that was put in the place of another one is never taken for it.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::SystemTime;

use super::{StoreError, place};

/// The state of a file that was read.
#[derive(Debug)]
pub(crate) struct Version {
    stamp: Stamp,
    /// Kept open, so that no later file gets its number.
    file: File,
}

impl Version {
    /// To be taken before the content is read, so that what is written into it meanwhile is a
    /// later state.
    pub(crate) fn of(file: File, path: &Path) -> Result<Self, StoreError> {
        let metadata = file.metadata().map_err(StoreError::io("look at", path))?;
        Ok(Self { stamp: Stamp::of(&metadata), file })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether what is at `path` is in this state, or is as absent as it was.
    pub(crate) fn is_still(last: Option<&Self>, path: &Path) -> Result<bool, StoreError> {
        let Some(metadata) = place::look(path)? else { return Ok(last.is_none()) };
        place::private_file(path, &metadata)?;
        Ok(last.is_some_and(|last| last.stamp == Stamp::of(&metadata)))
    }
}

/// What differs between two states of a file.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    /// The device and the number of the file there, where the system tells.
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
    fn another_file_is_another_version() {
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
        // Of the same length, and perhaps of the same moment.
        write("two");
        assert!(!Version::is_still(Some(&version), &path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!Version::is_still(Some(&version), &path).unwrap());
    }
}
