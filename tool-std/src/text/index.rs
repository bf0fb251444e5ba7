//! Where lines of large files are, as far as somebody read them before.
//!
//! Counting the lines before a page deep in a file takes as long as reading them. While
//! they are counted, a mark is set here and there; the next page is counted from the mark
//! before it.
//!
//! **Invariant:** what is remembered is bounded, whatever is read, and a file that changed
//! is another file.

use std::fs::Metadata;
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(unix)]
use std::time::Duration;

/// Files that are remembered; the one that was read longest ago goes first.
const MAX_FILES: usize = 32;

/// Marks of one file. When there are more, every second one goes.
const MAX_MARKS: usize = 1024;

/// Bytes between two marks, at first.
const GAP: u64 = 256 * 1024;

/// Files below this size are read faster than anything is remembered.
#[cfg(unix)]
const MIN_LEN: u64 = 1 << 20;

/// How long a file must have been left alone: what is written within the same tick of the
/// clock would not show in its times.
#[cfg(unix)]
const SETTLED: Duration = Duration::from_secs(2);

/// A place in a file, and how many lines end before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) offset: u64,
    pub(crate) lines: u64,
}

/// The marks of one file, in order.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    marks: Vec<Mark>,
    gap: u64,
}

impl Default for Marks {
    fn default() -> Self {
        Self { marks: Vec::new(), gap: GAP }
    }
}

impl Marks {
    /// Sets a mark, unless one is near or behind it.
    pub(crate) fn set(&mut self, mark: Mark) {
        let last = self.marks.last().map_or(0, |last| last.offset);
        if mark.offset < last + self.gap {
            return;
        }
        if self.marks.len() == MAX_MARKS {
            let mut keep = false;
            self.marks.retain(|_| {
                keep = !keep;
                keep
            });
            self.gap *= 2;
        }
        self.marks.push(mark);
    }

    /// The last mark that stands before the start of `line`.
    pub(crate) fn before(&self, line: u64) -> Option<Mark> {
        // At a mark behind which no line has to end, the line may have begun already.
        let behind = self.marks.partition_point(|mark| mark.lines + 1 < line);
        behind.checked_sub(1).map(|at| self.marks[at])
    }

    fn end(&self) -> u64 {
        self.marks.last().map_or(0, |last| last.offset)
    }
}

/// What makes a file the same file with the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    /// The identity of an open file that is worth remembering.
    #[cfg(unix)]
    pub(crate) fn of(facts: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        let age = facts.modified().ok()?.elapsed().ok()?;
        (facts.len() >= MIN_LEN && age >= SETTLED).then(|| Self {
            device: facts.dev(),
            inode: facts.ino(),
            len: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    /// Nothing tells files apart well enough here.
    #[cfg(not(unix))]
    pub(crate) fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

/// The marks of the files that were read last.
#[derive(Debug, Default)]
pub(crate) struct LineIndex(Mutex<Vec<(Identity, Marks)>>);

impl LineIndex {
    fn files(&self) -> MutexGuard<'_, Vec<(Identity, Marks)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The marks of a file; none when it is not remembered.
    pub(crate) fn get(&self, file: Identity) -> Marks {
        let files = self.files();
        files.iter().find(|it| it.0 == file).map_or_else(Marks::default, |it| it.1.clone())
    }

    /// Remembers marks, as the file that was read last.
    pub(crate) fn put(&self, file: Identity, marks: Marks) {
        let mut files = self.files();
        let mut known = Marks::default();
        files.retain_mut(|it| {
            if it.0 == file {
                known = std::mem::take(&mut it.1);
            }
            it.0 != file
        });
        if files.len() == MAX_FILES {
            files.remove(0);
        }
        // Somebody else may have read further meanwhile.
        files.push((file, if known.end() > marks.end() { known } else { marks }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64) -> Identity {
        Identity { device: 1, inode, len: 1, modified: (0, 0), changed: (0, 0) }
    }

    fn mark(offset: u64, lines: u64) -> Mark {
        Mark { offset, lines }
    }

    #[test]
    fn a_line_is_found_from_the_mark_before_it() {
        let mut marks = Marks::default();
        for at in 1..=3 {
            marks.set(mark(at * GAP, at * 100));
            marks.set(mark(at * GAP + 1, at * 100 + 1));
        }
        for (line, expected) in [
            (1, None),
            (101, None),
            (102, Some(100)),
            (201, Some(100)),
            (202, Some(200)),
            (9999, Some(300)),
        ] {
            assert_eq!(marks.before(line).map(|mark| mark.lines), expected, "{line}");
        }
    }

    #[test]
    fn marks_grow_sparse_and_not_many() {
        let mut marks = Marks::default();
        for at in 1..=20 * MAX_MARKS as u64 {
            marks.set(mark(at * GAP, at));
        }
        assert!(marks.marks.len() <= MAX_MARKS && marks.marks.len() > MAX_MARKS / 4);
        assert!(marks.marks.is_sorted_by_key(|mark| mark.offset));
        assert!(marks.end() > 19 * MAX_MARKS as u64 * GAP);
    }

    #[test]
    fn the_files_that_were_read_last_are_remembered() {
        let index = LineIndex::default();
        let mut marks = Marks::default();
        marks.set(mark(GAP, 7));
        for inode in 0..=MAX_FILES as u64 {
            index.put(identity(inode), marks.clone());
        }
        assert_eq!(index.get(identity(0)).end(), 0);
        assert_eq!(index.get(identity(1)).end(), GAP);
        // What is known is not lost to somebody who read less.
        index.put(identity(1), Marks::default());
        assert_eq!(index.get(identity(1)).end(), GAP);
        assert_eq!(index.files().len(), MAX_FILES);
    }
}
