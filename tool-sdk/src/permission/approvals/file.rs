//! The file of approvals: how it is read, and how it changes without ever being half written.
//!
//! Who writes holds a lock beside the file, because the file itself may be replaced. Approvals
//! are added at the end of it, and flushed once the lock is free again: then the system
//! flushes what several processes wrote at once. Where something is taken away, a new file is
//! written and flushed under another name, and takes the old one's place in one step. A
//! process that dies on the way leaves the old file, the new one, or a last line that is not
//! finished, which nobody reads and the next one cuts off.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::format::{self, MOST_BYTES};
use super::identity::{Stamp, Version};
use super::place;
use super::{StoreError, StoredApproval};

const NAME: &str = "approvals.json";
const LOCK: &str = "approvals.lock";

/// Names of files that are not finished, and of nothing else.
const UNFINISHED: (&str, &str) = (".approvals-", ".tmp");

/// How long a writer waits for the others.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// What was found in the file.
enum Found {
    Nothing,
    Approvals(Whole),
    /// What is wrong with the file.
    Corrupt(&'static str),
}

/// A file that was understood.
pub(super) struct Whole {
    pub(super) approvals: Vec<StoredApproval>,
    pub(super) version: Version,
    /// Where its last finished line ends.
    finished: u64,
}

/// What a writer finds.
#[derive(Default)]
pub(super) struct Newest {
    pub(super) approvals: Vec<StoredApproval>,
    /// The file that was set aside, because it was corrupt; there are no approvals then.
    pub(super) corrupt: Option<StoreError>,
    /// Where its last finished line ends, if there is a file.
    finished: Option<u64>,
}

/// The state of the file, if there is one that can be trusted.
pub(super) fn stamp(folder: &Path) -> Result<Option<Stamp>, StoreError> {
    let path = path(folder);
    let Some(metadata) = place::look(&path)? else { return Ok(None) };
    place::private_file(&path, &metadata)?;
    Ok(Some(Stamp::of(&metadata)))
}

/// The approvals, if there is a file; a corrupt one is set aside, which is an error.
pub(super) fn read_or_set_aside(
    folder: &Path,
    patience: Duration,
) -> Result<Option<Whole>, StoreError> {
    match read(folder)? {
        Found::Nothing => Ok(None),
        Found::Approvals(whole) => Ok(Some(whole)),
        Found::Corrupt(_) => {
            // Only who writes knows that the file is still the same when it is moved.
            let writer = Writer::lock(folder, patience)?;
            Err(writer.newest()?.corrupt.unwrap_or_else(|| StoreError::Busy { path: path(folder) }))
        }
    }
}

fn read(folder: &Path) -> Result<Found, StoreError> {
    let path = path(folder);
    let Some(file) = place::open_private(&path)? else { return Ok(Found::Nothing) };
    // Taken before the content, so that what is written into it meanwhile is a later state.
    let version = Version::of(file, &path)?;
    let mut bytes = Vec::new();
    // One byte more tells a file that is too long from one that just fits.
    let most = MOST_BYTES + 1;
    version.file().take(most).read_to_end(&mut bytes).map_err(StoreError::io("read", &path))?;
    if bytes.len() as u64 == most {
        return Ok(Found::Corrupt("it is too large"));
    }
    Ok(match format::decode(&bytes) {
        Ok((approvals, finished)) => {
            Found::Approvals(Whole { approvals, version, finished: finished as u64 })
        }
        Err(why) => Found::Corrupt(why),
    })
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub(super) struct Writer<'f> {
    folder: &'f Path,
    /// The system takes the lock back when this is closed, also when the process dies.
    _lock: File,
}

impl<'f> Writer<'f> {
    /// Waits for the others for as long as `patience` lasts.
    pub(super) fn lock(folder: &'f Path, patience: Duration) -> Result<Self, StoreError> {
        let path = folder.join(LOCK);
        let lock = place::open_lock(&path)?;
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { folder, _lock: lock }),
                Err(fs::TryLockError::WouldBlock) if start.elapsed() < patience => {
                    thread::sleep(Duration::from_millis(2));
                }
                Err(fs::TryLockError::WouldBlock) => return Err(StoreError::Busy { path }),
                Err(fs::TryLockError::Error(error)) => {
                    return Err(StoreError::io("lock", &path)(error));
                }
            }
        }
    }

    /// The approvals as they are now.
    ///
    /// A corrupt file is set aside, never deleted.
    pub(super) fn newest(&self) -> Result<Newest, StoreError> {
        match read(self.folder)? {
            Found::Nothing => Ok(Newest::default()),
            Found::Approvals(Whole { approvals, finished, .. }) => {
                Ok(Newest { approvals, corrupt: None, finished: Some(finished) })
            }
            Found::Corrupt(why) => {
                let aside = self.set_aside()?;
                let corrupt = Some(StoreError::Corrupt { aside, why });
                Ok(Newest { corrupt, ..Newest::default() })
            }
        }
    }

    /// Adds `approvals` to those that this writer found. They are certain to outlast a loss
    /// of power once they are [flushed](Added::flush), which needs no lock.
    pub(super) fn add(
        self,
        newest: &Newest,
        approvals: &[StoredApproval],
    ) -> Result<Added, StoreError> {
        let path = path(self.folder);
        let failed = || StoreError::io("write", &path);
        let Some(finished) = newest.finished else {
            self.replace(approvals)?;
            return Ok(Added { file: None, path });
        };
        self.sweep();
        let lines = format::lines(approvals).map_err(failed())?;
        if finished + lines.len() as u64 > MOST_BYTES {
            return Err(StoreError::Full { path });
        }
        let mut file = place::open_to_append(&path)?;
        // What somebody did not finish writing must not become the beginning of a line.
        file.set_len(finished).map_err(failed())?;
        let written = file.write_all(lines.as_bytes());
        written.inspect_err(|_| drop(file.set_len(finished))).map_err(failed())?;
        Ok(Added { file: Some(file), path })
    }

    /// Puts `approvals` in the place of those that are there.
    pub(super) fn replace(&self, approvals: &[StoredApproval]) -> Result<(), StoreError> {
        let path = path(self.folder);
        let lines = format::lines(approvals).map_err(StoreError::io("write", &path))?;
        let text = format::head() + &lines;
        if text.len() as u64 > MOST_BYTES {
            return Err(StoreError::Full { path });
        }
        self.sweep();
        let write = |file: &mut File| file.write_all(text.as_bytes());
        self.replace_with(write).map_err(StoreError::io("write", &path))
    }

    fn replace_with(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let (start, end) = UNFINISHED;
        let unfinished = self.folder.join(format!("{start}{:016x}{end}", getrandom::u64()?));
        let finish = || {
            let mut file = place::create_new(&unfinished)?;
            write(&mut file)?;
            file.sync_all()?;
            fs::rename(&unfinished, path(self.folder))
        };
        finish().inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
        place::flush_folder(self.folder)
    }

    /// Removes what dead processes did not finish. Those alive hold the lock, so there is
    /// none; what cannot be removed now is removed another time.
    fn sweep(&self) {
        let (start, end) = UNFINISHED;
        for entry in fs::read_dir(self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_unfinished =
                name.to_str().is_some_and(|name| name.starts_with(start) && name.ends_with(end));
            if is_unfinished {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn set_aside(&self) -> Result<PathBuf, StoreError> {
        let path = path(self.folder);
        let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        let names = (0..1000).map(|nth| match nth {
            0 => format!("{NAME}.corrupt-{now}"),
            nth => format!("{NAME}.corrupt-{now}-{nth}"),
        });
        for aside in names.map(|name| self.folder.join(name)) {
            if place::look(&aside)?.is_none() {
                fs::rename(&path, &aside).map_err(StoreError::io("set aside", &path))?;
                place::flush_folder(self.folder).map_err(StoreError::io("write", self.folder))?;
                return Ok(aside);
            }
        }
        Err(StoreError::Full { path })
    }
}

/// What was added and is not flushed yet.
#[must_use]
pub(super) struct Added {
    /// Nothing where a new file was made, which is flushed at once.
    file: Option<File>,
    path: PathBuf,
}

impl Added {
    /// Waits until the disk has it.
    pub(super) fn flush(self) -> Result<(), StoreError> {
        let flushed = self.file.map_or(Ok(()), |file| file.sync_data());
        flushed.map_err(StoreError::io("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
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
        let writer = Writer::lock(folder.path(), PATIENCE).unwrap();
        writer.replace(&[]).unwrap();
        let before = fs::read(path(folder.path())).unwrap();

        let full = writer.replace_with(|file| {
            file.write_all(b"half of it")?;
            Err(io::ErrorKind::StorageFull.into())
        });

        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(path(folder.path())).unwrap(), before);
        assert_eq!(names(folder.path()), [NAME, LOCK]);
    }

    #[test]
    fn what_was_not_finished_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".approvals-1.tmp", ".approvals-other", "mine.tmp"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let writer = Writer::lock(folder.path(), PATIENCE).unwrap();
        writer.replace(&[]).unwrap();
        assert_eq!(names(folder.path()), [".approvals-other", NAME, LOCK, "mine.tmp"]);
    }

    #[test]
    fn one_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = Writer::lock(folder.path(), PATIENCE).unwrap();
        let second = Writer::lock(folder.path(), Duration::ZERO);
        assert!(matches!(second, Err(StoreError::Busy { .. })));
        drop(first);
        Writer::lock(folder.path(), Duration::ZERO).unwrap();
    }

    #[test]
    fn what_is_set_aside_takes_no_ones_place() {
        let folder = tempfile::tempdir().unwrap();
        let writer = Writer::lock(folder.path(), PATIENCE).unwrap();
        let mut asides = Vec::new();
        for _ in 0..3 {
            fs::write(path(folder.path()), "").unwrap();
            let Newest { approvals, corrupt, .. } = writer.newest().unwrap();
            let Some(StoreError::Corrupt { aside, .. }) = corrupt else { panic!("{corrupt:?}") };
            assert!(approvals.is_empty() && !asides.contains(&aside));
            asides.push(aside);
        }
        assert!(asides.iter().all(|aside| aside.exists()));
    }
}
