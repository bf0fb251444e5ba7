//! Turns of those who replace files in the same folder.
//!
//! Whoever finds that he replaced something else than what he had read puts it back; two who
//! do so at the same time would undo each other. So one waits until the other is done, also
//! when that is another process.
//!
//! What is locked is the handle through which a folder is changed. Another one for the lock
//! would be one too many where folders are: a change that ran out of handles could not be undone.
//!
//! **Invariant:** waiting ends. A file system without locks, or somebody who holds one and
//! does nothing, keeps nobody from writing.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

pub(super) use self::system::lockable;
use self::system::{identity, try_lock, unlock};

/// How long the others are given each time.
const PAUSE: Duration = Duration::from_micros(50);

/// How long one change still waits for others, over all its folders.
pub(super) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self(Duration::from_secs(2))
    }
}

/// As long as this is there, nobody else who takes turns replaces a file in some folders.
#[must_use = "the turn is over when it is dropped"]
pub(super) struct Turns {
    held: Vec<Arc<Dir>>,
}

impl Turns {
    /// Waits for the turn in each of these folders, of which one may come several times;
    /// also the waiting ends when it is `stopped`.
    pub(super) fn take<'d>(
        dirs: impl IntoIterator<Item = &'d Arc<Dir>>,
        patience: &mut Patience,
        stopped: &impl Fn() -> bool,
    ) -> Self {
        let mut dirs: Vec<_> = dirs.into_iter().collect();
        dirs.sort_unstable_by_key(|dir| Arc::as_ptr(dir));
        dirs.dedup_by_key(|dir| Arc::as_ptr(dir));
        // A folder may have two names, and nobody waits for himself. When everybody goes by
        // the same order, no two wait for each other.
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

/// Waits for the turn in one folder; says whether it came.
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

/// What tells a folder from all others, whatever its name is.
type Identity = (u64, u64);

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::fs::File;
    use std::io;

    use cap_std::fs::Dir;
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat};
    use rustix::io::Errno;

    use super::Identity;

    /// The same folder through a handle of its own, for who shares one shares its lock; one
    /// that can be locked where the folder may be read.
    pub(in super::super) fn lockable(dir: &Dir) -> io::Result<Dir> {
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
        // What cannot be unlocked now is when it is closed.
        let _ = flock(dir, FlockOperation::Unlock);
    }
}

/// Where nothing is put back, nobody has to wait.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use std::io;

    use cap_std::fs::Dir;

    use super::Identity;

    pub(in super::super) fn lockable(dir: &Dir) -> io::Result<Dir> {
        dir.try_clone()
    }

    pub(super) fn identity(_: &Dir) -> Option<Identity> {
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
    fn nobody_waits_for_himself() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, again, other) = (open(&one), open(&one), open(&two));
        assert_eq!(take([&first, &again, &other, &first]).held.len(), 2);
    }

    #[test]
    fn one_waits_until_the_other_is_done() {
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
    fn patience_is_one_for_all_folders_and_ends_when_nobody_wants_it() {
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
