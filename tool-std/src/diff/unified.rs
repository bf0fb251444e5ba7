//! Formats differences as a unified diff.

use std::fmt::Write as _;

use super::CONTEXT;
use super::stretch::{Stretch, before_lines};
use crate::text::MAX_BYTES;
use crate::text::lines::{Line, count, lines};

/// Formats the changes with their context lines.
pub(super) fn unified(stretches: &[Stretch<'_>], max_lines: usize) -> String {
    let len = stretches.iter().map(Stretch::len).sum::<usize>().min(MAX_BYTES);
    let mut text = Capped { text: String::with_capacity(len), room: max_lines, left_out: 0 };
    let mut at = [0, 0];
    let mut hunk = Hunk::default();
    for (index, stretch) in stretches.iter().enumerate() {
        match stretch {
            Stretch::Changed { old, new, lines: [gone, come] } => {
                hunk.lines('-', lines(old));
                hunk.lines('+', lines(new));
                at = [at[0] + gone, at[1] + come];
            }
            Stretch::Same(same) if index + 1 == stretches.len() => {
                // The length of the last segment does not matter.
                let shown = if index > 0 { CONTEXT } else { 0 };
                hunk.lines(' ', lines(same).take(shown));
            }
            Stretch::Same(same) => {
                let count = count(same);
                at = at.map(|at| at + count);
                if index > 0 && count <= 2 * CONTEXT {
                    hunk.lines(' ', lines(same));
                    continue;
                }
                if index > 0 {
                    hunk.lines(' ', lines(same).take(CONTEXT));
                    hunk.write(&mut text);
                }
                let near: Vec<_> = lines(&same[before_lines(same, same.len())..]).collect();
                let shown = &near[near.len().saturating_sub(CONTEXT)..];
                hunk.start = at.map(|at| at - shown.len());
                hunk.lines(' ', shown.iter().copied());
            }
        }
    }
    hunk.write(&mut text);
    text.finish()
}

/// A hunk: changes that are close together, with their context.
#[derive(Default)]
struct Hunk<'t> {
    /// The number of lines before the hunk, in the old and the new text.
    start: [usize; 2],
    lines: Vec<(char, Line<'t>)>,
}

impl<'t> Hunk<'t> {
    fn lines(&mut self, sign: char, lines: impl Iterator<Item = Line<'t>>) {
        self.lines.extend(lines.map(|line| (sign, line)));
    }

    /// Writes the hunk with its header, and clears it.
    fn write(&mut self, into: &mut Capped) {
        if self.lines.is_empty() {
            return;
        }
        let count = |other| self.lines.iter().filter(|(sign, _)| *sign != other).count();
        into.push(|text| {
            text.push_str("@@ -");
            side(text, self.start[0], count('+'));
            text.push_str(" +");
            side(text, self.start[1], count('-'));
            text.push_str(" @@\n");
        });
        for (sign, line) in self.lines.drain(..) {
            into.push(|text| show(text, sign, line));
        }
    }
}

/// Writes the start and the length of a range.
fn side(into: &mut String, start: usize, len: usize) {
    let _ = match len {
        // An empty range names the line before it.
        0 => write!(into, "{start},0"),
        1 => write!(into, "{}", start + 1),
        len => write!(into, "{},{len}", start + 1),
    };
}

/// Writes one line of the diff. A single CR ends a line of the file; here it becomes LF, so that it
/// cannot hide text on a terminal.
fn show(into: &mut String, sign: char, line: Line<'_>) {
    into.push(sign);
    into.push_str(line.text);
    into.push_str(match line.end() {
        "" => "\n\\ No newline at end of file\n",
        "\r\n" => "\r\n",
        _ => "\n",
    });
}

/// Text with a maximum size, which counts the omitted lines.
struct Capped {
    text: String,
    room: usize,
    left_out: usize,
}

impl Capped {
    fn push(&mut self, write: impl FnOnce(&mut String)) {
        if self.room == 0 {
            self.left_out += 1;
            return;
        }
        let len = self.text.len();
        write(&mut self.text);
        self.room -= 1;
        if self.text.len() > MAX_BYTES {
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
