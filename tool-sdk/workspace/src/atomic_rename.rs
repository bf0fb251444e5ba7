//! Atomic renames that never overwrite a file: `renameat2` with `RENAME_EXCHANGE` or
//! `RENAME_NOREPLACE`.
//!
//! **Invariant:** no file is lost: an existing file keeps its name or gets the other one.

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

/// What happens to an existing file of the new name.
#[derive(Clone, Copy)]
pub(super) enum RenameMode {
    /// The two files exchange their names.
    Exchange,
    /// The rename is refused if the name exists.
    NoReplace,
}

/// The outcome of an atomic rename.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux renames atomically"))]
pub(super) enum RenameOutcome {
    Done,
    /// The file to exchange with does not exist, or the new name is taken.
    Refused,
    /// The system or the file system does not support it.
    Unsupported,
}

/// Device and inode: identifies a file independently of its name.
pub(super) type FileIdentity = (u64, u64);

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn rename_atomically(
    dir: &Dir,
    from: &Path,
    to: &Path,
    how: RenameMode,
) -> io::Result<RenameOutcome> {
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::Errno;

    let flags = match how {
        RenameMode::Exchange => RenameFlags::EXCHANGE,
        RenameMode::NoReplace => RenameFlags::NOREPLACE,
    };
    match renameat_with(dir, from, dir, to, flags) {
        Ok(()) => Ok(RenameOutcome::Done),
        Err(Errno::NOENT | Errno::EXIST) => Ok(RenameOutcome::Refused),
        // Unsupported by the file system or kernel, or blocked by a seccomp filter.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
            Ok(RenameOutcome::Unsupported)
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn read_identity(dir: &Dir, name: &Path) -> io::Result<FileIdentity> {
    dir.symlink_metadata(name).map(|metadata| identity_from(&metadata))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn identity_from(metadata: &Metadata) -> FileIdentity {
    use cap_std::fs::MetadataExt as _;

    (metadata.dev(), metadata.ino())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn rename_atomically(
    _: &Dir,
    _: &Path,
    _: &Path,
    _: RenameMode,
) -> io::Result<RenameOutcome> {
    Ok(RenameOutcome::Unsupported)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn identity_from(_: &Metadata) -> FileIdentity {
    FileIdentity::default()
}
