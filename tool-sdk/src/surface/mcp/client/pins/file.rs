//! The file of what was seen, kept with the care of stored approvals: only the user may
//! write it, one at a time, and it is never half written.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Seen;
use crate::store::{self, PATIENCE, StoreError, place};

const NAME: &str = "pins.json";
const LOCK: &str = "pins.lock";
const VERSION: u32 = 1;

/// More is no list of tools.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    #[serde(flatten)]
    seen: Seen,
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

    /// What was seen; nothing where there is no file, or none that can be trusted.
    pub(super) fn load(&self) -> Seen {
        let found = self.0.folder().and_then(|folder| match folder {
            Some(folder) => read(&folder.join(NAME)),
            None => Ok(Seen::default()),
        });
        found.unwrap_or_else(|error| {
            tracing::warn!(%error, "what was seen of tools of other servers is not known");
            Seen::default()
        })
    }

    /// Changes what was seen; gives what is seen now.
    pub(super) fn update(&self, change: impl FnOnce(&mut Seen)) -> Result<Seen, StoreError> {
        let folder = self.0.create()?;
        let _lock = store::lock(&folder.join(LOCK), PATIENCE)?;
        let mut seen = read(&folder.join(NAME)).unwrap_or_default();
        change(&mut seen);
        replace(&folder, &seen)?;
        Ok(seen)
    }
}

fn read(path: &Path) -> Result<Seen, StoreError> {
    let Some(file) = place::open_private(path)? else { return Ok(Seen::default()) };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(StoreError::io("read", path))?;
    let written: Written = serde_json::from_slice(&bytes)
        .map_err(|error| StoreError::io("understand", path)(error.into()))?;
    match written.version {
        VERSION => Ok(written.seen),
        _ => Err(StoreError::io("understand", path)(io::ErrorKind::InvalidData.into())),
    }
}

fn replace(folder: &Path, seen: &Seen) -> Result<(), StoreError> {
    let path = folder.join(NAME);
    store::sweep(&path);
    let written = Written { version: VERSION, seen: seen.clone() };
    let bytes = serde_json::to_vec(&written)
        .map_err(|error| StoreError::io("write", &path)(error.into()))?;
    store::replace(&path, |file| file.write_all(&bytes)).map_err(StoreError::io("write", &path))
}
