//! The file of what was seen, kept with the care of stored approvals: only the user may
//! write it, one at a time, and it is never half written.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Seen;
use crate::permission::{StoreError, place};

const NAME: &str = "pins.json";
const LOCK: &str = "pins.lock";
const VERSION: u32 = 1;

/// More is no list of tools.
const MOST_BYTES: u64 = 64 << 20;

/// How long a writer waits for the others.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    servers: Seen,
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
        let _lock = lock(&folder.join(LOCK))?;
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
        VERSION => Ok(written.servers),
        _ => Err(StoreError::io("understand", path)(io::ErrorKind::InvalidData.into())),
    }
}

/// The right to write, until the file is closed.
fn lock(path: &Path) -> Result<File, StoreError> {
    let lock = place::open_lock(path)?;
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(fs::TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(fs::TryLockError::WouldBlock) => {
                return Err(StoreError::Busy { path: path.to_owned() });
            }
            Err(fs::TryLockError::Error(error)) => return Err(StoreError::io("lock", path)(error)),
        }
    }
}

fn replace(folder: &Path, seen: &Seen) -> Result<(), StoreError> {
    let path = folder.join(NAME);
    let written = Written { version: VERSION, servers: seen.clone() };
    let finish = || {
        let bytes = serde_json::to_vec(&written)?;
        let unfinished = folder.join(format!(".pins-{:016x}.tmp", getrandom::u64()?));
        let write = || {
            let mut file = place::create_new(&unfinished)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        write().inspect_err(|_: &io::Error| drop(fs::remove_file(&unfinished)))?;
        place::flush_folder(folder)
    };
    finish().map_err(StoreError::io("write", &path))
}
