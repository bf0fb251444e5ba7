//! Atomic renames that never overwrite a file: `renameat2` with `RENAME_EXCHANGE` or
//! `RENAME_NOREPLACE`.
//!
//! **Invariant:** no file is lost: an existing file keeps its name or gets the other one.

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

/// What happens to an existing file of the new name.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// The two files exchange their names.
    Exchange,
    /// The rename is refused if the name exists.
    New,
}

/// The outcome of an atomic rename.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux renames atomically"))]
pub(super) enum Renamed {
    Done,
    /// The file to exchange with does not exist, or the new name is taken.
    Not,
    /// The system or the file system does not support it.
    Unable,
}

/// Device and inode: identifies a file independently of its name.
pub(super) type Identity = (u64, u64);

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn rename(dir: &Dir, from: &Path, to: &Path, how: How) -> io::Result<Renamed> {
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::Errno;

    let flags = match how {
        How::Exchange => RenameFlags::EXCHANGE,
        How::New => RenameFlags::NOREPLACE,
    };
    match renameat_with(dir, from, dir, to, flags) {
        Ok(()) => Ok(Renamed::Done),
        Err(Errno::NOENT | Errno::EXIST) => Ok(Renamed::Not),
        // Unsupported by the file system or kernel, or blocked by a seccomp filter.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => Ok(Renamed::Unable),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn identity(dir: &Dir, name: &Path) -> io::Result<Identity> {
    dir.symlink_metadata(name).map(|metadata| identity_of(&metadata))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn identity_of(metadata: &Metadata) -> Identity {
    use cap_std::fs::MetadataExt as _;

    (metadata.dev(), metadata.ino())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn rename(_: &Dir, _: &Path, _: &Path, _: How) -> io::Result<Renamed> {
    Ok(Renamed::Unable)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn identity_of(_: &Metadata) -> Identity {
    Identity::default()
}
