//! Where a path leads once all links on the way are followed.
//!
//! **Invariant:** every name is one that something has, or that was asked for.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use super::rename::identity_of;

/// What Linux writes behind the name of what was removed meanwhile.
const REMOVED: &[u8] = b" (deleted)";

/// How often something is looked for that others replace all the time.
const TRIES: usize = 8;

/// The path without links, as far as `canonicalize` finds it; what does not exist follows
/// as it is.
pub(super) fn settle(
    path: &Path,
    canonicalize: impl Fn(&Path) -> io::Result<PathBuf>,
) -> io::Result<PathBuf> {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        let error = match canonicalize(there) {
            Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) => error,
        };
        let is_missing =
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        // Where nothing is, `..` leads nowhere.
        let (true, Some(name)) = (is_missing, there.file_name()) else { return Err(error) };
        missing.push(name);
        there = match there.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
    }
}

/// The path below `dir` without links, of something that is still there.
pub(super) fn canonicalize(dir: &Dir, path: &Path) -> io::Result<PathBuf> {
    for _ in 0..TRIES {
        let real = dir.canonicalize(path)?;
        // A file may be called that, too.
        if !real.as_os_str().as_encoded_bytes().ends_with(REMOVED) || is_at(dir, path, &real) {
            return Ok(real);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Whether `path` leads to what is at `real`.
fn is_at(dir: &Dir, path: &Path, real: &Path) -> bool {
    match (dir.metadata(path), dir.symlink_metadata(real)) {
        (Ok(found), Ok(there)) => identity_of(&found) == identity_of(&there),
        _ => false,
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use cap_std::ambient_authority;

    use super::*;

    // PA1: nothing is done to a name that only the system made up.
    #[test]
    fn what_is_replaced_meanwhile_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("file", at("link")).unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    fs::write(at("next"), "").unwrap();
                    fs::rename(at("next"), at("file")).unwrap();
                }
            });
            let names: Vec<_> = (0..20_000)
                .filter_map(|_| canonicalize(&dir, Path::new("link")).ok())
                .filter(|real| real != Path::new("file"))
                .collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(names, [] as [PathBuf; 0]);
        });
    }

    #[test]
    fn a_file_may_be_called_as_if_it_were_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a (deleted)"), "").unwrap();
        symlink("a (deleted)", folder.path().join("link")).unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        for path in ["link", "a (deleted)"] {
            assert_eq!(canonicalize(&dir, Path::new(path)).unwrap(), Path::new("a (deleted)"));
        }
    }
}
