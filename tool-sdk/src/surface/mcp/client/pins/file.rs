//! The file with the pinned definitions: private to the user, locked while it is written, and
//! replaced atomically.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Seen;
use crate::store::version::Version;
use crate::store::{self, PATIENCE, StoreError, place};

const NAME: &str = "pins.json";
const LOCK: &str = "pins.lock";
const VERSION: u32 = 1;

/// The largest file that is read.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    #[serde(flatten)]
    seen: Seen,
}

/// The content of the file and its version; no version where there is no file.
#[derive(Default)]
pub(super) struct Found {
    pub(super) seen: Seen,
    pub(super) version: Option<Version>,
}

/// The folder of the file.
#[derive(Debug)]
pub(super) struct Folder(place::Place);

impl Folder {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(place::Place::new(folder))
    }

    pub(super) fn not_inside(&mut self, roots: &[PathBuf]) {
        self.0.not_inside(roots);
    }

    /// Reads the file, unless it is the version that was read last.
    pub(super) fn newer(&self, last: Option<&Version>) -> Result<Option<Found>, StoreError> {
        let Some(folder) = self.0.folder()? else {
            return Ok(last.map(|_| Found::default()));
        };
        let path = folder.join(NAME);
        match Version::is_still(last, &path)? {
            true => Ok(None),
            false => read(&path).map(Some),
        }
    }

    /// Changes the pins under the lock; returns the new ones.
    pub(super) fn update(&self, change: impl FnOnce(&mut Seen)) -> Result<Found, StoreError> {
        let folder = self.0.create()?;
        let _lock = store::lock(&folder.join(LOCK), PATIENCE)?;
        let path = folder.join(NAME);
        let before = newest(&path)?;
        let mut seen = before.seen.clone();
        change(&mut seen);
        if seen == before.seen {
            return Ok(before);
        }
        replace(&path, &seen)?;
        // The lock is held, so no other process has written since.
        let file = place::open_private(&path)?;
        let version = file.map(|file| Version::of(file, &path)).transpose()?;
        Ok(Found { seen, version })
    }
}

/// Reads the file for an update. A file that cannot be parsed is set aside, not overwritten: a
/// later version of the program may be able to read it.
fn newest(path: &Path) -> Result<Found, StoreError> {
    read(path).or_else(|error| match error {
        StoreError::Io { ref source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            let aside = store::set_aside(path)?;
            tracing::warn!(%error, aside = %aside.display(), "the file of pinned tool definitions cannot be parsed and was set aside");
            Ok(Found::default())
        }
        error => Err(error),
    })
}

fn read(path: &Path) -> Result<Found, StoreError> {
    let not_understood = |why: String| {
        StoreError::io("understand", path)(io::Error::new(io::ErrorKind::InvalidData, why))
    };
    let Some(file) = place::open_private(path)? else { return Ok(Found::default()) };
    let version = Version::of(file, path)?;
    let mut bytes = Vec::new();
    version
        .file()
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(StoreError::io("read", path))?;
    let written: Written =
        serde_json::from_slice(&bytes).map_err(|error| not_understood(error.to_string()))?;
    match written.version {
        VERSION => Ok(Found { seen: written.seen, version: Some(version) }),
        other => Err(not_understood(format!("unknown format version {other}"))),
    }
}

fn replace(path: &Path, seen: &Seen) -> Result<(), StoreError> {
    store::sweep(path);
    let written = Written { version: VERSION, seen: seen.clone() };
    let bytes = serde_json::to_vec(&written)
        .map_err(|error| StoreError::io("write", path)(error.into()))?;
    store::replace(path, |file| file.write_all(&bytes)).map_err(StoreError::io("write", path))
}
