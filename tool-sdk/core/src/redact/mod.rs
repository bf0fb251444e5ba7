//! Redacts secrets in logs, events and audit records.
//!
//! Two kinds of secrets are found: known values that the host configured, and text that matches
//! the pattern of a secret, such as an API token. Other secrets pass: redaction lowers the harm
//! of a leak, it does not prevent every leak. Text that was truncated or escaped before redaction
//! is handled in [`fragments`].

mod fragments;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};
use serde_json::Value;

pub(crate) use self::fragments::DetectedSecrets;
use self::fragments::escaped_forms;

/// The placeholder for a secret.
const REDACTED: &str = "[redacted]";

/// The minimum length of a known secret. Shorter values would match parts of words.
const MIN_SECRET_BYTES: usize = 8;

/// Replaces secrets in text by `[redacted]`.
///
/// # Examples
///
/// ```
/// use tool_sdk::Redactor;
///
/// let redactor = Redactor::new(["correct horse"]);
/// assert_eq!(redactor.redact("login with correct horse"), "login with [redacted]");
/// assert_eq!(redactor.redact("Authorization: Bearer 3x4mpl3"), "Authorization: Bearer [redacted]");
/// assert_eq!(redactor.redact("git clone https://ada:pw@host/x"), "git clone https://[redacted]@host/x");
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    known: Option<Arc<KnownSecrets>>,
    /// The secrets that were added later; all clones share them.
    learned: Option<Arc<RwLock<LearnedSecrets>>>,
}

/// The secrets that a redactor has learned.
#[derive(Default)]
struct LearnedSecrets {
    /// Each secret and each of its lines, in all escaped forms.
    values: Vec<String>,
    /// These alone.
    only: Option<Arc<KnownSecrets>>,
    /// These, and the values that the host configured.
    all: Option<Arc<KnownSecrets>>,
}

/// The known secrets, and the automatons that find them.
struct KnownSecrets {
    /// Each secret and each of its lines, in all escaped forms.
    secrets: Vec<String>,
    finder: AhoCorasick,
    /// The secrets of which fragments are redacted too.
    fragmented: Vec<String>,
    /// Finds the first and last fragments of secrets, which remain at a truncation.
    end_finder: AhoCorasick,
    /// The length of the longest secret in bytes.
    longest: usize,
}

impl Redactor {
    /// Creates a redactor for these values and all secret patterns. Values of several lines are
    /// also found line by line. Values of less than eight bytes are ignored.
    #[must_use]
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets = secrets.into_iter().flat_map(|secret| searched_forms(secret.as_ref()));
        Self { known: KnownSecrets::build(secrets.collect()), learned: None }
    }

    /// Lets clones of this redactor share what they [learn](Self::learn).
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Redactor;
    ///
    /// let redactor = Redactor::from_env().learning();
    /// let clone = redactor.clone();
    /// redactor.learn("correct horse");
    /// assert_eq!(clone.redact("login with correct horse"), "login with [redacted]");
    /// ```
    #[must_use]
    pub fn learning(mut self) -> Self {
        self.learned.get_or_insert_default();
        self
    }

    /// Adds a secret to this redactor and its clones. Values of less than eight bytes are ignored.
    /// Does nothing unless the redactor is [learning](Self::learning).
    pub fn learn(&self, secret: &str) {
        let Some(learned) = &self.learned else { return };
        let mut learned = learned.write().unwrap_or_else(PoisonError::into_inner);
        let forms = searched_forms(secret);
        if forms.iter().all(|form| learned.values.contains(form)) {
            return;
        }
        learned.values.extend(forms);
        let configured = self.known.iter().flat_map(|known| known.secrets.iter().cloned());
        let all = configured.chain(learned.values.iter().cloned()).collect();
        learned.all = KnownSecrets::build(all);
        learned.only = KnownSecrets::build(learned.values.clone());
    }

    /// Returns whether a secret was learned.
    pub(crate) fn has_learned(&self) -> bool {
        self.learned_only().is_some()
    }

    fn learned_only(&self) -> Option<Arc<KnownSecrets>> {
        let learned = self.learned.as_ref()?;
        learned.read().unwrap_or_else(PoisonError::into_inner).only.clone()
    }

    /// Returns the known secrets: those of the host and those that were learned.
    fn known(&self) -> Option<Arc<KnownSecrets>> {
        let learned = self
            .learned
            .as_ref()
            .and_then(|learned| learned.read().unwrap_or_else(PoisonError::into_inner).all.clone());
        learned.or_else(|| self.known.clone())
    }

    /// Replaces the secrets that were learned, and nothing else.
    pub(crate) fn mask_learned(&self, text: &mut String) {
        let Some(learned) = self.learned_only() else { return };
        let found: Vec<_> =
            learned.finder.find_overlapping_iter(&*text).map(|found| found.range()).collect();
        if !found.is_empty() {
            *text = replace_ranges(text, found);
        }
    }

    /// Replaces the secrets that were learned in every string of a JSON value.
    pub(crate) fn mask_learned_in_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.mask_learned(text),
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.mask_learned_in_value(item));
            }
            Value::Object(members) => {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(mut key, mut value)| {
                        self.mask_learned(&mut key);
                        self.mask_learned_in_value(&mut value);
                        (key, value)
                    })
                    .collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns whether the learned secrets of both are the same.
    pub(crate) fn shares_learned(&self, other: &Self) -> bool {
        match (&self.learned, &other.learned) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            _ => false,
        }
    }

    /// Creates a redactor for the values of environment variables with secret names, such as
    /// `API_TOKEN`, and all secret patterns.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new(secret_env_values(std::env::vars_os()))
    }

    /// Like [`from_env`](Self::from_env), with additional values.
    #[doc(hidden)]
    pub fn from_env_with<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let given = secrets.into_iter().map(|secret| secret.as_ref().to_owned());
        Self::new(secret_env_values(std::env::vars_os()).into_iter().chain(given))
    }

    /// Returns `text` with its secrets replaced; borrowed when it has none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.find_secrets(text) {
            found if found.is_empty() => Cow::Borrowed(text),
            found => Cow::Owned(replace_ranges(text, found)),
        }
    }

    /// Returns the ranges of all secrets in `text`, unordered and possibly overlapping.
    fn find_secrets(&self, text: &str) -> Vec<Range<usize>> {
        find_patterns(text).chain(self.find_known(text)).collect()
    }

    /// Returns the ranges of known values in `text`.
    fn find_known(&self, text: &str) -> Vec<Range<usize>> {
        let Some(known) = self.known() else { return Vec::new() };
        known.finder.find_overlapping_iter(text).map(|found| found.range()).collect()
    }

    /// Redacts `text` in place.
    pub(crate) fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Redacts every string of a JSON value, and replaces every string under a key such as
    /// `password` as a whole.
    pub fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_in_place(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(key, mut value)| {
                        if is_secret_key(&key) {
                            mask_value(&mut value);
                        }
                        self.redact_value(&mut value);
                        (self.redact(&key).into_owned(), value)
                    })
                    .collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl KnownSecrets {
    /// Builds the automatons for these forms; `None` without any.
    fn build(secrets: Vec<String>) -> Option<Arc<Self>> {
        let longest = secrets.iter().map(String::len).max()?;
        let in_pieces = secrets.iter().filter(|secret| fragments::has_searchable_fragments(secret));
        let fragmented: Vec<String> = in_pieces.cloned().collect();
        let ends = fragmented.iter().flat_map(|secret| fragments::end_fragments(secret));
        let (ends, finder) = (AhoCorasick::new(ends), AhoCorasick::new(&secrets));
        let few = "the secrets of a host are less than a gigabyte";
        let (end_finder, finder) = (ends.expect(few), finder.expect(few));
        Some(Arc::new(Self { secrets, finder, fragmented, end_finder, longest }))
    }
}

/// Returns the forms of a secret that are looked for: it and each of its lines, escaped in all ways.
fn searched_forms(secret: &str) -> Vec<String> {
    secret_and_lines(secret)
        .into_iter()
        // A part of the placeholder would be found again in redacted text.
        .filter(|secret| secret.len() >= MIN_SECRET_BYTES && !REDACTED.contains(secret.as_str()))
        .flat_map(|secret| escaped_forms(&secret))
        .collect()
}

/// Replaces each of the ranges by the placeholder; overlapping ranges get one.
fn replace_ranges(text: &str, mut secrets: Vec<Range<usize>>) -> String {
    secrets.sort_unstable_by_key(|found| found.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Range { start, end } in secrets {
        if start >= done {
            out.push_str(&text[done..start]);
            out.push_str(REDACTED);
        }
        done = done.max(end);
    }
    out.push_str(&text[done..]);
    out
}

/// Returns a secret and its lines, because diffs and numbered listings put a prefix before each
/// line.
fn secret_and_lines(secret: &str) -> Vec<String> {
    let (whole, lines) = (secret.trim(), secret.trim().lines().map(str::trim));
    std::iter::once(whole).chain(lines.filter(|line| *line != whole)).map(str::to_owned).collect()
}

/// Prints the number of secrets only.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known().map_or(0, |known| known.secrets.len());
        f.debug_struct("Redactor").field("known", &known).finish()
    }
}

/// Replaces every string of a value by the placeholder.
fn mask_value(value: &mut Value) {
    match value {
        Value::String(text) if !text.is_empty() => REDACTED.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(mask_value),
        _ => {}
    }
}

/// Returns whether the value of this key is a secret by its name, such as `password`.
pub fn is_secret_key(key: &str) -> bool {
    const SECRET: &[&str] = &[
        "apikey",
        "authorization",
        "cookie",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "privatekey",
        "secret",
        "secretkey",
        "token",
    ];
    let key: String =
        key.chars().filter(|c| !"-_. ".contains(*c)).map(|c| c.to_ascii_lowercase()).collect();
    SECRET.iter().any(|secret| key.ends_with(secret))
}

/// Returns the values of environment variables with secret names.
fn secret_env_values(vars: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    vars.filter(|(name, _)| name.to_str().is_some_and(is_secret_env_name))
        .filter_map(|(_, value)| value.into_string().ok())
        .collect()
}

fn is_secret_env_name(name: &str) -> bool {
    const WORDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE", "PRIVATE"];
    // `GIT_AUTHOR_NAME` contains `AUTH`, but is not secret and would be redacted everywhere.
    let name = name.to_ascii_uppercase().replace("AUTHOR_", "_");
    WORDS.iter().any(|word| name.contains(word))
}

/// Returns the ranges in `text` that match the pattern of a secret.
fn find_patterns(text: &str) -> impl Iterator<Item = Range<usize>> {
    SECRET_PATTERNS.captures_iter(text).filter_map(|found| secret_range(&found))
}

/// All secret patterns in one regex, so that a text is scanned once. Word boundaries are ASCII,
/// because Unicode boundaries make the scan many times slower.
static SECRET_PATTERNS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)
        # An Authorization header, in HTTP or in source code.
        (?i:authorization ["']? \s* [:=] \s* ["']?
            (?: basic | bearer | digest | negotiate | token | apikey ) \s+)
            (?<header> [A-Za-z0-9._~+/=-]+ )
        | (?i:(?-u:\b) bearer \s+ ) (?<bearer> [A-Za-z0-9._~+/=-]{16,} )
        # User and password of a URL.
        | :// (?<user> [^\s/?\#"'`:]* : [^\s/?\#"'`]* ) @
        # Tokens with a known prefix.
        | (?-u:\b) (?<token>
              sk-[A-Za-z0-9_-]{20,}
            | [prs]k_(?:live|test)_[A-Za-z0-9]{16,}
            | gh[opsru]_[A-Za-z0-9]{20,}
            | github_pat_[A-Za-z0-9_]{20,}
            | glpat-[A-Za-z0-9_-]{20,}
            | xox[abeprs]-[A-Za-z0-9-]{10,}
            | npm_[A-Za-z0-9]{36}
            | hf_[A-Za-z0-9]{30,}
            | (?:AKIA|ASIA)[A-Z0-9]{16} (?-u:\b)
            | AIza[A-Za-z0-9_-]{35}
            | eyJ[A-Za-z0-9_-]{5,} \. eyJ[A-Za-z0-9_-]{5,} \. [A-Za-z0-9_-]*
          )
        # A PEM private key, also truncated or with escaped line ends.
        | (?<pem> -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY-----
            (?: [A-Za-z0-9+/=\s\\:,.-]*? -----END\ [A-Z0-9\ ]*PRIVATE\ KEY-----
              | [A-Za-z0-9+/=\s\\]{40,} ) )
        "#,
    )
    .expect("the pattern is fixed")
});

/// Returns the secret part of a match, or `None` for a false positive.
fn secret_range(found: &Captures<'_>) -> Option<Range<usize>> {
    if let Some(certain) = found.name("header").or_else(|| found.name("pem")) {
        return Some(certain.range());
    }
    if let Some(user) = found.name("user") {
        // `https://{user}:{password}@host` is a template, not a URL.
        return (!user.as_str().contains(['{', '}', '<', '>'])).then(|| user.range());
    }
    let token = found.name("bearer").or_else(|| found.name("token"))?;
    // Random text has digits; names such as `sk-loading-spinner-outer` have none.
    token.as_str().bytes().any(|byte| byte.is_ascii_digit()).then(|| token.range())
}

#[cfg(test)]
mod tests;
