//! The fast path of canonicalization: one `openat2` call that proves that a path has no
//! symbolic links.
//!
//! **Invariant:** `false` proves nothing; the caller then takes the slow path in
//! [`realpath`](super::realpath).

use std::path::Path;

use cap_std::fs::Dir;

/// Returns whether `path` below `dir` is a file or a folder and has no symbolic links.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn is_link_free(dir: &Dir, path: &Path) -> bool {
    use std::path::Component;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};

    if path.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let mut parts = path.components();
    let found = match (parts.next(), parts.next()) {
        // A single component has no parents that could be links.
        (Some(Component::Normal(name)), None) => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW),
        _ => {
            // `O_PATH` does not block on a pipe.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            openat2(dir, path, flags, Mode::empty(), resolve).and_then(fstat)
        }
    };
    found.is_ok_and(|stat| {
        matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Directory)
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn is_link_free(_: &Dir, _: &Path) -> bool {
    false
}
