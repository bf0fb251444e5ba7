//! The page of a prompt: labels of our own, and framed lines of foreign text.
//!
//! Every line of foreign text starts with the frame and no label does, so that no text can pass for
//! a label. A value that is too long loses its middle, and the page says so.

use std::collections::BTreeSet;
use std::ops::Range;

use super::visible::{is_escape, is_lookalike_escape, max_columns, visible_chars};

/// The start of every line of foreign text.
const FRAME: &str = "  | ";
/// The most characters of one value that are shown.
const MAX_VALUE_CHARS: usize = 4000;
/// How many characters a line break counts as, so that a value has at most 200 lines.
const LINE_BREAK_WEIGHT: usize = 20;
/// The most lines of a multi-line text, and the most entries of a list.
const MAX_LINES: usize = 200;

/// A prompt under construction.
#[derive(Debug, Default)]
pub(super) struct PromptPage {
    pub(super) text: String,
    /// Whether something was left out.
    pub(super) is_cut: bool,
    /// The escapes that stand for invisible characters.
    pub(super) hidden: BTreeSet<String>,
    /// The escapes that stand for characters that look like those of the prompt.
    pub(super) lookalikes: BTreeSet<String>,
}

impl PromptPage {
    /// Adds a line of our own.
    pub(super) fn push_label(&mut self, label: &str) {
        self.text.push_str(label);
        self.text.push('\n');
    }

    /// Adds foreign entries under a label, each as visible text; nothing when there are none.
    pub(super) fn push_section(&mut self, label: &str, entries: &[String], noun: &str) {
        if entries.is_empty() {
            return;
        }
        self.push_label(label);
        match omitted_middle(entries, MAX_LINES, |_| 1) {
            None => entries.iter().for_each(|entry| self.push_entry(entry)),
            Some(middle) => {
                entries[..middle.start].iter().for_each(|entry| self.push_entry(entry));
                self.push_omission(middle.len(), noun);
                entries[middle.end..].iter().for_each(|entry| self.push_entry(entry));
            }
        }
    }

    /// Adds a foreign entry as visible text.
    pub(super) fn push_entry(&mut self, entry: &str) {
        let pieces = visible_chars(entry);
        for piece in pieces.iter().filter(|piece| is_escape(piece)) {
            let seen =
                if is_lookalike_escape(piece) { &mut self.lookalikes } else { &mut self.hidden };
            seen.insert((*piece).to_owned());
        }
        let weight = |piece: &&str| if piece.ends_with('\n') { LINE_BREAK_WEIGHT } else { 1 };
        match omitted_middle(&pieces, MAX_VALUE_CHARS, weight) {
            None => self.push_framed(entry),
            Some(middle) => {
                self.push_framed(&pieces[..middle.start].concat());
                self.push_omission(middle.len(), "characters");
                self.push_framed(&pieces[middle.end..].concat());
            }
        }
    }

    fn push_framed(&mut self, text: &str) {
        for line in text.split('\n') {
            self.text.push_str(FRAME);
            self.push_label(line);
        }
    }

    fn push_omission(&mut self, count: usize, noun: &str) {
        self.is_cut = true;
        self.push_label(&format!("... {} {noun} hidden ...", group_digits(count)));
    }
}

/// Wraps the lines of a prompt for a terminal with this many columns. Each row that continues a
/// line starts with the frame.
pub fn wrap_rows(text: &str, columns: u16) -> String {
    // A row that fills the last column makes some terminals add an empty row.
    let width = usize::from(columns).saturating_sub(1).max(FRAME.len() + 2);
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut used = 0;
        for piece in visible_chars(line) {
            let piece_columns = max_columns(piece.trim_end_matches('\n'));
            if used + piece_columns > width && used > FRAME.len() {
                wrapped.push('\n');
                wrapped.push_str(FRAME);
                used = FRAME.len();
            }
            wrapped.push_str(piece);
            used += piece_columns;
        }
    }
    wrapped
}

/// Returns what to leave out, so that about half of `most` stays at either end.
fn omitted_middle<T>(
    items: &[T],
    most: usize,
    weight: impl Fn(&T) -> usize,
) -> Option<Range<usize>> {
    if items.iter().map(&weight).sum::<usize>() <= most {
        return None;
    }
    let fits = |items: &mut dyn Iterator<Item = &T>| {
        let mut left = most / 2;
        items
            .take_while(|item| {
                let fits = weight(item) <= left;
                left = left.saturating_sub(weight(item));
                fits
            })
            .count()
    };
    Some(fits(&mut items.iter())..items.len() - fits(&mut items.iter().rev()))
}

/// Formats `4812` as `4,812`.
fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_three() {
        for (number, expected) in
            [(0, "0"), (812, "812"), (4812, "4,812"), (1_000_000, "1,000,000")]
        {
            assert_eq!(group_digits(number), expected);
        }
    }

    #[test]
    fn the_middle_goes_and_both_ends_stay() {
        let equal = |_: &u8| 1;
        assert_eq!(omitted_middle(&[0; 10], 10, equal), None);
        assert_eq!(omitted_middle(&[0; 11], 10, equal), Some(5..6));
        assert_eq!(omitted_middle(&[0; 100], 10, equal), Some(5..95));
        // One heavy item ends the head, and the tail stops before it.
        assert_eq!(omitted_middle(&[1, 9, 1], 10, |&n| n), Some(1..2));
        assert_eq!(omitted_middle(&[20], 10, |&n| n), Some(0..1));
    }

    // PR3: no argument draws a row of the prompt at the left edge of a narrow terminal.
    #[test]
    fn wraps_to_the_columns_with_the_frame_on_every_row() {
        let mut page = PromptPage::default();
        let imitation = format!("x{}[y] once  [n] no", " ".repeat(31));
        page.push_section("arguments", &[imitation, "\u{6f22}".repeat(20)], "entries");
        page.push_label(&format!("warning: {}", "w".repeat(60)));
        for columns in [7, 20, 36, 40, 200] {
            let wrapped = wrap_rows(&page.text, columns);
            for row in wrapped.lines() {
                assert!(
                    row.starts_with(FRAME) || ["arg", "warn"].iter().any(|it| row.starts_with(it)),
                    "{row:?}"
                );
                assert!(max_columns(row) < usize::from(columns), "{columns}: {row:?}");
            }
            let joined = wrapped.replace(&format!("\n{FRAME}"), "");
            assert_eq!(joined, page.text.replace(&format!("\n{FRAME}"), ""));
        }
        assert_eq!(wrap_rows("  | ab\\u{202e}c\n", 11), "  | ab\n  | \\u{202e}\n  | c\n");
    }

    // PR3: an escape is shown whole or not at all.
    #[test]
    fn cuts_fall_between_characters() {
        let mut page = PromptPage::default();
        page.push_section("x", &[r"\u{202e}".repeat(5000)], "entries");
        let shown: Vec<_> = page.text.lines().map(|line| line.trim_start_matches(FRAME)).collect();
        let end = r"\u{202e}".repeat(2000);
        assert_eq!(shown, ["x", &end, "... 1,000 characters hidden ...", &end]);
        assert!(page.is_cut);
    }
}
