//! Whether a path leads where it says, with no link on the way: one question to a system that
//! can answer it.
//!
//! **Invariant:** a no means nothing; whoever gets it looks for links himself.

use std::path::Path;

use cap_std::fs::Dir;

/// Whether there is a file or a folder at `path` below `dir`, and no link on the way there.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn is_straight(dir: &Dir, path: &Path) -> bool {
    use std::path::Component;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};

    if path.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let mut parts = path.components();
    let found = match (parts.next(), parts.next()) {
        // There is nothing on the way to a name in the folder itself.
        (Some(Component::Normal(name)), None) => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW),
        _ => {
            // To look is not to open: no pipe is waited for.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            openat2(dir, path, flags, Mode::empty(), resolve).and_then(fstat)
        }
    };
    found.is_ok_and(|facts| {
        matches!(
            FileType::from_raw_mode(facts.st_mode),
            FileType::RegularFile | FileType::Directory
        )
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn is_straight(_: &Dir, _: &Path) -> bool {
    false
}
