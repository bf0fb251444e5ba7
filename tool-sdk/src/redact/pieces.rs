//! Pieces of secrets, and secrets that come in pieces.
//!
//! What is told of a call was often made before anybody looks for secrets in it: a reason names
//! the beginning of a command, a summary is cut, an error writes odd characters as escapes. What
//! is left of a secret then has neither its value nor its shape. So the secrets are looked for in
//! what the call was made of, and their pieces in what is told of it.
//!
//! **Invariant:** whoever makes a call hides nothing of it. Anything can be given the shape of a
//! secret, so of one that only looks so no more is taken out than its beginning at a cut.

use std::collections::{BTreeSet, HashSet};
use std::ops::{Bound, Range};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{MARK, Redactor, marked, shapes};

/// So many characters of a secret are a piece, wherever they stand.
const PIECE: usize = 8;

/// So many are one right before a mark of what was cut, where the secret is in the call.
const TOLD: usize = 4;

/// What stands where a text was cut.
const CUTS: [&str; 2] = ["…", "..."];

/// What begins as a token does, at the end of a text that was cut there.
static BEGUN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x) (?-u:\b) (
            (?: sk- | [prs]k_(?:live|test)_ | gh[opsru]_ | github_pat_ | glpat- | xox[abeprs]-
              | npm_ | hf_ | AKIA | ASIA | AIza | eyJ ) [A-Za-z0-9._-]{4,}
          )$ | (?-u:\b) (?i:bearer) \s+ ( [A-Za-z0-9._~+/=-]{4,} )$",
    )
    .expect("the pattern is fixed")
});

/// The secrets that were found in what a call was made of, as they may stand in texts.
#[derive(Default)]
pub(crate) struct Spotted {
    all: BTreeSet<String>,
    /// Those of them that the host knows.
    known: BTreeSet<String>,
}

impl Spotted {
    /// The secrets in the arguments of a call, as they were at any time.
    pub(crate) fn in_arguments(redactor: &Redactor, arguments: &[&str]) -> Self {
        let mut spotted = Self::default();
        for (at, text) in arguments.iter().enumerate() {
            if arguments[..at].contains(text) {
                continue;
            }
            match serde_json::from_str(text) {
                Ok(value) => spotted.look_into(redactor, &value),
                Err(_) => spotted.look_at(redactor, text),
            }
        }
        spotted
    }

    /// Adds the secrets in every text of `value`.
    pub(crate) fn look_into(&mut self, redactor: &Redactor, value: &Value) {
        match value {
            Value::String(text) => self.look_at(redactor, text),
            Value::Array(items) => items.iter().for_each(|item| self.look_into(redactor, item)),
            Value::Object(members) => {
                for (key, value) in members {
                    self.look_at(redactor, key);
                    self.look_into(redactor, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds the secrets in `text`.
    pub(crate) fn look_at(&mut self, redactor: &Redactor, text: &str) {
        for found in shapes(text) {
            let secret = &text[found];
            if !self.all.contains(secret) {
                self.all.extend(forms(secret));
            }
        }
        for found in redactor.known_in(text).filter(|found| is_in_pieces(&text[found.clone()])) {
            let secret = &text[found];
            if !self.known.contains(secret) {
                self.known.extend(forms(secret));
                self.all.extend(forms(secret));
            }
        }
    }

    /// Where the beginning of one of them is at the end of `before`.
    fn begun(&self, before: &str) -> Option<Range<usize>> {
        /// Of longer ones no more is left before a cut.
        const MOST: usize = 256;
        let from = before.ceil_char_boundary(before.len().saturating_sub(MOST));
        let is_begun = |at: &usize| {
            let rest = &before[*at..];
            let next = self.all.range::<str, _>((Bound::Included(rest), Bound::Unbounded)).next();
            next.is_some_and(|secret| secret.starts_with(rest))
        };
        let starts = before[from..].char_indices().map(|(at, _)| from + at);
        let enough = before.char_indices().nth_back(TOLD - 1).map(|(at, _)| at)?;
        let at = starts.take_while(|at| *at <= enough).find(is_begun)?;
        Some(at..before.len())
    }

    /// Where their pieces are in `text`.
    fn pieces(&self, text: &str) -> Vec<Range<usize>> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let of_one = |secret| windows(secret).map(|piece| &secret[piece]);
        let pieces = self.known.iter().map(String::as_str).flat_map(of_one);
        let pieces: HashSet<&str> = pieces.filter(|piece| !MARK.contains(piece)).collect();
        windows(text).filter(|piece| pieces.contains(&text[piece.clone()])).collect()
    }
}

impl Redactor {
    /// Replaces the secrets in a text that tells of a call, and the pieces of those that were
    /// spotted in what it was made of.
    pub(crate) fn scrub_told(&self, text: &mut String, spotted: &Spotted) {
        self.scrub(text);
        let mut pieces = spotted.pieces(text);
        pieces.extend(self.cut_in(text, spotted));
        if !pieces.is_empty() {
            *text = marked(text, pieces);
        }
    }

    /// The same in every text of a value, which may be whole: of what only looks like a secret
    /// nothing but that is taken out.
    pub(crate) fn scrub_told_value(&self, value: &mut Value, spotted: &Spotted) {
        self.redact_value(value);
        self.scrub_known(value, spotted);
    }

    fn scrub_known(&self, value: &mut Value, spotted: &Spotted) {
        match value {
            Value::String(text) => {
                let pieces = spotted.pieces(text);
                if !pieces.is_empty() {
                    *text = marked(text, pieces);
                }
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.scrub_known(item, spotted));
            }
            Value::Object(members) => {
                members.values_mut().for_each(|value| self.scrub_known(value, spotted));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Where in `text` the beginning of a secret is left before a cut, or the end of a known one
    /// after it. A line may end at a cut without a mark.
    fn cut_in(&self, text: &str, spotted: &Spotted) -> Vec<Range<usize>> {
        let known = self.known.as_ref().filter(|known| known.ends.is_match(text));
        let known = known.map_or(&[][..], |known| &known.in_pieces);
        let mut found = Vec::new();
        for (at, cut) in CUTS.iter().flat_map(|cut| text.match_indices(cut)) {
            let before = text[..at].trim_end_matches(' ');
            found.extend(token_at_end(before));
            found.extend(spotted.begun(before));
            found.extend(known.iter().filter_map(|secret| begun(before, secret, PIECE)));
            let start = at + cut.len();
            found.extend(known.iter().filter_map(|secret| ended(text, start, secret)));
        }
        if known.is_empty() {
            return found;
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.trim_end_matches('\n').len();
            found.extend(known.iter().filter_map(|secret| begun(&text[..end], secret, PIECE)));
            found.extend(known.iter().filter_map(|secret| ended(text, start, secret)));
            start += line.len();
        }
        found
    }

    /// How much of `text`, which goes on, is no beginning of a known secret. What is left is no
    /// longer than a few secrets.
    pub(crate) fn settled(&self, text: &str) -> usize {
        let Some(known) = &self.known else { return text.len() };
        let from = text.ceil_char_boundary(text.len().saturating_sub(known.longest));
        let is_begun = |at: &usize| {
            let is_more = |secret: &String| secret.len() > text.len() - at;
            let mut longer = known.secrets.iter().filter(|secret| is_more(secret));
            longer.any(|secret| secret.starts_with(&text[*at..]))
        };
        let starts = text[from..].char_indices().map(|(at, _)| from + at);
        let Some(mut at) = { starts }.find(is_begun) else { return text.len() };
        // What is found where it begins stays whole.
        let found = self.found(text);
        let spanning = |at: usize| {
            found.iter().filter(move |it| it.start < at && at < it.end).map(|it| it.start).min()
        };
        while let Some(start) = spanning(at) {
            at = start;
        }
        if text.len() - at > known.longest.saturating_mul(4) { text.len() } else { at }
    }

    /// Whether there are secrets that are known by their values.
    pub(crate) fn is_knowing(&self) -> bool {
        self.known.is_some()
    }
}

/// A secret as it stands in texts: as it is, and as those write it who escape what does not show
/// or what their quotes would not hold, or who write words on one line.
pub(super) fn forms(secret: &str) -> Vec<String> {
    let mut controls = String::with_capacity(secret.len());
    for c in secret.chars() {
        if c.is_control() { controls.extend(c.escape_default()) } else { controls.push(c) }
    }
    let json = Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let (debug, default) = (secret.escape_debug().to_string(), secret.escape_default().to_string());
    // As a shell has it, whose words stand apart by any blanks.
    let words = secret.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut forms = vec![secret.to_owned()];
    for form in [controls, json, debug, default, words] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Whether pieces of a secret are looked for: not those of a path to one, which others share.
pub(super) fn is_in_pieces(secret: &str) -> bool {
    !secret.starts_with('/')
}

/// The first and the last piece of a secret: where a text has neither, no end of it is there.
pub(super) fn ends(secret: &str) -> [&str; 2] {
    let first = secret.char_indices().nth(PIECE).map_or(secret.len(), |(at, _)| at);
    let last = secret.char_indices().nth_back(PIECE - 1).map_or(0, |(at, _)| at);
    [&secret[..first], &secret[last..]]
}

/// Where a token begins that is cut at the end of `before`.
fn token_at_end(before: &str) -> Option<Range<usize>> {
    /// Longer tokens are not looked for: there may be many cuts.
    const MOST: usize = 1 << 10;
    let start = before.floor_char_boundary(before.len().saturating_sub(MOST));
    let found = BEGUN.captures(&before[start..])?;
    let token = found.get(1).or_else(|| found.get(2))?;
    Some(start + token.start()..start + token.end())
}

/// Every place of so many characters of `text` as are a piece.
fn windows(text: &str) -> impl Iterator<Item = Range<usize>> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).skip(PIECE - 1);
    starts.zip(ends).map(|(start, end)| start..end)
}

/// Where the beginning of a secret is at the end of `before`, the longest of `least` characters
/// or more.
fn begun(before: &str, secret: &str, least: usize) -> Option<Range<usize>> {
    let ends = secret.char_indices().map(|(at, c)| at + c.len_utf8()).skip(least - 1);
    let length = ends.filter(|&end| before.ends_with(&secret[..end])).last()?;
    Some(before.len() - length..before.len())
}

/// Where the end of a secret is at `start`, the longest of enough characters for a piece.
fn ended(text: &str, start: usize, secret: &str) -> Option<Range<usize>> {
    let rest = &text[start..];
    let starts = secret.char_indices().map(|(at, _)| at);
    let is_left = |&at: &usize| rest.starts_with(&secret[at..]);
    let at = { starts }.find(is_left)?;
    let is_piece = secret[at..].chars().nth(PIECE - 1).is_some();
    is_piece.then(|| start..start + secret.len() - at)
}
