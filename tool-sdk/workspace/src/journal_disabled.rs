//! Systems other than Unix have no journal: a transaction of a process that is killed may stay half
//! made.
//!
//! **Invariant:** nothing is written.

use std::io;
use std::path::Path;

use super::Root;
use super::journal_entry::{JournalEntry, RecoveryReport};
use super::staged_file::StagedFile;

pub(super) fn begin_entry(_: &Path, _: &[StagedFile], _: bool) -> io::Result<Option<JournalEntry>> {
    Ok(None)
}

pub(super) fn recover_root(_: &Path, _: &Root) -> RecoveryReport {
    RecoveryReport::default()
}

pub(super) fn count_interrupted(_: &Path) -> (usize, usize) {
    (0, 0)
}
