//! How a file gets another name in one step, as far as the system can do that.
//!
//! **Invariant:** no file is lost: what has the name keeps it, or gets the other one.

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata};

/// How a file gets another name in one step.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// What has the name gets the other one.
    Exchange,
    /// Nothing has the name.
    New,
}

/// What became of that.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no other system does it"))]
pub(super) enum Renamed {
    Done,
    /// There was nothing to exchange with, or something in the way.
    Not,
    /// The system does not do it.
    Unable,
}

/// What tells a file from all others, whatever its name is.
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
        // File systems, old systems, and what filters calls to the system.
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
