//! Builds the new text of a file while the old one is read.
//!
//! Unchanged text keeps its bytes, including line endings and the byte order mark. That holds for
//! quoted context lines as well, however loosely they matched. New lines get the line ending of the
//! first lines of the file. A missing line ending of the last line stays missing until the patch
//! removes the line or adds one after it.
//!
//! **Invariant:** the recorded changes are complete, and cover whole lines.

use memchr::memchr;

use super::MatchPass;
use super::apply::PatchedText;
use crate::diff::LineChange;
use crate::text::lines::{SourceLine, count_lines, default_line_ending, split_bom};

/// The new text, and the position in the old one.
pub(super) struct PatchWriter<'t> {
    /// The old text, and the number of bytes that are read.
    old: &'t str,
    read: usize,
    text: String,
    /// The start of the text after a byte order mark.
    start: usize,
    /// The line ending of new lines.
    end: &'static str,
    /// The length of the last line, when it has no line ending.
    unterminated: Option<usize>,
    changes: Vec<LineChange>,
}

impl<'t> PatchWriter<'t> {
    pub(super) fn new(bom: &str, old: &'t str, places: usize) -> Self {
        let mut text = String::with_capacity(bom.len() + old.len() + old.len() / 8);
        text.push_str(bom);
        let (end, changes) = (default_line_ending(old), Vec::with_capacity(places));
        Self { old, read: 0, text, start: bom.len(), end, unterminated: None, changes }
    }

    /// Copies the next lines of the old text.
    pub(super) fn copy_lines(&mut self, lines: &[SourceLine<'_>]) {
        let Some(last) = lines.last() else { return };
        let end = self.read + lines.iter().map(|line| line.whole.len()).sum::<usize>();
        self.text.push_str(&self.old[self.read..end]);
        self.read = end;
        self.unterminated = last.line_ending().is_empty().then_some(last.text.len());
    }

    /// Skips the next line of the old text.
    pub(super) fn skip_line(&mut self, line: &SourceLine<'_>) {
        self.read += line.whole.len();
        self.record_change(line.whole.len(), 0, [1, 0]);
    }

    pub(super) fn add_line(&mut self, line: &str) {
        if let Some(open) = self.unterminated.take() {
            self.text.push_str(self.end);
            self.record_change(open, open + self.end.len(), [1, 1]);
        }
        let start = self.text.len();
        // The file has a byte order mark already.
        let is_marked = self.start > 0 && start == self.start;
        let line = if is_marked { split_bom(line).1 } else { line };
        self.text.push_str(line);
        self.text.push_str(self.end);
        // The added text may contain a CR, which also ends a line in the diff.
        let lines = memchr(b'\r', line.as_bytes()).map_or(1, |_| count_lines(&self.text[start..]));
        self.record_change(0, self.text.len() - start, [0, lines]);
    }

    pub(super) fn finish(self, pass: MatchPass) -> PatchedText {
        PatchedText { text: self.text, pass, changes: self.changes }
    }

    /// Records that the last `read` bytes were replaced by the last `written` bytes; `lines` are
    /// the line counts of both.
    fn record_change(&mut self, read: usize, written: usize, lines: [usize; 2]) {
        let (old, new) = (self.read, self.text.len() - self.start);
        match self.changes.last_mut() {
            Some(last) if (last.old.end, last.new.end) == (old - read, new - written) => {
                (last.old.end, last.new.end) = (old, new);
                last.lines = [last.lines[0] + lines[0], last.lines[1] + lines[1]];
            }
            _ => {
                let (old, new) = (old - read..old, new - written..new);
                self.changes.push(LineChange { old, new, lines });
            }
        }
    }
}
