//! Keeps secrets out of what is written down: logs, events, audit records.
//!
//! Two kinds of secrets are found: values that the host knows, wherever they stand, and
//! texts that have the shape of a secret. A secret in neither list passes: this lowers the
//! harm of a leak, it does not make one impossible. Of texts that were cut or written with
//! escapes before anybody looked for secrets in them, see [`pieces`].

mod pieces;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};
use serde_json::Value;

pub(crate) use self::pieces::Spotted;
use self::pieces::forms;

/// What stands for a secret.
const MARK: &str = "[redacted]";

/// Shorter values are not looked for: they would be found in words.
const SHORTEST: usize = 8;

/// Finds secrets in texts and puts `[redacted]` in their place.
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
    known: Option<Arc<Known>>,
}

/// The secrets that are known, and how they are found.
struct Known {
    /// Each secret, its lines, and how these are written with escapes.
    secrets: Vec<String>,
    finder: AhoCorasick,
    /// Those of which pieces are looked for.
    in_pieces: Vec<String>,
    /// Finds the beginnings and the ends of secrets that are left at cuts.
    ends: AhoCorasick,
    /// The bytes of the longest.
    longest: usize,
}

impl Redactor {
    /// Knows these values, where they have at least eight bytes, each line of one that has
    /// several, and all shapes.
    #[must_use]
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets: Vec<String> = secrets
            .into_iter()
            .flat_map(|secret| with_lines(secret.as_ref()))
            // One that is part of the mark would be found again in what was redacted.
            .filter(|secret| secret.len() >= SHORTEST && !MARK.contains(secret.as_str()))
            .flat_map(|secret| forms(&secret))
            .collect();
        let Some(longest) = secrets.iter().map(String::len).max() else { return Self::default() };
        let in_pieces = secrets.iter().filter(|secret| pieces::is_in_pieces(secret));
        let in_pieces: Vec<String> = in_pieces.cloned().collect();
        let ends = in_pieces.iter().flat_map(|secret| pieces::ends(secret));
        let (ends, finder) = (AhoCorasick::new(ends), AhoCorasick::new(&secrets));
        let few = "the secrets of a host are less than a gigabyte";
        let (ends, finder) = (ends.expect(few), finder.expect(few));
        Self { known: Some(Arc::new(Known { secrets, finder, in_pieces, ends, longest })) }
    }

    /// Knows the values of environment variables whose names sound secret, such as
    /// `API_TOKEN`, and all shapes.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new(secrets_among(std::env::vars_os()))
    }

    /// Knows these values too.
    #[cfg(feature = "mcp")]
    pub(crate) fn from_env_and<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let given = secrets.into_iter().map(|secret| secret.as_ref().to_owned());
        Self::new(secrets_among(std::env::vars_os()).into_iter().chain(given))
    }

    /// `text` with its secrets replaced; borrowed when there are none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.found(text) {
            found if found.is_empty() => Cow::Borrowed(text),
            found => Cow::Owned(marked(text, found)),
        }
    }

    /// Where in `text` secrets are, in no order. They may overlap; of each, nothing may be left.
    fn found(&self, text: &str) -> Vec<Range<usize>> {
        shapes(text).chain(self.known_in(text)).collect()
    }

    /// Where in `text` secrets are that are known by their values.
    fn known_in<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        let known = self.known.iter();
        let known = known.flat_map(move |known| known.finder.find_overlapping_iter(text));
        known.map(|found| found.range())
    }

    /// Replaces the secrets in `text`.
    pub(crate) fn scrub(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Replaces the secrets in every text of `value`, and every text that stands under a
    /// key such as `password`.
    pub fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.scrub(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(key, mut value)| {
                        if is_secret_key(&key) {
                            mask(&mut value);
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

/// `text` with a mark for each of the `secrets` that are in it, and for those that overlap one.
fn marked(text: &str, mut secrets: Vec<Range<usize>>) -> String {
    secrets.sort_unstable_by_key(|found| found.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Range { start, end } in secrets {
        if start >= done {
            out.push_str(&text[done..start]);
            out.push_str(MARK);
        }
        done = done.max(end);
    }
    out.push_str(&text[done..]);
    out
}

/// A secret and its lines: a diff, or a program that numbers lines, has something before each.
fn with_lines(secret: &str) -> Vec<String> {
    let (whole, lines) = (secret.trim(), secret.trim().lines().map(str::trim));
    std::iter::once(whole).chain(lines.filter(|line| *line != whole)).map(str::to_owned).collect()
}

/// The secrets themselves are not for a log.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.as_ref().map_or(0, |known| known.secrets.len());
        f.debug_struct("Redactor").field("known", &known).finish()
    }
}

/// Replaces every text of a value that is a secret as a whole.
fn mask(value: &mut Value) {
    match value {
        Value::String(text) if !text.is_empty() => MARK.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

/// Whether what stands under this key is a secret, whatever it looks like.
pub(crate) fn is_secret_key(key: &str) -> bool {
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

/// The values of variables that sound secret.
fn secrets_among(vars: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    vars.filter(|(name, _)| name.to_str().is_some_and(sounds_secret))
        .filter_map(|(_, value)| value.into_string().ok())
        .collect()
}

fn sounds_secret(name: &str) -> bool {
    const WORDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE", "PRIVATE"];
    // Who wrote a commit is no secret, and would be found everywhere.
    let name = name.to_ascii_uppercase().replace("AUTHOR_", "_");
    WORDS.iter().any(|word| name.contains(word))
}

/// Where in `text` something has the shape of a secret.
fn shapes(text: &str) -> impl Iterator<Item = Range<usize>> {
    SHAPES.captures_iter(text).filter_map(|found| secret_part(&found))
}

/// Every shape in one pattern, so that a text is walked once. Word boundaries are those of
/// ASCII: those of Unicode make the walk many times slower.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)
        # A header, as it is sent or as a program writes it down.
        (?i:authorization ["']? \s* [:=] \s* ["']?
            (?: basic | bearer | digest | negotiate | token | apikey ) \s+)
            (?<header> [A-Za-z0-9._~+/=-]+ )
        | (?i:(?-u:\b) bearer \s+ ) (?<bearer> [A-Za-z0-9._~+/=-]{16,} )
        # The user and the password of an address.
        | :// (?<user> [^\s/?\#"'`:]* : [^\s/?\#"'`]* ) @
        # Tokens that say by their first letters what they are.
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
        # A private key, also one that was cut or whose line ends are escapes.
        | (?<pem> -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY-----
            (?: [A-Za-z0-9+/=\s\\:,.-]*? -----END\ [A-Z0-9\ ]*PRIVATE\ KEY-----
              | [A-Za-z0-9+/=\s\\]{40,} ) )
        "#,
    )
    .expect("the pattern is fixed")
});

/// The part of a match that is secret, unless it only looks like one.
fn secret_part(found: &Captures<'_>) -> Option<Range<usize>> {
    if let Some(certain) = found.name("header").or_else(|| found.name("pem")) {
        return Some(certain.range());
    }
    if let Some(user) = found.name("user") {
        // `https://{user}:{password}@host` is code that makes an address.
        return (!user.as_str().contains(['{', '}', '<', '>'])).then(|| user.range());
    }
    let token = found.name("bearer").or_else(|| found.name("token"))?;
    // Random text has digits; names such as `sk-loading-spinner-outer` have none.
    token.as_str().bytes().any(|byte| byte.is_ascii_digit()).then(|| token.range())
}

#[cfg(test)]
mod tests;
