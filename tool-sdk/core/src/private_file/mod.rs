//! Private files: persistent state that only the user may write, such as stored approvals.
//!
//! [`location`] checks the ownership and mode of a file. This module changes it: one writer at a
//! time, serialized by a lock file beside it, and by an atomic rename. A process that dies while
//! writing leaves the old file or the new one, and perhaps a temporary file that the next writer
//! removes.
//!
//! **Invariant:** this module does not know the format of a file.

mod error;
pub(crate) mod location;
pub(crate) mod version;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

pub use self::error::PrivateFileError;

/// The timeout for the lock: each of many processes that write at once gets its turn in less.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The suffix of temporary files.
const TEMP_SUFFIX: &str = ".tmp";

/// A guard that holds the lock of a file.
#[derive(Debug)]
pub struct FileLock {
    /// The system releases the lock when this is closed, also when the process dies.
    file: File,
}

impl Drop for FileLock {
    /// Unlocks explicitly, because a forked child holds a copy of the descriptor until it calls
    /// `exec`, and with it the lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Acquires the lock file at `path`, and waits up to `patience` for other writers.
pub fn acquire_lock(path: &Path, patience: Duration) -> Result<FileLock, PrivateFileError> {
    wait_for_lock(location::open_lock_file(path)?, path, LockKind::Exclusive, patience)
}

/// Acquires the lock file at `path` together with other processes that share it, and waits up to
/// `patience` for one that holds it alone.
pub fn acquire_shared_lock(path: &Path, patience: Duration) -> Result<FileLock, PrivateFileError> {
    wait_for_lock(location::open_lock_file(path)?, path, LockKind::Shared, patience)
}

/// Locks the parent folder of `path` instead of a lock file, for folders in which no lock file may
/// be created. Returns `None` where folders cannot be locked.
pub fn lock_parent_folder(
    path: &Path,
    patience: Duration,
) -> Result<Option<FileLock>, PrivateFileError> {
    let folder = parent_folder(path);
    let Ok(file) = File::open(&folder) else { return Ok(None) };
    match wait_for_lock(file, &folder, LockKind::Exclusive, patience) {
        Err(PrivateFileError::Io { .. }) => Ok(None),
        locked => locked.map(Some),
    }
}

/// Whether a lock is held alone.
#[derive(Clone, Copy)]
enum LockKind {
    Exclusive,
    Shared,
}

impl LockKind {
    fn try_lock(self, file: &File) -> Result<(), fs::TryLockError> {
        match self {
            Self::Exclusive => file.try_lock(),
            Self::Shared => file.try_lock_shared(),
        }
    }

    fn lock(self, file: &File) -> io::Result<()> {
        match self {
            Self::Exclusive => file.lock(),
            Self::Shared => file.lock_shared(),
        }
    }
}

fn wait_for_lock(
    file: File,
    path: &Path,
    kind: LockKind,
    patience: Duration,
) -> Result<FileLock, PrivateFileError> {
    let busy = || PrivateFileError::Busy { path: path.to_owned() };
    match kind.try_lock(&file) {
        Ok(()) => return Ok(FileLock { file }),
        Err(fs::TryLockError::WouldBlock) if patience.is_zero() => return Err(busy()),
        Err(fs::TryLockError::WouldBlock) => {}
        Err(fs::TryLockError::Error(error)) => {
            return Err(PrivateFileError::io("lock", path)(error));
        }
    }
    // Polling would starve behind other writers. A blocking lock wakes them but has no timeout, so a
    // thread waits for it; a lock that is acquired after the timeout is released at once.
    let (sender, receiver) = mpsc::channel();
    let wait = move || drop(sender.send(kind.lock(&file).map(|()| FileLock { file })));
    let spawned = thread::Builder::new().name("store-lock".to_owned()).spawn(wait);
    spawned.map_err(PrivateFileError::io("lock", path))?;
    let locked = receiver.recv_timeout(patience).map_err(|_| busy())?;
    locked.map_err(PrivateFileError::io("lock", path))
}

/// Replaces the file at `path` atomically by what `write` writes, and flushes it to disk. The new
/// file has mode `0o600` unless `write` changes that.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let folder = parent_folder(path);
    let unfinished =
        folder.join(format!("{}{:016x}{TEMP_SUFFIX}", temp_prefix(path), getrandom::u64()?));
    let finish = || {
        let mut file = location::create_new(&unfinished)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    finish().inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    location::sync_folder(&folder)
}

/// Renames a corrupt file, and returns the new path. The caller must hold the lock.
pub fn set_aside(path: &Path) -> Result<PathBuf, PrivateFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = parent_folder(path);
    let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let names = (0..1000).map(|nth| match nth {
        0 => format!("{name}.corrupt-{now}"),
        nth => format!("{name}.corrupt-{now}-{nth}"),
    });
    for aside in names.map(|name| folder.join(name)) {
        if location::metadata_if_exists(&aside)?.is_none() {
            fs::rename(path, &aside).map_err(PrivateFileError::io("set aside", path))?;
            location::sync_folder(&folder).map_err(PrivateFileError::io("write", &folder))?;
            return Ok(aside);
        }
    }
    Err(PrivateFileError::Full { path: path.to_owned() })
}

/// Removes temporary files that dead processes left for the file at `path`. The caller holds the
/// lock, so no other process is writing one. Files that cannot be removed are left for next time.
pub fn remove_unfinished(path: &Path) {
    let start = temp_prefix(path);
    for entry in fs::read_dir(parent_folder(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_unfinished = name
            .to_str()
            .is_some_and(|name| name.starts_with(&start) && name.ends_with(TEMP_SUFFIX));
        if is_unfinished {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn parent_folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns the prefix of the temporary files for the file at `path`.
fn temp_prefix(path: &Path) -> String {
    format!(".{}-", path.file_stem().unwrap_or_default().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    // F77: the disk is full, or fails.
    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        replace_file(&path, |file| file.write_all(b"old")).unwrap();
        let full = replace_file(&path, |file| {
            file.write_all(b"half of it")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["kept.json"]);
        replace_file(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn new_files_have_mode_0600() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        replace_file(&path, |file| {
            assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn removes_unfinished_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".kept-1.tmp", ".kept-other", ".keptsake-1.tmp", "mine.tmp"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        remove_unfinished(&folder.path().join("kept.json"));
        assert_eq!(names(folder.path()), [".kept-other", ".keptsake-1.tmp", "mine.tmp"]);
    }

    #[test]
    fn the_lock_is_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.lock");
        let first = acquire_lock(&path, LOCK_TIMEOUT).unwrap();
        assert!(matches!(acquire_lock(&path, Duration::ZERO), Err(PrivateFileError::Busy { .. })));
        // A waiter that timed out does not keep the lock when it gets it later.
        assert!(matches!(
            acquire_lock(&path, Duration::from_millis(1)),
            Err(PrivateFileError::Busy { .. })
        ));
        thread::scope(|scope| {
            let next = scope.spawn(|| acquire_lock(&path, LOCK_TIMEOUT));
            drop(first);
            next.join().unwrap().unwrap();
        });
    }
}
