//! The file of the ledger: JSON lines, appended and flushed one by one.
//!
//! A process that dies while it appends leaves a line without its end. The next writer ends that
//! line, and readers skip it.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::LedgerEntry;
use crate::private_file::{self, FileLock, LOCK_TIMEOUT, PrivateFileError, location};

/// The file, and how much of it was read.
pub(super) struct LedgerFile {
    path: PathBuf,
    read: u64,
}

impl LedgerFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, read: 0 }
    }

    /// Keeps other processes from appending while the guard exists.
    pub(super) fn lock(&self) -> Result<FileLock, PrivateFileError> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            location::create_private_folder(folder)
                .map_err(PrivateFileError::io("make", folder))?;
        }
        private_file::acquire_lock(&self.path.with_extension("lock"), LOCK_TIMEOUT)
    }

    /// Adds the entries that were appended since the last call. A line that is not an entry is counted
    /// and skipped, with a warning to the host's log.
    pub(super) fn read_new(
        &mut self,
        entries: &mut Vec<LedgerEntry>,
        skipped: &mut usize,
    ) -> Result<(), PrivateFileError> {
        let failed = |error| PrivateFileError::io("read", &self.path)(error);
        let Some(mut file) = location::open_private(&self.path)? else { return Ok(()) };
        file.seek(SeekFrom::Start(self.read)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        // A line without an end is being written, or was left by a process that died.
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        for line in bytes[..end].split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(entry) => entries.push(entry),
                Err(_) if line.is_empty() => {}
                Err(error) => {
                    *skipped += 1;
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "skipped a line of the ledger");
                }
            }
        }
        self.read += u64::try_from(end + 1).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Appends an entry and flushes it to disk.
    pub(super) fn append(
        &self,
        _writer: &FileLock,
        entry: &LedgerEntry,
    ) -> Result<(), PrivateFileError> {
        let failed = |error| PrivateFileError::io("write", &self.path)(error);
        let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let is_new = location::metadata_if_exists(&self.path)?.is_none();
        if let Some(last) = last_byte(&self.path)?
            && last != b'\n'
        {
            line.insert(0, b'\n');
        }
        let mut file =
            location::open_options().append(true).create(true).open(&self.path).map_err(failed)?;
        let before = file.metadata().map_err(failed)?.len();
        location::append_to(&file, &line).and_then(|()| file.sync_all()).map_err(|error| {
            // What was written of the line is taken back, so that the entry does not count.
            let _ = file.set_len(before);
            failed(error)
        })?;
        file.flush().map_err(failed)?;
        if is_new && let Some(folder) = self.path.parent() {
            location::sync_folder(folder).map_err(PrivateFileError::io("write", folder))?;
        }
        Ok(())
    }
}

fn last_byte(path: &Path) -> Result<Option<u8>, PrivateFileError> {
    let failed = |error| PrivateFileError::io("read", path)(error);
    let Some(mut file) = location::open_private(path)? else { return Ok(None) };
    if file.metadata().map_err(failed)?.len() == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1)).map_err(failed)?;
    let mut byte = [0];
    file.read_exact(&mut byte).map_err(failed)?;
    Ok(Some(byte[0]))
}
