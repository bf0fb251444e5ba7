//! What a file held when it was read: the base of a change, and the proof that nobody else
//! made one meanwhile.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata, Permissions};

use super::Located;
use super::attributes::Attributes;
use super::fill::fill;
use crate::error::{ErrorKind, ToolError};

/// How much is read at once of a file that is larger than the system says.
const AT_ONCE: usize = 8 * 1024;

/// A file as it was at one moment, or that there was none.
///
/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Snapshot(Option<Arc<Taken>>);

struct Taken {
    content: Vec<u8>,
    facts: Facts,
}

/// What a file has beside its content, and what its successor gets of that.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) permissions: Permissions,
    #[cfg(unix)]
    pub(super) owner: (u32, u32),
    pub(super) attributes: Attributes,
    pub(super) stamp: Stamp,
    /// Whether it is a symbolic link, whose content is where it leads.
    pub(super) is_link: bool,
}

/// What the system says of a file that nobody touched, and hardly of one that somebody did:
/// two changes within one tick of its clock may have the same time.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    #[cfg(unix)]
    file: (u64, u64),
    len: u64,
    #[cfg(unix)]
    times: [(i64, i64); 2],
    #[cfg(not(unix))]
    modified: Option<cap_std::time::SystemTime>,
}

impl Snapshot {
    /// That there is no file.
    #[must_use]
    pub fn absent() -> Self {
        Self::default()
    }

    /// What the file held; `None` when there was none.
    #[must_use]
    pub fn content(&self) -> Option<&[u8]> {
        self.0.as_deref().map(|taken| &*taken.content)
    }

    pub(super) fn facts(&self) -> Option<&Facts> {
        self.0.as_deref().map(|taken| &taken.facts)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.content().map(<[u8]>::len)).finish()
    }
}

impl Located {
    /// Reads a whole file in order to change it; that there is none is an answer, too.
    ///
    /// # Errors
    ///
    /// Fails like [`open_file`](Self::open_file), and with `failed` when the file has more
    /// than `limit` bytes.
    pub fn snapshot(&self, limit: u64) -> Result<Snapshot, ToolError> {
        self.read_whole(limit, self.open_regular())
    }

    /// The same of a real place, through the folder that holds it.
    pub(super) fn snapshot_in(
        &self,
        limit: u64,
        holder: impl FnOnce() -> io::Result<Arc<Dir>>,
    ) -> Result<Snapshot, ToolError> {
        match self.is_real {
            true => self.read_whole(limit, self.open_regular_in(holder)),
            false => self.snapshot(limit),
        }
    }

    fn read_whole(
        &self,
        limit: u64,
        opened: Result<(File, std::fs::Metadata), ToolError>,
    ) -> Result<Snapshot, ToolError> {
        let (file, metadata) = match opened {
            Ok(opened) => opened,
            Err(error) if is_below_a_file(&error) => {
                return Err(self.is_below_a_file(ErrorKind::NotFound).source(error));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Snapshot::absent()),
            Err(error) => return Err(error),
        };
        let content = read(&file, metadata.len(), limit.saturating_add(1));
        let content = content.map_err(|error| self.error("read", error))?;
        if content.len() as u64 > limit {
            return Err(ToolError::failed(format_args!(
                "`{}` has more than {limit} bytes, too many to change it",
                self.display()
            )));
        }
        let attributes = Attributes::of(&file).map_err(|error| self.error("read", error))?;
        let facts = Facts::of(&metadata, attributes);
        Ok(Snapshot(Some(Arc::new(Taken { content, facts }))))
    }

    /// Reads the symbolic link that is at a [real](Self::real) place, in order to remove it; its
    /// content is where it leads. There is one only where that is nowhere, or where
    /// [removing](crate::WorkspacePath::removed) it was judged.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when nothing is there, and with `failed` when it is no link.
    pub fn snapshot_of_link(&self) -> Result<Snapshot, ToolError> {
        let read = |dir: &Dir| {
            let name = self.last_name();
            Ok((dir.symlink_metadata(name)?, dir.read_link_contents(name)?))
        };
        let (metadata, target) = self.in_holder(read).map_err(|error| self.error("read", error))?;
        let content = target.into_os_string().into_encoded_bytes();
        Ok(Snapshot(Some(Arc::new(Taken {
            content,
            facts: Facts::told(&metadata, Attributes::default()),
        }))))
    }
}

/// Whether nothing was found because a part of the path is a file, so that nothing can be made.
fn is_below_a_file(error: &ToolError) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    cause.is_some_and(|cause: &io::Error| cause.kind() == io::ErrorKind::NotADirectory)
}

/// What a file holds that is said to have `len` bytes, and not more than `most` of it.
///
/// The size comes from reading: what the system claims may be out of date.
fn read(file: &File, len: u64, most: u64) -> io::Result<Vec<u8>> {
    // With room for one more, the first reading says that there is nothing more.
    let mut content = Vec::with_capacity(len.saturating_add(1).min(most) as usize);
    loop {
        match fill(file, &mut content) {
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
            let next = (2 * filled).max(AT_ONCE).min(most as usize);
            content.reserve_exact(next.saturating_sub(filled));
        }
    }
    Ok(content)
}

impl Facts {
    pub(super) fn of(metadata: &std::fs::Metadata, attributes: Attributes) -> Self {
        Self::told(&Metadata::from_just_metadata(metadata.clone()), attributes)
    }

    fn told(metadata: &Metadata, attributes: Attributes) -> Self {
        #[cfg(unix)]
        use cap_std::fs::MetadataExt as _;

        Self {
            permissions: metadata.permissions(),
            #[cfg(unix)]
            owner: (metadata.uid(), metadata.gid()),
            attributes,
            stamp: Stamp::of(metadata),
            is_link: metadata.is_symlink(),
        }
    }

    /// Whether a file has what its successor gets of it.
    pub(super) fn fit(&self, metadata: &Metadata) -> bool {
        #[cfg(unix)]
        use cap_std::fs::MetadataExt as _;

        #[cfg(unix)]
        if self.owner != (metadata.uid(), metadata.gid()) {
            return false;
        }
        self.permissions == metadata.permissions()
    }
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
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
