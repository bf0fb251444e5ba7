//! A sparse line index of large files, with a cache of the indexes of the last files.
//!
//! Counting the lines before a page deep in a file takes as long as reading them. While they are
//! counted, checkpoints are added to the index; the next page is counted from the last checkpoint
//! before it.
//!
//! **Invariant:** the memory is bounded, and a changed file gets a new index.

use std::fs::Metadata;
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(unix)]
use std::time::Duration;

/// The maximum number of cached files; the least recently read one is evicted.
const MAX_FILES: usize = 32;

/// The maximum number of checkpoints of one file. When there are more, every second one is removed.
const MAX_CHECKPOINTS: usize = 1024;

/// The initial number of bytes between two checkpoints.
const CHECKPOINT_GAP: u64 = 256 * 1024;

/// Smaller files are read faster than an index pays off.
#[cfg(unix)]
const MIN_LEN: u64 = 1 << 20;

/// The minimum age of the last modification. A write within the same tick of the clock would not
/// change the timestamps.
#[cfg(unix)]
const MIN_FILE_AGE: Duration = Duration::from_secs(2);

/// A position in a file, and the number of lines that end before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) offset: u64,
    pub(crate) lines: u64,
}

/// The checkpoints of one file, in order.
#[derive(Clone, Debug)]
pub(crate) struct LineIndex {
    checkpoints: Vec<Checkpoint>,
    gap: u64,
}

impl Default for LineIndex {
    fn default() -> Self {
        Self { checkpoints: Vec::new(), gap: CHECKPOINT_GAP }
    }
}

impl LineIndex {
    /// Adds a checkpoint, unless the last one is less than a gap before it.
    pub(crate) fn add_checkpoint(&mut self, mark: Checkpoint) {
        let last = self.checkpoints.last().map_or(0, |last| last.offset);
        if mark.offset < last + self.gap {
            return;
        }
        if self.checkpoints.len() == MAX_CHECKPOINTS {
            let mut keep = false;
            self.checkpoints.retain(|_| {
                keep = !keep;
                keep
            });
            self.gap *= 2;
        }
        self.checkpoints.push(mark);
    }

    /// Returns the last checkpoint before the start of `line`.
    pub(crate) fn checkpoint_before(&self, line: u64) -> Option<Checkpoint> {
        // A checkpoint may be in the middle of a line, so one more line must end before `line`.
        let behind = self.checkpoints.partition_point(|mark| mark.lines + 1 < line);
        behind.checked_sub(1).map(|at| self.checkpoints[at])
    }

    fn last_offset(&self) -> u64 {
        self.checkpoints.last().map_or(0, |last| last.offset)
    }
}

/// Identifies a file with its content by its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    /// Returns the identity of a file that is large and old enough to be indexed.
    #[cfg(unix)]
    pub(crate) fn from_metadata(facts: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        let age = facts.modified().ok()?.elapsed().ok()?;
        (facts.len() >= MIN_LEN && age >= MIN_FILE_AGE).then(|| Self {
            device: facts.dev(),
            inode: facts.ino(),
            len: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    /// Other systems have no metadata that identifies a file.
    #[cfg(not(unix))]
    pub(crate) fn from_metadata(_: &Metadata) -> Option<Self> {
        None
    }
}

/// The cache of line indexes.
#[derive(Debug, Default)]
pub(crate) struct LineIndexCache(Mutex<Vec<(FileIdentity, LineIndex)>>);

impl LineIndexCache {
    fn lock_files(&self) -> MutexGuard<'_, Vec<(FileIdentity, LineIndex)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the index of a file; an empty one when it is not cached.
    pub(crate) fn get(&self, file: FileIdentity) -> LineIndex {
        let files = self.lock_files();
        files.iter().find(|it| it.0 == file).map_or_else(LineIndex::default, |it| it.1.clone())
    }

    /// Caches an index, as that of the most recently read file.
    pub(crate) fn put(&self, file: FileIdentity, marks: LineIndex) {
        let mut files = self.lock_files();
        let mut known = LineIndex::default();
        files.retain_mut(|it| {
            if it.0 == file {
                known = std::mem::take(&mut it.1);
            }
            it.0 != file
        });
        if files.len() == MAX_FILES {
            files.remove(0);
        }
        // Another call may have read further in the meantime.
        files.push((file, if known.last_offset() > marks.last_offset() { known } else { marks }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64) -> FileIdentity {
        FileIdentity { device: 1, inode, len: 1, modified: (0, 0), changed: (0, 0) }
    }

    fn mark(offset: u64, lines: u64) -> Checkpoint {
        Checkpoint { offset, lines }
    }

    #[test]
    fn finds_the_checkpoint_before_a_line() {
        let mut marks = LineIndex::default();
        for at in 1..=3 {
            marks.add_checkpoint(mark(at * CHECKPOINT_GAP, at * 100));
            marks.add_checkpoint(mark(at * CHECKPOINT_GAP + 1, at * 100 + 1));
        }
        for (line, expected) in [
            (1, None),
            (101, None),
            (102, Some(100)),
            (201, Some(100)),
            (202, Some(200)),
            (9999, Some(300)),
        ] {
            assert_eq!(marks.checkpoint_before(line).map(|mark| mark.lines), expected, "{line}");
        }
    }

    #[test]
    fn limits_the_number_of_checkpoints() {
        let mut marks = LineIndex::default();
        for at in 1..=20 * MAX_CHECKPOINTS as u64 {
            marks.add_checkpoint(mark(at * CHECKPOINT_GAP, at));
        }
        assert!(
            marks.checkpoints.len() <= MAX_CHECKPOINTS
                && marks.checkpoints.len() > MAX_CHECKPOINTS / 4
        );
        assert!(marks.checkpoints.is_sorted_by_key(|mark| mark.offset));
        assert!(marks.last_offset() > 19 * MAX_CHECKPOINTS as u64 * CHECKPOINT_GAP);
    }

    #[test]
    fn evicts_the_least_recently_read_file() {
        let index = LineIndexCache::default();
        let mut marks = LineIndex::default();
        marks.add_checkpoint(mark(CHECKPOINT_GAP, 7));
        for inode in 0..=MAX_FILES as u64 {
            index.put(identity(inode), marks.clone());
        }
        assert_eq!(index.get(identity(0)).last_offset(), 0);
        assert_eq!(index.get(identity(1)).last_offset(), CHECKPOINT_GAP);
        // A longer index is not replaced by a shorter one.
        index.put(identity(1), LineIndex::default());
        assert_eq!(index.get(identity(1)).last_offset(), CHECKPOINT_GAP);
        assert_eq!(index.lock_files().len(), MAX_FILES);
    }
}
