//! The place of a text that is most like quoted lines, as help where these are not found.
//!
//! The work is linear: lines that are equal but for blanks around them vote for where the
//! quote would start. Where none are, the one line decides that shares most of its two ends
//! with the longest line of the quote.
//!
//! **Invariant:** nothing is changed by what is found here.

use std::collections::HashMap;
use std::fmt;

use super::find::Folded;
use crate::diff;

/// How many lines of a file are looked at.
const MAX_LINES: usize = 100_000;

/// How much of a line is compared, in bytes.
const MAX_BYTES: usize = 400;

/// A line says no more about a place than this many bytes do: one long line is not a proof.
const MAX_WEIGHT: usize = 40;

/// How often a line of the quote may vote: braces are everywhere.
const MAX_VOTES: usize = 4;

/// How many lines of the difference are shown.
const SHOWN: usize = 20;

/// A place that is like the quoted lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Nearest {
    /// Its first line, counting from 1.
    pub(crate) first: usize,
    /// Its last line.
    pub(crate) last: usize,
    /// From what was quoted to what is there, in unified form.
    pub(crate) diff: String,
}

impl Nearest {
    /// Whether the place says just what was quoted.
    pub(crate) fn is_the_same(&self) -> bool {
        self.diff.is_empty()
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, diff } = self;
        let place =
            if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
        write!(f, "closest is {place} (- as quoted, + as in the file):\n{}", diff.trim_end())
    }
}

/// The place of `text` that is most like `old`, when one is.
pub(crate) fn nearest(text: &str, old: &str) -> Option<Nearest> {
    let (text, old) = (Folded::new(text, false).text, Folded::new(old, false).text);
    let there: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let quoted: Vec<&str> = old.lines().collect();
    let start = by_votes(&there, &quoted).or_else(|| by_ends(&there, &quoted))?;
    let end = there.len().min(start + quoted.len());
    let with_ends = |lines: &[&str]| lines.join("\n") + "\n";
    let diff = diff::between(&with_ends(&quoted), &with_ends(&there[start..end]), SHOWN);
    Some(Nearest { first: start + 1, last: end, diff: diff.unified })
}

/// Where most of the quote's lines agree that it starts.
fn by_votes(there: &[&str], quoted: &[&str]) -> Option<usize> {
    let mut voters: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut total = 0;
    for (at, line) in quoted.iter().map(|line| line.trim()).enumerate() {
        let places = voters.entry(line).or_default();
        if !line.is_empty() && places.len() < MAX_VOTES {
            places.push(at);
        }
        total += weight(line);
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in there.iter().map(|line| line.trim()).enumerate() {
        for start in voters.get(line).into_iter().flatten().filter_map(|&be| at.checked_sub(be)) {
            *votes.entry(start).or_default() += weight(line);
        }
    }
    let (start, most) = votes.into_iter().max_by_key(|&(start, n)| (n, usize::MAX - start))?;
    // Less is what two places of one language have in common anyway.
    (most * 3 >= total).then_some(start)
}

fn weight(line: &str) -> usize {
    line.len().min(MAX_WEIGHT)
}

/// Where the quote starts when its longest line is the one that is most like it.
fn by_ends(there: &[&str], quoted: &[&str]) -> Option<usize> {
    let (offset, longest) =
        quoted.iter().map(|line| line.trim()).enumerate().max_by_key(|(_, line)| line.len())?;
    let (at, common) = there
        .iter()
        .enumerate()
        .map(|(at, line)| (at, common_ends(line.trim(), longest)))
        .max_by_key(|&(at, common)| (common, usize::MAX - at))?;
    (common >= 60).then(|| at.saturating_sub(offset))
}

/// How much two lines share at their ends, in percent of both.
fn common_ends(a: &str, b: &str) -> usize {
    let (a, b) = (head(a), head(b));
    let equal = |(a, b): &(&u8, &u8)| a == b;
    let start = a.iter().zip(b).take_while(equal).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(equal).count();
    (200 * (start + end)).checked_div(a.len() + b.len()).unwrap_or_default()
}

fn head(line: &str) -> &[u8] {
    &line.as_bytes()[..line.len().min(MAX_BYTES)]
}
