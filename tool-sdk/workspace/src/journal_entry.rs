//! What a journal is to the rest of the workspace, on every system: an entry of a running transaction,
//! and the report of a recovery.

use std::fs::{self, File};
use std::path::PathBuf;

/// The journal of a running transaction.
#[cfg_attr(not(unix), expect(dead_code, reason = "other systems have no journal"))]
pub(super) struct JournalEntry {
    pub(super) path: PathBuf,
    /// Holds the lock that tells others that the transaction runs.
    pub(super) _file: File,
}

impl JournalEntry {
    /// Removes the journal: the transaction is complete, or was rolled back.
    pub(super) fn finish(self) {
        // One that stays finds nothing to do.
        let _ = fs::remove_file(&self.path);
    }
}

/// What recovery found below a root.
#[derive(Debug, Default)]
pub(super) struct RecoveryReport {
    /// How many interrupted transactions were finished or undone.
    pub(super) recovered: usize,
    /// Why the others were left as they are.
    pub(super) left: Vec<String>,
}
