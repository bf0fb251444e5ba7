//! The file of approvals: how it is read, and how it changes without ever being half written.
//!
//! Approvals are added at the end of it, and flushed once the lock is free again: then the
//! system flushes what several processes wrote at once. Where something is taken away, a new
//! file takes the old one's place. A process that dies on the way leaves the old file, the new
//! one, or a last line that is not finished, which nobody reads and the next one cuts off.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::format::{self, MOST_BYTES};
use super::{StoreError, StoredApproval};
use crate::store::version::Version;
use crate::store::{self, Lock, place};

const NAME: &str = "approvals.json";
const LOCK: &str = "approvals.lock";

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

/// Whether the file is still the one that was read, or as absent as it was.
pub(super) fn is_still(last: Option<&Version>, folder: &Path) -> Result<bool, StoreError> {
    Version::is_still(last, &path(folder))
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
    _lock: Lock,
}

impl<'f> Writer<'f> {
    /// Waits for the others for as long as `patience` lasts.
    pub(super) fn lock(folder: &'f Path, patience: Duration) -> Result<Self, StoreError> {
        Ok(Self { folder, _lock: store::lock(&folder.join(LOCK), patience)? })
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
                let aside = store::set_aside(&path(self.folder))?;
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
        store::sweep(&path);
        let lines = format::lines(approvals).map_err(failed())?;
        if finished + lines.len() as u64 > MOST_BYTES {
            return Err(StoreError::Full { path });
        }
        let file = place::open_to_append(&path)?;
        // What somebody did not finish writing must not become the beginning of a line.
        file.set_len(finished).map_err(failed())?;
        let written = place::put(&file, lines.as_bytes());
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
        store::sweep(&path);
        let write = |file: &mut File| place::put(file, text.as_bytes());
        store::replace(&path, write).map_err(StoreError::io("write", &path))
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
    use std::fs;

    use super::*;
    use crate::store::PATIENCE;

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
