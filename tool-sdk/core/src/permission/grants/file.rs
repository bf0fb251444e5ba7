//! Reads and writes the file of stored grants; the file is never half written.
//!
//! Every change replaces the file with a new one, flushed before and after, while a lock file keeps
//! other processes out (AP2). A process that dies in between leaves the old file or the new one.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::format::{self, MAX_BYTES};
use super::{PrivateFileError, StoredGrant};
use crate::private_file::version::FileVersion;
use crate::private_file::{self, FileLock, location};

const FILE_NAME: &str = "approvals.json";
const LOCK_NAME: &str = "approvals.lock";

fn grants_path(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

/// The content of the file.
enum FileContent {
    Missing,
    Grants(Vec<StoredGrant>, FileVersion),
    /// The reason why the file is corrupt.
    Corrupt(&'static str),
}

/// The stored grants before a change.
#[derive(Default)]
pub(super) struct CurrentGrants {
    pub(super) grants: Vec<StoredGrant>,
    /// The corrupt file that was set aside; there are no grants then.
    pub(super) corrupt: Option<PrivateFileError>,
}

/// Whether the file is still the one that was read, or still missing.
pub(super) fn is_unchanged(
    last: Option<&FileVersion>,
    folder: &Path,
) -> Result<bool, PrivateFileError> {
    FileVersion::is_current(last, &grants_path(folder))
}

/// Returns the grants and the version of the file; `None` without a file. A corrupt file is set
/// aside, and an error is returned.
pub(super) fn read_or_set_aside(
    folder: &Path,
    patience: Duration,
) -> Result<Option<(Vec<StoredGrant>, FileVersion)>, PrivateFileError> {
    match load_file(folder)? {
        FileContent::Missing => Ok(None),
        FileContent::Grants(approvals, version) => Ok(Some((approvals, version))),
        FileContent::Corrupt(_) => {
            // Only with the lock is the file certain to be the same when it is moved.
            let writer = GrantWriter::acquire(folder, patience)?;
            Err(writer
                .read_current()?
                .corrupt
                .unwrap_or_else(|| PrivateFileError::Busy { path: grants_path(folder) }))
        }
    }
}

fn load_file(folder: &Path) -> Result<FileContent, PrivateFileError> {
    let path = grants_path(folder);
    let Some(file) = location::open_private(&path)? else { return Ok(FileContent::Missing) };
    let version = FileVersion::from_file(file, &path)?;
    let mut bytes = Vec::new();
    // One more byte than allowed tells a file that is too long from one that just fits.
    let most = MAX_BYTES + 1;
    version
        .file()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(PrivateFileError::io("read", &path))?;
    if bytes.len() as u64 == most {
        return Ok(FileContent::Corrupt("it is too large"));
    }
    Ok(match format::decode_grants(&bytes) {
        Ok(approvals) => FileContent::Grants(approvals, version),
        Err(why) => FileContent::Corrupt(why),
    })
}

/// The lock for writing, held until it is dropped.
#[derive(Debug)]
pub(super) struct GrantWriter<'f> {
    folder: &'f Path,
    _lock: FileLock,
}

impl<'f> GrantWriter<'f> {
    /// Waits for other processes for up to `patience`.
    pub(super) fn acquire(folder: &'f Path, patience: Duration) -> Result<Self, PrivateFileError> {
        Ok(Self { folder, _lock: private_file::acquire_lock(&folder.join(LOCK_NAME), patience)? })
    }

    /// Returns the stored grants.
    ///
    /// A corrupt file is set aside, never deleted.
    pub(super) fn read_current(&self) -> Result<CurrentGrants, PrivateFileError> {
        match load_file(self.folder)? {
            FileContent::Missing => Ok(CurrentGrants::default()),
            FileContent::Grants(approvals, _) => {
                Ok(CurrentGrants { grants: approvals, corrupt: None })
            }
            FileContent::Corrupt(why) => {
                let aside = private_file::set_aside(&grants_path(self.folder))?;
                let corrupt = Some(PrivateFileError::Corrupt { aside, why });
                Ok(CurrentGrants { grants: Vec::new(), corrupt })
            }
        }
    }

    /// Replaces the stored grants with `approvals`.
    pub(super) fn replace_all(&self, approvals: &[StoredGrant]) -> Result<(), PrivateFileError> {
        let path = grants_path(self.folder);
        let text =
            format::encode_grants(approvals).map_err(PrivateFileError::io("write", &path))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(PrivateFileError::Full { path });
        }
        private_file::remove_unfinished(&path);
        let write = |file: &mut File| location::append_to(file, text.as_bytes());
        private_file::replace_file(&path, write).map_err(PrivateFileError::io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::private_file::LOCK_TIMEOUT;

    #[test]
    fn what_is_set_aside_takes_no_ones_place() {
        let folder = tempfile::tempdir().unwrap();
        let writer = GrantWriter::acquire(folder.path(), LOCK_TIMEOUT).unwrap();
        let mut asides = Vec::new();
        for _ in 0..3 {
            fs::write(grants_path(folder.path()), "").unwrap();
            let CurrentGrants { grants: approvals, corrupt } = writer.read_current().unwrap();
            let Some(PrivateFileError::Corrupt { aside, .. }) = corrupt else {
                panic!("{corrupt:?}")
            };
            assert!(approvals.is_empty() && !asides.contains(&aside));
            asides.push(aside);
        }
        assert!(asides.iter().all(|aside| aside.exists()));
    }
}
