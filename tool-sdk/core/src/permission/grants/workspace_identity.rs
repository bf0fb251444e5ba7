//! Tells a folder from another one that later has the same path.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The identity of a workspace in stored grants: its path, and which folder is there.
///
/// The path alone is not enough: a grant in one checkout must not hold for another one that is put
/// in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkspaceIdentity {
    /// The path, without links.
    pub(crate) path: PathBuf,
    pub(crate) folder: FolderIdentity,
}

impl WorkspaceIdentity {
    /// Returns the identity of the folder at `path`, if there is one.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let folder = FolderIdentity::from_metadata(&path.metadata().ok()?);
        Some(Self { path, folder })
    }
}

/// Tells a folder from another one that later has the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FolderIdentity {
    device: u64,
    inode: u64,
    /// The creation time, where it is known: inode numbers are reused.
    born: Option<u64>,
}

impl FolderIdentity {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let born = metadata.created().ok().and_then(nanos_since_epoch);
        #[cfg(unix)]
        let (device, inode) = {
            use std::os::unix::fs::MetadataExt as _;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let (device, inode) = (0, 0);
        Self { device, inode, born }
    }
}

#[cfg(test)]
impl FolderIdentity {
    pub(crate) const fn with_inode(inode: u64) -> Self {
        Self { device: 0, inode, born: None }
    }
}

fn nanos_since_epoch(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}
