//! The new text of a file, which grows while the old one is read.
//!
//! What a patch does not touch keeps its bytes, line ends and byte order mark included. That
//! holds for lines that a chunk quotes and keeps, too, however loosely they were matched.
//! New lines end as the first lines of the file do. A missing end of the last line stays
//! missing until the patch removes that line or puts another one after it.
//!
//! **Invariant:** what is told of the changes is all of them, in whole lines.

use memchr::memchr;

use super::Pass;
use super::apply::Updated;
use crate::diff::Change;
use crate::text::lines::{Line, count, new_line_end, split_bom};

/// A text that grows, while an old one is read from its start to its end.
pub(super) struct Writer<'t> {
    /// The old text, and how much of it is read.
    old: &'t str,
    read: usize,
    text: String,
    /// Where the text begins, behind a byte order mark.
    start: usize,
    /// How new lines end.
    end: &'static str,
    /// The length of the last line when it has no end.
    open: Option<usize>,
    changes: Vec<Change>,
}

impl<'t> Writer<'t> {
    pub(super) fn new(bom: &str, old: &'t str, places: usize) -> Self {
        let mut text = String::with_capacity(bom.len() + old.len() + old.len() / 8);
        text.push_str(bom);
        let (end, changes) = (new_line_end(old), Vec::with_capacity(places));
        Self { old, read: 0, text, start: bom.len(), end, open: None, changes }
    }

    /// The next lines of the old text stay.
    pub(super) fn copy(&mut self, lines: &[Line<'_>]) {
        let Some(last) = lines.last() else { return };
        self.copy_to(self.read + lines.iter().map(|line| line.whole.len()).sum::<usize>());
        self.open = last.end().is_empty().then_some(last.text.len());
    }

    /// What is not read before the byte `end` of the old text stays, all of it lines with ends.
    pub(super) fn copy_to(&mut self, end: usize) {
        self.text.push_str(&self.old[self.read..end]);
        self.read = end;
    }

    /// The next line of the old text goes.
    pub(super) fn skip(&mut self, line: &Line<'_>) {
        self.skip_bytes(line.whole.len());
    }

    /// The same of a line that has so many bytes with its end.
    pub(super) fn skip_bytes(&mut self, len: usize) {
        self.read += len;
        self.changed(len, 0, [1, 0]);
    }

    pub(super) fn add(&mut self, line: &str) {
        if let Some(open) = self.open.take() {
            self.text.push_str(self.end);
            self.changed(open, open + self.end.len(), [1, 1]);
        }
        let start = self.text.len();
        // The mark of the file stands there already.
        let is_marked = self.start > 0 && start == self.start;
        let line = if is_marked { split_bom(line).1 } else { line };
        self.text.push_str(line);
        self.text.push_str(self.end);
        // A patch ends its lines with LF, and a file perhaps not only.
        let lines = memchr(b'\r', line.as_bytes()).map_or(1, |_| count(&self.text[start..]));
        self.changed(0, self.text.len() - start, [0, lines]);
    }

    pub(super) fn finish(self, pass: Pass) -> Updated {
        Updated { text: self.text, pass, changes: self.changes }
    }

    /// What was just read and written is not the same; how many lines of both that is.
    fn changed(&mut self, read: usize, written: usize, lines: [usize; 2]) {
        let (old, new) = (self.read, self.text.len() - self.start);
        match self.changes.last_mut() {
            Some(last) if (last.old.end, last.new.end) == (old - read, new - written) => {
                (last.old.end, last.new.end) = (old, new);
                last.lines = [last.lines[0] + lines[0], last.lines[1] + lines[1]];
            }
            _ => {
                let (old, new) = (old - read..old, new - written..new);
                self.changes.push(Change { old, new, lines });
            }
        }
    }
}
