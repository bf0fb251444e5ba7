//! Differences in unified form.

use std::fmt::Write as _;

use memchr::{memchr, memchr_iter};

use super::CONTEXT;
use super::stretch::{Stretch, before_lines};
use crate::text::MAX_BYTES;
use crate::text::lines::{Line, lines};

/// How many lines a text has.
pub(super) fn count(text: &str) -> usize {
    match memchr(b'\r', text.as_bytes()) {
        Some(_) => lines(text).count(),
        None => {
            let ends = memchr_iter(b'\n', text.as_bytes()).count();
            ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
        }
    }
}

/// The changes, and the lines around them.
pub(super) fn unified(stretches: &[Stretch<'_>], max_lines: usize) -> String {
    let mut text = Capped { text: String::new(), room: max_lines, left_out: 0 };
    let mut at = [0, 0];
    let mut hunk = Hunk::default();
    for (index, stretch) in stretches.iter().enumerate() {
        match stretch {
            Stretch::Changed { old, new } => {
                hunk.lines('-', whole(old));
                hunk.lines('+', whole(new));
                at = [at[0] + count(old), at[1] + count(new)];
            }
            Stretch::Same(same) if index + 1 == stretches.len() => {
                // How long it is does not matter.
                let shown = if index > 0 { CONTEXT } else { 0 };
                hunk.lines(' ', whole(same).take(shown));
            }
            Stretch::Same(same) => {
                let count = count(same);
                at = at.map(|at| at + count);
                if index > 0 && count <= 2 * CONTEXT {
                    hunk.lines(' ', whole(same));
                    continue;
                }
                if index > 0 {
                    hunk.lines(' ', whole(same).take(CONTEXT));
                    hunk.write(&mut text);
                }
                let near: Vec<_> = whole(&same[before_lines(same, same.len())..]).collect();
                let shown = &near[near.len().saturating_sub(CONTEXT)..];
                hunk = Hunk { start: at.map(|at| at - shown.len()), ..Hunk::default() };
                hunk.lines(' ', shown.iter().copied());
            }
        }
    }
    hunk.write(&mut text);
    text.finish()
}

fn whole(text: &str) -> impl Iterator<Item = &str> {
    lines(text).map(|line| line.whole)
}

/// Changes that are so near to each other that they are shown together.
#[derive(Default)]
struct Hunk<'t> {
    /// Lines before it, in the old text and in the new one.
    start: [usize; 2],
    lines: Vec<(char, &'t str)>,
}

impl<'t> Hunk<'t> {
    fn lines(&mut self, sign: char, lines: impl Iterator<Item = &'t str>) {
        self.lines.extend(lines.map(|line| (sign, line)));
    }

    /// Writes it, with its head, and leaves nothing of it.
    fn write(&mut self, into: &mut Capped) {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return;
        }
        let count = |other| lines.iter().filter(|(sign, _)| *sign != other).count();
        let side = |start: usize, len: usize| match len {
            // Nothing stands behind the line before it.
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            len => format!("{},{len}", start + 1),
        };
        let [old, new] = [side(self.start[0], count('+')), side(self.start[1], count('-'))];
        into.push(|text| text.push_str(&format!("@@ -{old} +{new} @@\n")));
        for (sign, line) in lines {
            into.push(|text| show(text, sign, line));
        }
    }
}

/// One line of a diff. A CR by itself ends a line of the file, but must not be able to hide
/// what stands before it.
fn show(into: &mut String, sign: char, whole: &str) {
    let Some(line @ Line { text, .. }) = lines(whole).next() else { return };
    into.push(sign);
    into.push_str(text);
    into.push_str(match line.end() {
        "" => "\n\\ No newline at end of file\n",
        "\r\n" => "\r\n",
        _ => "\n",
    });
}

/// Text that stops growing, and counts what no longer fits.
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
