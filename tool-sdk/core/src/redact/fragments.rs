//! Redacts fragments of secrets in text that was truncated or escaped before redaction.
//!
//! A decision reason quotes the start of a command, a summary is truncated, an error message
//! escapes special characters. The rest of a secret then matches neither its value nor its
//! pattern. So the secrets are detected in the arguments of the call, and their fragments are
//! replaced in the text about the call.
//!
//! **Invariant:** a caller cannot hide what a call does. Any text can be given the form of a
//! secret, so of a secret that was found by its pattern only a truncated start is replaced.

use std::collections::{BTreeSet, HashSet};
use std::ops::{Bound, Range};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{REDACTED, Redactor, find_patterns, replace_ranges};

/// The number of characters that make a fragment of a secret.
const FRAGMENT_CHARS: usize = 8;

/// The minimum number of characters before a truncation mark, for a secret of the call itself.
const MIN_PREFIX_CHARS: usize = 4;

/// The marks of a truncated text.
const TRUNCATION_MARKS: [&str; 2] = ["…", "..."];

/// Matches the start of a token at the end of a truncated text.
static TOKEN_START: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x) (?-u:\b) (
            (?: sk- | [prs]k_(?:live|test)_ | gh[opsru]_ | github_pat_ | glpat- | xox[abeprs]-
              | npm_ | hf_ | AKIA | ASIA | AIza | eyJ ) [A-Za-z0-9._-]{4,}
          )$ | (?-u:\b) (?i:bearer) \s+ ( [A-Za-z0-9._~+/=-]{4,} )$",
    )
    .expect("the pattern is fixed")
});

/// The secrets that were detected in the arguments of a call, in all escaped forms.
#[derive(Default)]
pub(crate) struct DetectedSecrets {
    all: BTreeSet<String>,
    /// The known values among them.
    known: BTreeSet<String>,
}

impl DetectedSecrets {
    /// Detects the secrets in the arguments of a call; one text for each version of the arguments.
    pub(crate) fn from_arguments(redactor: &Redactor, arguments: &[&str]) -> Self {
        let mut spotted = Self::default();
        for (at, text) in arguments.iter().enumerate() {
            if arguments[..at].contains(text) {
                continue;
            }
            match serde_json::from_str(text) {
                Ok(value) => spotted.scan_value(redactor, &value),
                Err(_) => spotted.scan_text(redactor, text),
            }
        }
        spotted
    }

    /// Adds the secrets in every string of `value`.
    pub(crate) fn scan_value(&mut self, redactor: &Redactor, value: &Value) {
        match value {
            Value::String(text) => self.scan_text(redactor, text),
            Value::Array(items) => items.iter().for_each(|item| self.scan_value(redactor, item)),
            Value::Object(members) => {
                for (key, value) in members {
                    self.scan_text(redactor, key);
                    self.scan_value(redactor, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds the secrets in `text`.
    pub(crate) fn scan_text(&mut self, redactor: &Redactor, text: &str) {
        for found in find_patterns(text) {
            let secret = &text[found];
            if !self.all.contains(secret) {
                self.all.extend(escaped_forms(secret));
            }
        }
        let known = redactor.find_known(text).into_iter();
        for found in known.filter(|found| has_searchable_fragments(&text[found.clone()])) {
            let secret = &text[found];
            if !self.known.contains(secret) {
                self.known.extend(escaped_forms(secret));
                self.all.extend(escaped_forms(secret));
            }
        }
    }

    /// Returns the range at the end of `before` that is a prefix of a secret.
    fn find_trailing_prefix(&self, before: &str) -> Option<Range<usize>> {
        /// Longer prefixes are not searched.
        const MOST: usize = 256;
        let from = before.ceil_char_boundary(before.len().saturating_sub(MOST));
        let is_begun = |at: &usize| {
            let rest = &before[*at..];
            let next = self.all.range::<str, _>((Bound::Included(rest), Bound::Unbounded)).next();
            next.is_some_and(|secret| secret.starts_with(rest))
        };
        let starts = before[from..].char_indices().map(|(at, _)| from + at);
        let enough = before.char_indices().nth_back(MIN_PREFIX_CHARS - 1).map(|(at, _)| at)?;
        let at = starts.take_while(|at| *at <= enough).find(is_begun)?;
        Some(at..before.len())
    }

    /// Returns the ranges of fragments of known secrets in `text`.
    fn find_fragments(&self, text: &str) -> Vec<Range<usize>> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let of_one = |secret| fragment_windows(secret).map(|piece| &secret[piece]);
        let pieces = self.known.iter().map(String::as_str).flat_map(of_one);
        let pieces: HashSet<&str> = pieces.filter(|piece| !REDACTED.contains(piece)).collect();
        fragment_windows(text).filter(|piece| pieces.contains(&text[piece.clone()])).collect()
    }
}

impl Redactor {
    /// Redacts a text about a call, such as a reason: all secrets, and fragments of the secrets in
    /// its arguments.
    ///
    /// All of them are found in the text as it is: once a line of a secret is replaced, the start of
    /// that secret is no longer found before the place where it is truncated.
    pub(crate) fn redact_call_text(&self, text: &mut String, spotted: &DetectedSecrets) {
        let mut found = self.find_secrets(text);
        found.extend(spotted.find_fragments(text));
        found.extend(self.find_truncated(text, spotted));
        if !found.is_empty() {
            *text = replace_ranges(text, found);
        }
    }

    /// Redacts every string of a JSON value about a call. The strings may be untruncated, so of
    /// secrets that were found by pattern no fragments are replaced.
    pub(crate) fn redact_call_value(&self, value: &mut Value, spotted: &DetectedSecrets) {
        self.redact_value(value);
        self.redact_known_fragments(value, spotted);
    }

    fn redact_known_fragments(&self, value: &mut Value, spotted: &DetectedSecrets) {
        match value {
            Value::String(text) => {
                let pieces = spotted.find_fragments(text);
                if !pieces.is_empty() {
                    *text = replace_ranges(text, pieces);
                }
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.redact_known_fragments(item, spotted));
            }
            Value::Object(members) => {
                members.values_mut().for_each(|value| self.redact_known_fragments(value, spotted));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the ranges of a prefix of a secret before a truncation mark, and of a suffix of a
    /// known secret after it. A line may also be truncated without a mark.
    fn find_truncated(&self, text: &str, spotted: &DetectedSecrets) -> Vec<Range<usize>> {
        let known = self.known().filter(|known| known.end_finder.is_match(text));
        let known = known.as_ref().map_or(&[][..], |known| &known.fragmented);
        let mut found = Vec::new();
        for (at, cut) in TRUNCATION_MARKS.iter().flat_map(|cut| text.match_indices(cut)) {
            let whole = &text[..at];
            let before = whole.trim_end_matches(' ');
            found.extend(truncated_token(before));
            found.extend(spotted.find_trailing_prefix(before));
            // The spaces before the mark may be those of a secret.
            found.extend(known.iter().filter_map(|secret| {
                trailing_prefix(whole, secret, FRAGMENT_CHARS)
                    .or_else(|| trailing_prefix(before, secret, FRAGMENT_CHARS))
            }));
            let start = at + cut.len();
            found.extend(known.iter().filter_map(|secret| leading_suffix(text, start, secret)));
        }
        if known.is_empty() {
            return found;
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.trim_end_matches('\n').len();
            found.extend(
                known
                    .iter()
                    .filter_map(|secret| trailing_prefix(&text[..end], secret, FRAGMENT_CHARS)),
            );
            found.extend(known.iter().filter_map(|secret| leading_suffix(text, start, secret)));
            start += line.len();
        }
        found
    }

    /// Returns how many bytes of a streamed `text` can be released, because they cannot be the
    /// start of a known secret that continues in the next chunk. The rest is bounded by a few
    /// times the longest secret.
    pub(crate) fn stable_prefix_len(&self, text: &str) -> usize {
        let Some(known) = self.known() else { return text.len() };
        let from = text.ceil_char_boundary(text.len().saturating_sub(known.longest));
        let is_begun = |at: &usize| {
            let is_more = |secret: &String| secret.len() > text.len() - at;
            let mut longer = known.secrets.iter().filter(|secret| is_more(secret));
            longer.any(|secret| secret.starts_with(&text[*at..]))
        };
        let starts = text[from..].char_indices().map(|(at, _)| from + at);
        let Some(mut at) = { starts }.find(is_begun) else { return text.len() };
        // Do not split a secret that was found in `text`.
        let found = self.find_secrets(text);
        let spanning = |at: usize| {
            found.iter().filter(move |it| it.start < at && at < it.end).map(|it| it.start).min()
        };
        while let Some(start) = spanning(at) {
            at = start;
        }
        if text.len() - at > known.longest.saturating_mul(4) { text.len() } else { at }
    }

    /// Returns whether there are known secrets.
    pub(crate) fn has_known_secrets(&self) -> bool {
        self.known().is_some()
    }
}

/// Returns the forms in which a secret occurs in text: verbatim, escaped for display, as JSON, as
/// Rust `Debug`, and with normalized whitespace.
pub(super) fn escaped_forms(secret: &str) -> Vec<String> {
    let mut controls = String::with_capacity(secret.len());
    for c in secret.chars() {
        if c.is_control() { controls.extend(c.escape_default()) } else { controls.push(c) }
    }
    let json = Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let (debug, default) = (secret.escape_debug().to_string(), secret.escape_default().to_string());
    // Shell words are separated by any whitespace.
    let words = secret.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut forms = vec![secret.to_owned()];
    for form in [controls, json, debug, default, words] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Returns whether fragments of a secret are redacted. Not of an absolute path, because other
/// paths share its components.
pub(super) fn has_searchable_fragments(secret: &str) -> bool {
    !secret.starts_with('/')
}

/// Returns the first and the last fragment of a secret. A text without both contains no end of it.
pub(super) fn end_fragments(secret: &str) -> [&str; 2] {
    let first = secret.char_indices().nth(FRAGMENT_CHARS).map_or(secret.len(), |(at, _)| at);
    let last = secret.char_indices().nth_back(FRAGMENT_CHARS - 1).map_or(0, |(at, _)| at);
    [&secret[..first], &secret[last..]]
}

/// Returns the range of a token that is truncated at the end of `before`.
fn truncated_token(before: &str) -> Option<Range<usize>> {
    /// Longer tokens are not searched, because a text may have many truncation marks.
    const MOST: usize = 1 << 10;
    let start = before.floor_char_boundary(before.len().saturating_sub(MOST));
    let found = TOKEN_START.captures(&before[start..])?;
    let token = found.get(1).or_else(|| found.get(2))?;
    Some(start + token.start()..start + token.end())
}

/// Returns all windows of `text` with the length of a fragment.
fn fragment_windows(text: &str) -> impl Iterator<Item = Range<usize>> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).skip(FRAGMENT_CHARS - 1);
    starts.zip(ends).map(|(start, end)| start..end)
}

/// Returns the range of the longest prefix of a secret at the end of `before`, of at least `least`
/// characters.
fn trailing_prefix(before: &str, secret: &str, least: usize) -> Option<Range<usize>> {
    let ends = secret.char_indices().map(|(at, c)| at + c.len_utf8()).skip(least - 1);
    let length = ends.filter(|&end| before.ends_with(&secret[..end])).last()?;
    Some(before.len() - length..before.len())
}

/// Returns the range of the longest suffix of a secret at `start`, of at least one fragment.
fn leading_suffix(text: &str, start: usize, secret: &str) -> Option<Range<usize>> {
    let rest = &text[start..];
    let starts = secret.char_indices().map(|(at, _)| at);
    let is_left = |&at: &usize| rest.starts_with(&secret[at..]);
    let at = { starts }.find(is_left)?;
    let is_piece = secret[at..].chars().nth(FRAGMENT_CHARS - 1).is_some();
    is_piece.then(|| start..start + secret.len() - at)
}
