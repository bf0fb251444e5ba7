//! Snapshots: content and metadata of a file when it was read.
//!
//! A change is based on a snapshot. Before and after the file is replaced, it is compared with
//! the snapshot to detect concurrent changes ([`expected_file`](super::expected_file)).

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata, Permissions};

use super::ResolvedPath;
use super::read_to_vec::read_to_spare_capacity;
use super::xattrs::ExtendedAttributes;
use crate::error::{WorkspaceError, WorkspaceErrorKind};

/// The smallest buffer growth for a file that is larger than its metadata says.
const READ_CHUNK: usize = 8 * 1024;

/// The content and metadata of a file at one moment, or the fact that it did not exist.
///
/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Snapshot(Option<Arc<SnapshotData>>);

struct SnapshotData {
    content: Vec<u8>,
    metadata: SnapshotMetadata,
}

/// Metadata of a snapshot; mode, owner and extended attributes are copied to a replacement.
#[derive(Clone)]
pub(super) struct SnapshotMetadata {
    pub(super) permissions: Permissions,
    #[cfg(unix)]
    pub(super) owner: (u32, u32),
    pub(super) attributes: ExtendedAttributes,
    pub(super) stamp: ChangeStamp,
    /// Whether it is a symbolic link; the content is then the target.
    pub(super) is_link: bool,
}

/// Inode, size and times of a file. An equal stamp means that the file was probably not changed;
/// it is no proof, because two changes within one clock tick get the same times.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ChangeStamp {
    #[cfg(unix)]
    file: (u64, u64),
    len: u64,
    #[cfg(unix)]
    times: [(i64, i64); 2],
    #[cfg(not(unix))]
    modified: Option<cap_std::time::SystemTime>,
}

impl Snapshot {
    /// The snapshot of a file that does not exist.
    #[must_use]
    pub fn absent() -> Self {
        Self::default()
    }

    /// Returns the content; `None` when the file did not exist.
    #[must_use]
    pub fn content(&self) -> Option<&[u8]> {
        self.0.as_deref().map(|data| &*data.content)
    }

    pub(super) fn metadata(&self) -> Option<&SnapshotMetadata> {
        self.0.as_deref().map(|data| &data.metadata)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.content().map(<[u8]>::len)).finish()
    }
}

impl ResolvedPath {
    /// Reads a whole file in order to change it. A missing file gives an
    /// [absent](Snapshot::absent) snapshot.
    ///
    /// # Errors
    ///
    /// Fails like [`open_file`](Self::open_file), and with `failed` when the file has more
    /// than `limit` bytes.
    pub fn snapshot(&self, limit: u64) -> Result<Snapshot, WorkspaceError> {
        let (file, metadata) = match self.open_regular() {
            Ok(opened) => opened,
            Err(error) if is_parent_not_folder(&error) => {
                return Err(self
                    .parent_not_folder_error(WorkspaceErrorKind::NotFound)
                    .with_source(error));
            }
            Err(error) if error.kind() == WorkspaceErrorKind::NotFound => {
                return Ok(Snapshot::absent());
            }
            Err(error) => return Err(error),
        };
        let content = read_limited(&file, metadata.len(), limit.saturating_add(1));
        let content = content.map_err(|error| self.io_error("read", error))?;
        if content.len() as u64 > limit {
            return Err(WorkspaceError::failed(format_args!(
                "`{}` has more than {limit} bytes, too many to change it",
                self.display()
            )));
        }
        let attributes =
            ExtendedAttributes::read_from(&file).map_err(|error| self.io_error("read", error))?;
        let saved = SnapshotMetadata::from_std(&metadata, attributes);
        Ok(Snapshot(Some(Arc::new(SnapshotData { content, metadata: saved }))))
    }

    /// Reads a symbolic link at a [canonical](Self::canonicalize) path, in order to remove it. The
    /// content of the snapshot is the target. A canonical path is a link only if the link is
    /// dangling, or if its removal was authorized.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when nothing exists at the path, and with `failed` when it is not
    /// a link.
    pub fn snapshot_link(&self) -> Result<Snapshot, WorkspaceError> {
        let read = |dir: &Dir| {
            let name = self.entry_name();
            Ok((dir.symlink_metadata(name)?, dir.read_link_contents(name)?))
        };
        let (metadata, target) =
            self.with_parent_dir(read).map_err(|error| self.io_error("read", error))?;
        let content = target.into_os_string().into_encoded_bytes();
        Ok(Snapshot(Some(Arc::new(SnapshotData {
            content,
            metadata: SnapshotMetadata::from_cap_std(&metadata, ExtendedAttributes::default()),
        }))))
    }
}

/// Returns whether the file was not found because a component of the path is not a folder, so
/// that it cannot be created either.
fn is_parent_not_folder(error: &WorkspaceError) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    cause.is_some_and(|cause: &io::Error| cause.kind() == io::ErrorKind::NotADirectory)
}

/// Reads at most `most` bytes of a file; `len` is its size by its metadata.
///
/// `len` is only a hint for the buffer size, because the file may have changed since.
fn read_limited(file: &File, len: u64, most: u64) -> io::Result<Vec<u8>> {
    // With one spare byte, a short first read shows the end of the file.
    let mut content = Vec::with_capacity(len.saturating_add(1).min(most) as usize);
    loop {
        match read_to_spare_capacity(file, &mut content) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let (filled, room) = (content.len(), content.capacity());
        if filled as u64 == len && filled < room {
            break;
        }
        if filled == room {
            let next = (2 * filled).max(READ_CHUNK).min(most as usize);
            content.reserve_exact(next.saturating_sub(filled));
        }
    }
    Ok(content)
}

impl SnapshotMetadata {
    pub(super) fn from_std(metadata: &std::fs::Metadata, attributes: ExtendedAttributes) -> Self {
        Self::from_cap_std(&Metadata::from_just_metadata(metadata.clone()), attributes)
    }

    pub(super) fn from_cap_std(metadata: &Metadata, attributes: ExtendedAttributes) -> Self {
        #[cfg(unix)]
        use cap_std::fs::MetadataExt as _;

        Self {
            permissions: metadata.permissions(),
            #[cfg(unix)]
            owner: (metadata.uid(), metadata.gid()),
            attributes,
            stamp: ChangeStamp::from_metadata(metadata),
            is_link: metadata.is_symlink(),
        }
    }

    /// Returns whether a file has the same owner and mode.
    pub(super) fn matches_owner_and_mode(&self, metadata: &Metadata) -> bool {
        #[cfg(unix)]
        use cap_std::fs::MetadataExt as _;

        #[cfg(unix)]
        if self.owner != (metadata.uid(), metadata.gid()) {
            return false;
        }
        self.permissions == metadata.permissions()
    }
}

impl ChangeStamp {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use cap_std::fs::MetadataExt as _;

        Self {
            #[cfg(unix)]
            file: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            #[cfg(unix)]
            times: [
                (metadata.mtime(), metadata.mtime_nsec()),
                (metadata.ctime(), metadata.ctime_nsec()),
            ],
            #[cfg(not(unix))]
            modified: metadata.modified().ok(),
        }
    }
}
