//! Files that outlive the program and that only the user may write.
//!
//! [`place`] says whose a file is. Here is how it changes: one writer at a time, who holds a
//! lock beside the file because the file itself may be replaced, and whose new file takes the
//! place of the old one in one step. A process that dies on the way leaves the old file or the
//! new one, and perhaps one that is not finished, which the next writer sweeps away.
//!
//! **Invariant:** nothing here knows what is in a file.

mod error;
pub(crate) mod place;
pub(crate) mod version;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

pub use self::error::StoreError;

/// How long a writer waits for the others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The end of the names of files that are not finished.
const UNFINISHED: &str = ".tmp";

/// The right to write, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The system takes the lock back when this is closed, also when the process dies.
    file: File,
}

impl Drop for Lock {
    /// A child that was just forked holds a copy of what is open until it runs its program, and
    /// would hold the lock with it.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Waits for the other writers for as long as `patience` lasts.
pub(crate) fn lock(path: &Path, patience: Duration) -> Result<Lock, StoreError> {
    wait(place::open_lock(path)?, path, patience)
}

/// The same for a file in a folder of somebody else, in which nothing is left: who holds the lock
/// holds it of the folder. Where folders cannot be locked, nobody waits.
#[cfg(feature = "mcp")]
pub(crate) fn lock_folder_of(path: &Path, patience: Duration) -> Result<Option<Lock>, StoreError> {
    let folder = folder_of(path);
    let Ok(file) = File::open(&folder) else { return Ok(None) };
    match wait(file, &folder, patience) {
        Err(StoreError::Io { .. }) => Ok(None),
        locked => locked.map(Some),
    }
}

fn wait(file: File, path: &Path, patience: Duration) -> Result<Lock, StoreError> {
    let busy = || StoreError::Busy { path: path.to_owned() };
    match file.try_lock() {
        Ok(()) => return Ok(Lock { file }),
        Err(fs::TryLockError::WouldBlock) if patience.is_zero() => return Err(busy()),
        Err(fs::TryLockError::WouldBlock) => {}
        Err(fs::TryLockError::Error(error)) => return Err(StoreError::io("lock", path)(error)),
    }
    // Who looks now and then is overtaken again and again; the system lets those who wait have it
    // in turn, but not give up. So a thread waits, and what it gets too late it gives back.
    let (sender, receiver) = mpsc::channel();
    let wait = move || drop(sender.send(file.lock().map(|()| Lock { file })));
    let spawned = thread::Builder::new().name("store-lock".to_owned()).spawn(wait);
    spawned.map_err(StoreError::io("lock", path))?;
    let locked = receiver.recv_timeout(patience).map_err(|_| busy())?;
    locked.map_err(StoreError::io("lock", path))
}

/// Puts what `write` writes in the place of the file at `path`: for the user alone, unless
/// `write` says otherwise, and certain to outlast a loss of power.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let folder = folder_of(path);
    let unfinished = folder.join(format!("{}{:016x}{UNFINISHED}", start(path), getrandom::u64()?));
    let finish = || {
        let mut file = place::create_new(&unfinished)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    finish().inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    place::flush_folder(&folder)
}

/// Gives a file that nobody understands another name, and says which. Who does this holds the
/// lock, so that nobody writes into it meanwhile.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = folder_of(path);
    let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let names = (0..1000).map(|nth| match nth {
        0 => format!("{name}.corrupt-{now}"),
        nth => format!("{name}.corrupt-{now}-{nth}"),
    });
    for aside in names.map(|name| folder.join(name)) {
        if place::look(&aside)?.is_none() {
            fs::rename(path, &aside).map_err(StoreError::io("set aside", path))?;
            place::flush_folder(&folder).map_err(StoreError::io("write", &folder))?;
            return Ok(aside);
        }
    }
    Err(StoreError::Full { path: path.to_owned() })
}

/// Removes what dead processes did not finish of the file at `path`. Those alive hold the
/// lock, so there is none; what cannot be removed now is removed another time.
pub(crate) fn sweep(path: &Path) {
    let start = start(path);
    for entry in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_unfinished = name
            .to_str()
            .is_some_and(|name| name.starts_with(&start) && name.ends_with(UNFINISHED));
        if is_unfinished {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// How the names of files begin that are to take the place of the one at `path`.
fn start(path: &Path) -> String {
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

    // F77: a disk that is full, or that fails.
    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        replace(&path, |file| file.write_all(b"old")).unwrap();
        let full = replace(&path, |file| {
            file.write_all(b"half of it")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["kept.json"]);
        replace(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        replace(&path, |file| {
            assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_was_not_finished_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".kept-1.tmp", ".kept-other", ".keptsake-1.tmp", "mine.tmp"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        sweep(&folder.path().join("kept.json"));
        assert_eq!(names(folder.path()), [".kept-other", ".keptsake-1.tmp", "mine.tmp"]);
    }

    #[test]
    fn one_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.lock");
        let first = lock(&path, PATIENCE).unwrap();
        assert!(matches!(lock(&path, Duration::ZERO), Err(StoreError::Busy { .. })));
        // Who gave up has it not when it is free.
        assert!(matches!(lock(&path, Duration::from_millis(1)), Err(StoreError::Busy { .. })));
        thread::scope(|scope| {
            let next = scope.spawn(|| lock(&path, PATIENCE));
            drop(first);
            next.join().unwrap().unwrap();
        });
    }
}
