//! Turns of those who replace files in the same folder.
//!
//! Whoever finds that he replaced something else than what he had read puts it back; two who
//! do so at the same time would undo each other. So one waits until the other is done, also
//! when that is another process.
//!
//! **Invariant:** waiting ends. A file system without locks, or somebody who holds one and
//! does nothing, keeps nobody from writing.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

/// How long one waits for others, over all folders.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the others are given each time.
const PAUSE: Duration = Duration::from_micros(50);

/// As long as this is there, nobody else who takes turns replaces a file in some folders.
#[must_use = "the turn is over when it is dropped"]
pub(super) struct Turns {
    _held: Vec<File>,
}

impl Turns {
    /// Waits for the turn in each of these folders, of which one may come several times.
    pub(super) fn take<'d>(dirs: impl IntoIterator<Item = &'d Arc<Dir>>) -> Self {
        let mut dirs: Vec<_> = dirs.into_iter().collect();
        dirs.sort_unstable_by_key(|dir| Arc::as_ptr(dir));
        dirs.dedup_by_key(|dir| Arc::as_ptr(dir));
        // A folder may have two names, and nobody waits for himself. When everybody goes by
        // the same order, no two wait for each other.
        let folders: BTreeMap<Identity, File> = dirs.into_iter().filter_map(handle).collect();
        let until = Instant::now() + PATIENCE;
        let wait = |folder: File| is_ours(&folder, until).then_some(folder);
        Self { _held: folders.into_values().filter_map(wait).collect() }
    }
}

fn is_ours(folder: &File, until: Instant) -> bool {
    loop {
        match folder.try_lock() {
            Ok(()) => return true,
            Err(error) if is_brief(&error) && Instant::now() < until => sleep(PAUSE),
            Err(_) => return false,
        }
    }
}

fn is_brief(error: &TryLockError) -> bool {
    match error {
        TryLockError::WouldBlock => true,
        TryLockError::Error(error) => error.kind() == io::ErrorKind::Interrupted,
    }
}

/// What tells a folder from all others, whatever its name is.
type Identity = (u64, u64);

/// A handle of its own, for who shares one shares its lock.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn handle(dir: &Arc<Dir>) -> Option<(Identity, File)> {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::{Mode, OFlags, openat};

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = File::from(openat(&**dir, ".", flags, Mode::empty()).ok()?);
    let facts = folder.metadata().ok()?;
    Some(((facts.dev(), facts.ino()), folder))
}

/// Where nothing is put back, nobody has to wait.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn handle(_: &Arc<Dir>) -> Option<(Identity, File)> {
    None
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use cap_std::ambient_authority;

    use super::*;

    fn open(folder: &tempfile::TempDir) -> Arc<Dir> {
        Arc::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap())
    }

    #[test]
    fn nobody_waits_for_himself() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, again, other) = (open(&one), open(&one), open(&two));
        assert_eq!(Turns::take([&first, &again, &other, &first])._held.len(), 2);
    }

    #[test]
    fn one_waits_until_the_other_is_done() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let turns = Turns::take([&open(&one)]);
        let (told, heard) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let turns = Turns::take([&open(&two), &open(&one)]);
                told.send(turns._held.len()).unwrap();
            });
            assert!(heard.recv_timeout(10 * PAUSE).is_err());
            drop(turns);
            assert_eq!(heard.recv(), Ok(2));
        });
    }
}
