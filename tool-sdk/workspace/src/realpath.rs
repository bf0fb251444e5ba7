//! Canonicalizes paths (`realpath`): resolves all symbolic links of a path.
//!
//! **Invariant:** every component of the result exists, or comes from the given path.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use super::atomic_rename::identity_from;

/// The suffix that Linux appends to the path of a removed file in `/proc/self/fd`.
const REMOVED_SUFFIX: &[u8] = b" (deleted)";

/// How often a path is resolved again when other processes keep replacing the file.
const MAX_ATTEMPTS: usize = 8;

/// Canonicalizes the longest existing prefix of the path with `canonicalize`, and appends the
/// missing components as they are.
pub(super) fn canonicalize_existing(
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
        // Fails for `..` behind a missing component, which cannot be resolved.
        let (true, Some(name)) = (is_missing, there.file_name()) else { return Err(error) };
        missing.push(name);
        there = match there.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
    }
}

/// Canonicalizes a path of an existing file relative to `dir`. Retries when the file was removed
/// while it was resolved.
pub(super) fn canonicalize(dir: &Dir, path: &Path) -> io::Result<PathBuf> {
    for _ in 0..MAX_ATTEMPTS {
        let real = dir.canonicalize(path)?;
        // The name of an existing file may end in the suffix too.
        if !real.as_os_str().as_encoded_bytes().ends_with(REMOVED_SUFFIX)
            || leads_to(dir, path, &real)
        {
            return Ok(real);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Returns whether `path` leads to the same file as the canonical path `real`.
fn leads_to(dir: &Dir, path: &Path, real: &Path) -> bool {
    match (dir.metadata(path), dir.symlink_metadata(real)) {
        (Ok(found), Ok(there)) => identity_from(&found) == identity_from(&there),
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

    // PA1: the suffix that the kernel appends never becomes part of a path.
    #[test]
    fn canonicalizes_while_the_file_is_replaced() {
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
    fn keeps_names_that_end_in_the_removed_suffix() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a (deleted)"), "").unwrap();
        symlink("a (deleted)", folder.path().join("link")).unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        for path in ["link", "a (deleted)"] {
            assert_eq!(canonicalize(&dir, Path::new(path)).unwrap(), Path::new("a (deleted)"));
        }
    }
}
