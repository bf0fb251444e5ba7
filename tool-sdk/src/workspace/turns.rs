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

pub(super) use self::system::lockable;
use self::system::{identity, try_lock, unlock};

/// The delay between two attempts to lock.
const PAUSE: Duration = Duration::from_micros(50);

/// The remaining time that one transaction waits for locks, over all its folders.
pub(super) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self(Duration::from_secs(2))
    }
}

/// A guard that holds the locks of some folders.
#[must_use = "the folders are unlocked when it is dropped"]
pub(super) struct Turns {
    held: Vec<Arc<Dir>>,
}

impl Turns {
    /// Waits for the lock of each folder, until the timeout or until `stopped` returns `true`.
    /// `dirs` may contain a folder several times.
    pub(super) fn take<'d>(
        dirs: impl IntoIterator<Item = &'d Arc<Dir>>,
        patience: &mut Patience,
        stopped: &impl Fn() -> bool,
    ) -> Self {
        let mut dirs: Vec<_> = dirs.into_iter().collect();
        dirs.sort_unstable_by_key(|dir| Arc::as_ptr(dir));
        dirs.dedup_by_key(|dir| Arc::as_ptr(dir));
        // Deduplicate by inode, so that the transaction does not wait for itself, and lock in
        // ascending order, so that two transactions cannot deadlock.
        let folders: BTreeMap<Identity, &Arc<Dir>> =
            dirs.into_iter().filter_map(|dir| Some((identity(dir)?, dir))).collect();
        let is_ours = |dir: &&Arc<Dir>| wait(dir, patience, stopped);
        Self { held: folders.into_values().filter(is_ours).cloned().collect() }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.held.iter().for_each(|dir| unlock(dir));
    }
}

/// Waits for the lock of one folder. Returns whether it was acquired.
fn wait(dir: &Dir, patience: &mut Patience, stopped: &impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    let is_ours = loop {
        match try_lock(dir) {
            Ok(()) => break true,
            Err(error) if is_brief(&error) && begun.elapsed() < patience.0 && !stopped() => {
                sleep(PAUSE);
            }
            Err(_) => break false,
        }
    };
    patience.0 = patience.0.saturating_sub(begun.elapsed());
    is_ours
}

fn is_brief(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Device and inode: identifies a folder independently of its name.
type Identity = (u64, u64);

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::fs::File;
    use std::io;

    use cap_std::fs::Dir;
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat};
    use rustix::io::Errno;

    use super::Identity;

    /// Opens the folder again: a lock belongs to an open file description, so two transactions
    /// must not share one. The new handle can be locked if the folder may be read.
    pub(crate) fn lockable(dir: &Dir) -> io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(dir, ".", flags, Mode::empty()) {
            Ok(folder) => Ok(Dir::from_std_file(File::from(folder))),
            Err(Errno::ACCESS | Errno::PERM) => dir.try_clone(),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn identity(dir: &Dir) -> Option<Identity> {
        let facts = fstat(dir).ok()?;
        Some((facts.st_dev, facts.st_ino))
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
        Arc::new(lockable(&dir).unwrap())
    }

    fn take<'d>(dirs: impl IntoIterator<Item = &'d Arc<Dir>>) -> Turns {
        Turns::take(dirs, &mut Patience(Duration::MAX), &|| false)
    }

    #[test]
    fn locks_a_folder_once() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, again, other) = (open(&one), open(&one), open(&two));
        assert_eq!(take([&first, &again, &other, &first]).held.len(), 2);
    }

    #[test]
    fn waits_for_the_lock_of_another_transaction() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = open(&one);
        let turns = take([&dir]);
        let (told, heard) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let turns = take([&open(&two), &open(&one)]);
                told.send(turns.held.len()).unwrap();
            });
            assert!(heard.recv_timeout(10 * PAUSE).is_err());
            drop(turns);
            assert_eq!(heard.recv(), Ok(2));
        });
    }

    #[test]
    fn waiting_ends_with_the_timeout_or_when_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, ours) = (open(&folder), open(&folder));
        let _turns = take([&theirs]);
        let mut patience = Patience(10 * PAUSE);
        assert_eq!(Turns::take([&ours], &mut patience, &|| false).held.len(), 0);
        assert_eq!(patience.0, Duration::ZERO);
        let mut patience = Patience(Duration::MAX);
        assert_eq!(Turns::take([&ours], &mut patience, &|| true).held.len(), 0);
        assert!(patience.0 > Duration::ZERO);
    }
}
