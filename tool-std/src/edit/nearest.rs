//! Finds the lines that are most similar to a quote that does not match, for the error message.
//!
//! The work is linear: lines that are equal except for surrounding blanks vote for the start of the
//! quote. Without such lines, the line decides that shares the longest prefix and suffix with the
//! longest line of the quote.
//!
//! **Invariant:** the result is only shown; nothing is replaced there.

use std::collections::HashMap;
use std::fmt;

use super::find::NormalizedText;
use crate::diff;

/// The maximum number of lines of a file that are compared.
const MAX_LINES: usize = 100_000;

/// The maximum number of bytes of a line that are compared.
const MAX_BYTES: usize = 400;

/// The maximum weight of one line in bytes, so that one long line does not decide alone.
const MAX_WEIGHT: usize = 40;

/// The maximum number of votes of equal lines of the quote, because lines such as `}` are
/// everywhere.
const MAX_VOTES: usize = 4;

/// The maximum number of lines of the diff.
const MAX_DIFF_LINES: usize = 20;

/// The lines that are most similar to the quote.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NearestMatch {
    /// The first line, counting from 1.
    pub(crate) first: usize,
    /// The last line.
    pub(crate) last: usize,
    /// The unified diff from the quote to the file.
    pub(crate) diff: String,
}

impl NearestMatch {
    /// Whether the lines equal the quote.
    pub(crate) fn is_identical(&self) -> bool {
        self.diff.is_empty()
    }
}

impl fmt::Display for NearestMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, diff } = self;
        let place =
            if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
        write!(f, "closest is {place} (- as quoted, + as in the file):\n{}", diff.trim_end())
    }
}

/// Returns the lines of `text` that are most similar to `old`, if there are any.
pub(crate) fn find_nearest(text: &str, old: &str) -> Option<NearestMatch> {
    let (text, old) = (NormalizedText::new(text, false).text, NormalizedText::new(old, false).text);
    let there: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let quoted: Vec<&str> = old.lines().collect();
    let start =
        vote_for_start(&there, &quoted).or_else(|| start_by_longest_line(&there, &quoted))?;
    let end = there.len().min(start + quoted.len());
    let with_ends = |lines: &[&str]| lines.join("\n") + "\n";
    let diff =
        diff::diff_texts(&with_ends(&quoted), &with_ends(&there[start..end]), MAX_DIFF_LINES);
    Some(NearestMatch { first: start + 1, last: end, diff: diff.unified })
}

/// Returns the line for which most of the quote's lines vote as its start.
fn vote_for_start(there: &[&str], quoted: &[&str]) -> Option<usize> {
    let mut voters: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut total = 0;
    for (at, line) in quoted.iter().map(|line| line.trim()).enumerate() {
        let places = voters.entry(line).or_default();
        if !line.is_empty() && places.len() < MAX_VOTES {
            places.push(at);
        }
        total += line_weight(line);
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in there.iter().map(|line| line.trim()).enumerate() {
        for start in voters.get(line).into_iter().flatten().filter_map(|&be| at.checked_sub(be)) {
            *votes.entry(start).or_default() += line_weight(line);
        }
    }
    let (start, most) = votes.into_iter().max_by_key(|&(start, n)| (n, usize::MAX - start))?;
    // With fewer votes, the lines have only common syntax in common.
    (most * 3 >= total).then_some(start)
}

fn line_weight(line: &str) -> usize {
    line.len().min(MAX_WEIGHT)
}

/// Returns the start of the quote, if its longest line is at the most similar line.
fn start_by_longest_line(there: &[&str], quoted: &[&str]) -> Option<usize> {
    let (offset, longest) =
        quoted.iter().map(|line| line.trim()).enumerate().max_by_key(|(_, line)| line.len())?;
    let (at, common) = there
        .iter()
        .enumerate()
        .map(|(at, line)| (at, shared_ends_percent(line.trim(), longest)))
        .max_by_key(|&(at, common)| (common, usize::MAX - at))?;
    (common >= 60).then(|| at.saturating_sub(offset))
}

/// Returns the common prefix and suffix of two lines, in percent of both.
fn shared_ends_percent(a: &str, b: &str) -> usize {
    let (a, b) = (line_prefix(a), line_prefix(b));
    let equal = |(a, b): &(&u8, &u8)| a == b;
    let start = a.iter().zip(b).take_while(equal).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(equal).count();
    (200 * (start + end)).checked_div(a.len() + b.len()).unwrap_or_default()
}

fn line_prefix(line: &str) -> &[u8] {
    &line.as_bytes()[..line.len().min(MAX_BYTES)]
}
