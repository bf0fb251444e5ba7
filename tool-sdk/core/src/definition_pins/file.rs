//! The file with the pinned definitions: private to the user, locked while it is written, and
//! replaced atomically.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::PinnedTools;
use crate::private_file::location::{PrivateFolder, open_private};
use crate::private_file::version::FileVersion;
use crate::private_file::{
    LOCK_TIMEOUT, PrivateFileError, acquire_lock, remove_unfinished, replace_file, set_aside,
};

const FILE_NAME: &str = "pins.json";
const LOCK_NAME: &str = "pins.lock";
const FORMAT_VERSION: u32 = 1;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct PinFileContent {
    version: u32,
    #[serde(flatten)]
    pinned: PinnedTools,
}

/// The content of the file and its version; no version where there is no file.
#[derive(Default)]
pub(super) struct LoadedPins {
    pub(super) pinned: PinnedTools,
    pub(super) version: Option<FileVersion>,
}

/// The folder of the file.
#[derive(Debug)]
pub(super) struct PinFile(PrivateFolder);

impl PinFile {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(PrivateFolder::new(folder))
    }

    pub(super) fn not_inside(&mut self, roots: &[PathBuf]) {
        self.0.add_writable_roots(roots);
    }

    /// Reads the file, unless it is the version that was read last.
    pub(super) fn read_if_changed(
        &self,
        last: Option<&FileVersion>,
    ) -> Result<Option<LoadedPins>, PrivateFileError> {
        let Some(folder) = self.0.find_folder()? else {
            return Ok(last.map(|_| LoadedPins::default()));
        };
        let path = folder.join(FILE_NAME);
        match FileVersion::is_current(last, &path)? {
            true => Ok(None),
            false => read_pins(&path).map(Some),
        }
    }

    /// Changes the pins under the lock; returns the new ones.
    pub(super) fn update_locked(
        &self,
        change: impl FnOnce(&mut PinnedTools),
    ) -> Result<LoadedPins, PrivateFileError> {
        let folder = self.0.create_folder()?;
        let _lock = acquire_lock(&folder.join(LOCK_NAME), LOCK_TIMEOUT)?;
        let path = folder.join(FILE_NAME);
        let before = read_or_set_aside(&path)?;
        let mut seen = before.pinned.clone();
        change(&mut seen);
        if seen == before.pinned {
            return Ok(before);
        }
        write_pins(&path, &seen)?;
        // The lock is held, so no other process has written since.
        let file = open_private(&path)?;
        let version = file.map(|file| FileVersion::from_file(file, &path)).transpose()?;
        Ok(LoadedPins { pinned: seen, version })
    }
}

/// Reads the file for an update. A file that cannot be parsed is set aside, not overwritten: a
/// later version of the program may be able to read it.
fn read_or_set_aside(path: &Path) -> Result<LoadedPins, PrivateFileError> {
    read_pins(path).or_else(|error| match error {
        PrivateFileError::Io { ref source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            let aside = set_aside(path)?;
            tracing::warn!(%error, aside = %aside.display(), "the file of pinned tool definitions cannot be parsed and was set aside");
            Ok(LoadedPins::default())
        }
        error => Err(error),
    })
}

fn read_pins(path: &Path) -> Result<LoadedPins, PrivateFileError> {
    let not_understood = |why: String| {
        PrivateFileError::io("understand", path)(io::Error::new(io::ErrorKind::InvalidData, why))
    };
    let Some(file) = open_private(path)? else { return Ok(LoadedPins::default()) };
    let version = FileVersion::from_file(file, path)?;
    let mut bytes = Vec::new();
    version
        .file()
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .map_err(PrivateFileError::io("read", path))?;
    let written: PinFileContent =
        serde_json::from_slice(&bytes).map_err(|error| not_understood(error.to_string()))?;
    match written.version {
        FORMAT_VERSION => Ok(LoadedPins { pinned: written.pinned, version: Some(version) }),
        other => Err(not_understood(format!("unknown format version {other}"))),
    }
}

fn write_pins(path: &Path, seen: &PinnedTools) -> Result<(), PrivateFileError> {
    remove_unfinished(path);
    let written = PinFileContent { version: FORMAT_VERSION, pinned: seen.clone() };
    let bytes = serde_json::to_vec(&written)
        .map_err(|error| PrivateFileError::io("write", path)(error.into()))?;
    replace_file(path, |file| file.write_all(&bytes)).map_err(PrivateFileError::io("write", path))
}
