//! Advisory directory locks (`flock`) that serialize transactions in the same folder, also between
//! processes.
//!
//! A transaction that replaced a file with concurrent changes exchanges it back. Two of them
//! doing so at the same time would undo each other, so one waits for the other.
//!
//! The lock is taken on the handle through which the folder is changed. A separate handle could
//! exceed the limit of open files, and a transaction without handles could not be rolled back.
//!
//! **Invariant:** waiting has a timeout. A file system without locks, or a process that holds a
//! lock for too long, does not prevent a write.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

pub(super) use self::system::open_lockable;
use self::system::{dir_identity, try_lock, unlock};

/// The delay between two attempts to lock.
const RETRY_DELAY: Duration = Duration::from_micros(50);

/// The remaining time that one transaction waits for locks, over all its folders.
pub(super) struct LockTimeout(Duration);

impl Default for LockTimeout {
    fn default() -> Self {
        Self(Duration::from_secs(2))
    }
}

/// A guard that holds the locks of some folders.
#[must_use = "the folders are unlocked when it is dropped"]
pub(super) struct DirLocks {
    locked: Vec<Arc<Dir>>,
}

impl DirLocks {
    /// Waits for the lock of each folder, until the timeout or until `stopped` returns `true`.
    /// `dirs` may contain a folder several times.
    pub(super) fn acquire<'d>(
        dirs: impl IntoIterator<Item = &'d Arc<Dir>>,
        patience: &mut LockTimeout,
        stopped: &impl Fn() -> bool,
    ) -> Self {
        let mut dirs: Vec<_> = dirs.into_iter().collect();
        dirs.sort_unstable_by_key(|dir| Arc::as_ptr(dir));
        dirs.dedup_by_key(|dir| Arc::as_ptr(dir));
        // Deduplicate by inode, so that the transaction does not wait for itself, and lock in
        // ascending order, so that two transactions cannot deadlock.
        let folders: BTreeMap<DirIdentity, &Arc<Dir>> =
            dirs.into_iter().filter_map(|dir| Some((dir_identity(dir)?, dir))).collect();
        let is_acquired = |dir: &&Arc<Dir>| wait_for_lock(dir, patience, stopped);
        Self { locked: folders.into_values().filter(is_acquired).cloned().collect() }
    }
}

impl Drop for DirLocks {
    fn drop(&mut self) {
        self.locked.iter().for_each(|dir| unlock(dir));
    }
}

/// Waits for the lock of one folder. Returns whether it was acquired.
fn wait_for_lock(dir: &Dir, patience: &mut LockTimeout, stopped: &impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    let is_acquired = loop {
        match try_lock(dir) {
            Ok(()) => break true,
            Err(error) if is_retryable(&error) && begun.elapsed() < patience.0 && !stopped() => {
                sleep(RETRY_DELAY);
            }
            Err(_) => break false,
        }
    };
    patience.0 = patience.0.saturating_sub(begun.elapsed());
    is_acquired
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Device and inode: identifies a folder independently of its name.
type DirIdentity = (u64, u64);

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::fs::File;
    use std::io;

    use cap_std::fs::Dir;
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat};
    use rustix::io::Errno;

    use super::DirIdentity;

    /// Opens the folder again: a lock belongs to an open file description, so two transactions
    /// must not share one. The new handle can be locked if the folder may be read.
    pub(crate) fn open_lockable(dir: &Dir) -> io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(dir, ".", flags, Mode::empty()) {
            Ok(folder) => Ok(Dir::from_std_file(File::from(folder))),
            Err(Errno::ACCESS | Errno::PERM) => dir.try_clone(),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn dir_identity(dir: &Dir) -> Option<DirIdentity> {
        let stat = fstat(dir).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    pub(super) fn try_lock(dir: &Dir) -> io::Result<()> {
        Ok(flock(dir, FlockOperation::NonBlockingLockExclusive)?)
    }

    pub(super) fn unlock(dir: &Dir) {
        // Closing the handle unlocks it in any case.
        let _ = flock(dir, FlockOperation::Unlock);
    }
}

/// Other systems have no atomic exchange to serialize, so nothing is locked.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use std::io;

    use cap_std::fs::Dir;

    use super::DirIdentity;

    pub(crate) fn open_lockable(dir: &Dir) -> io::Result<Dir> {
        dir.try_clone()
    }

    pub(super) fn dir_identity(_: &Dir) -> Option<DirIdentity> {
        None
    }

    pub(super) fn try_lock(_: &Dir) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn unlock(_: &Dir) {}
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use cap_std::ambient_authority;

    use super::*;

    fn open(folder: &tempfile::TempDir) -> Arc<Dir> {
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        Arc::new(open_lockable(&dir).unwrap())
    }

    fn take<'d>(dirs: impl IntoIterator<Item = &'d Arc<Dir>>) -> DirLocks {
        DirLocks::acquire(dirs, &mut LockTimeout(Duration::MAX), &|| false)
    }

    #[test]
    fn locks_a_folder_once() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, again, other) = (open(&one), open(&one), open(&two));
        assert_eq!(take([&first, &again, &other, &first]).locked.len(), 2);
    }

    #[test]
    fn waits_for_the_lock_of_another_transaction() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = open(&one);
        let turns = take([&dir]);
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let turns = take([&open(&two), &open(&one)]);
                sender.send(turns.locked.len()).unwrap();
            });
            assert!(receiver.recv_timeout(10 * RETRY_DELAY).is_err());
            drop(turns);
            assert_eq!(receiver.recv(), Ok(2));
        });
    }

    #[test]
    fn waiting_ends_with_the_timeout_or_when_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, ours) = (open(&folder), open(&folder));
        let _turns = take([&theirs]);
        let mut patience = LockTimeout(10 * RETRY_DELAY);
        assert_eq!(DirLocks::acquire([&ours], &mut patience, &|| false).locked.len(), 0);
        assert_eq!(patience.0, Duration::ZERO);
        let mut patience = LockTimeout(Duration::MAX);
        assert_eq!(DirLocks::acquire([&ours], &mut patience, &|| true).locked.len(), 0);
        assert!(patience.0 > Duration::ZERO);
    }
}
