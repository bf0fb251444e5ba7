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
        let before = newest(&folder.join(NAME))?;
        let mut seen = before.clone();
        change(&mut seen);
        if seen != before {
            replace(&folder, &seen)?;
        }
        Ok(seen)
    }
}

/// What a writer finds. What nobody understands is set aside, never written over: a later
/// version of the program may understand it.
fn newest(path: &Path) -> Result<Seen, StoreError> {
    read(path).or_else(|error| match error {
        StoreError::Io { ref source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            let aside = store::set_aside(path)?;
            tracing::warn!(%error, aside = %aside.display(), "what was seen was set aside");
            Ok(Seen::default())
        }
        error => Err(error),
    })
}

fn read(path: &Path) -> Result<Seen, StoreError> {
    let not_understood = |why: String| {
        StoreError::io("understand", path)(io::Error::new(io::ErrorKind::InvalidData, why))
    };
    let Some(file) = place::open_private(path)? else { return Ok(Seen::default()) };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(StoreError::io("read", path))?;
    let written: Written =
        serde_json::from_slice(&bytes).map_err(|error| not_understood(error.to_string()))?;
    match written.version {
        VERSION => Ok(written.seen),
        other => Err(not_understood(format!("it is of version {other}"))),
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
