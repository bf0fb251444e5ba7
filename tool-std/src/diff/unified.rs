//! Formats differences as a unified diff.

use std::fmt::Write as _;

use super::CONTEXT;
use super::segment::{DiffSegment, context_start};
use crate::text::MAX_BYTES;
use crate::text::lines::{SourceLine, count_lines, split_lines};

/// Formats the changes with their context lines.
pub(super) fn format_unified(stretches: &[DiffSegment<'_>], max_lines: usize) -> String {
    // What is shown whole is not cut by its size either.
    let max_bytes = if max_lines == usize::MAX { usize::MAX } else { MAX_BYTES };
    let len = stretches.iter().map(DiffSegment::len).sum::<usize>().min(MAX_BYTES);
    let text = String::with_capacity(len);
    let mut text = CappedText { text, room: max_lines, max_bytes, left_out: 0 };
    let mut at = [0, 0];
    let mut hunk = DiffHunk::default();
    for (index, stretch) in stretches.iter().enumerate() {
        match stretch {
            DiffSegment::Changed { old, new, lines: [gone, come] } => {
                hunk.push_lines('-', split_lines(old));
                hunk.push_lines('+', split_lines(new));
                at = [at[0] + gone, at[1] + come];
            }
            DiffSegment::Equal(same) if index + 1 == stretches.len() => {
                // The length of the last segment does not matter.
                let shown = if index > 0 { CONTEXT } else { 0 };
                hunk.push_lines(' ', split_lines(same).take(shown));
            }
            DiffSegment::Equal(same) => {
                let count = count_lines(same);
                at = at.map(|at| at + count);
                if index > 0 && count <= 2 * CONTEXT {
                    hunk.push_lines(' ', split_lines(same));
                    continue;
                }
                if index > 0 {
                    hunk.push_lines(' ', split_lines(same).take(CONTEXT));
                    hunk.write(&mut text);
                }
                let near: Vec<_> = split_lines(&same[context_start(same, same.len())..]).collect();
                let shown = &near[near.len().saturating_sub(CONTEXT)..];
                hunk.start = at.map(|at| at - shown.len());
                hunk.push_lines(' ', shown.iter().copied());
            }
        }
    }
    hunk.write(&mut text);
    text.finish()
}

/// A hunk: changes that are close together, with their context.
#[derive(Default)]
struct DiffHunk<'t> {
    /// The number of lines before the hunk, in the old and the new text.
    start: [usize; 2],
    lines: Vec<(char, SourceLine<'t>)>,
}

impl<'t> DiffHunk<'t> {
    fn push_lines(&mut self, sign: char, lines: impl Iterator<Item = SourceLine<'t>>) {
        self.lines.extend(lines.map(|line| (sign, line)));
    }

    /// Writes the hunk with its header, and clears it.
    fn write(&mut self, into: &mut CappedText) {
        if self.lines.is_empty() {
            return;
        }
        let count = |other| self.lines.iter().filter(|(sign, _)| *sign != other).count();
        into.push(|text| {
            text.push_str("@@ -");
            write_range(text, self.start[0], count('+'));
            text.push_str(" +");
            write_range(text, self.start[1], count('-'));
            text.push_str(" @@\n");
        });
        for (sign, line) in self.lines.drain(..) {
            into.push(|text| write_line(text, sign, line));
        }
    }
}

/// Writes the start and the length of a range.
fn write_range(into: &mut String, start: usize, len: usize) {
    let _ = match len {
        // An empty range names the line before it.
        0 => write!(into, "{start},0"),
        1 => write!(into, "{}", start + 1),
        len => write!(into, "{},{len}", start + 1),
    };
}

/// Writes one line of the diff. A single CR ends a line of the file; here it becomes LF, so that it
/// cannot hide text on a terminal.
fn write_line(into: &mut String, sign: char, line: SourceLine<'_>) {
    into.push(sign);
    into.push_str(line.text);
    into.push_str(match line.line_ending() {
        "" => "\n\\ No newline at end of file\n",
        "\r\n" => "\r\n",
        _ => "\n",
    });
}

/// Text with a maximum size, which counts the omitted lines.
struct CappedText {
    text: String,
    room: usize,
    max_bytes: usize,
    left_out: usize,
}

impl CappedText {
    fn push(&mut self, write: impl FnOnce(&mut String)) {
        if self.room == 0 {
            self.left_out += 1;
            return;
        }
        let len = self.text.len();
        write(&mut self.text);
        self.room -= 1;
        if self.text.len() > self.max_bytes {
            self.text.truncate(len);
            self.room = 0;
            self.left_out += 1;
        }
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            let _ = writeln!(self.text, "[{} more lines of the diff]", self.left_out);
        }
        self.text
    }
}
