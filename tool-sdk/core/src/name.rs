//! Validated tool names, and glob patterns for them.
//!
//! **Invariant:** a [`ToolName`] is valid in a URL, a file name and a provider request without
//! further escaping.

use std::borrow::{Borrow, Cow};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a tool: 1 to 64 characters of `A-Z a-z 0-9 _ -`, starting with a letter or `_`.
///
/// Every model provider and the Model Context Protocol accept such names.
///
/// # Examples
///
/// ```
/// use tool_sdk::ToolName;
///
/// assert_eq!(ToolName::new("read_page")?.as_str(), "read_page");
/// assert!(ToolName::new("read file").is_err());
/// # Ok::<(), tool_sdk::InvalidToolName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(Cow<'static, str>);

impl ToolName {
    /// The maximum length in bytes.
    pub const MAX: usize = 64;

    /// Validates `name`.
    ///
    /// # Errors
    ///
    /// Fails when `name` is empty, too long, or contains another character.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Result<Self, InvalidToolName> {
        let name = name.into();
        if is_valid(name.as_bytes()) {
            Ok(Self(name))
        } else {
            Err(InvalidToolName { name: name.chars().take(80).collect() })
        }
    }

    /// Creates a name from a string literal.
    ///
    /// # Panics
    ///
    /// Panics, at compile time when used in a constant, when `name` is not valid.
    #[must_use]
    pub const fn from_static(name: &'static str) -> Self {
        assert!(
            is_valid(name.as_bytes()),
            "a tool's name must be 1 to 64 of A-Z a-z 0-9 _ - and start with a letter or _"
        );
        Self(Cow::Borrowed(name))
    }

    /// Returns the name as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const fn is_valid(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > ToolName::MAX {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        let ok = match name[at] {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => true,
            b'0'..=b'9' | b'-' => at > 0,
            _ => false,
        };
        if !ok {
            return false;
        }
        at += 1;
    }
    true
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ToolName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for ToolName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for ToolName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0.into_owned()
    }
}

impl TryFrom<String> for ToolName {
    type Error = InvalidToolName;

    fn try_from(name: String) -> Result<Self, InvalidToolName> {
        Self::new(name)
    }
}

/// The error for a string that is not a valid tool name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a tool name: 1 to 64 of A-Z a-z 0-9 _ - are allowed, starting with a letter or _"
)]
pub struct InvalidToolName {
    name: String,
}

/// Returns whether `name` matches a glob pattern, in which `*` stands for any text and `?` for one
/// character.
pub fn matches_glob(pattern: &str, name: &str) -> bool {
    matches_glob_by(pattern, name, |wanted, found| wanted == found)
}

/// Like [`matches_glob`], but ignores ASCII case.
pub(crate) fn matches_glob_ignore_case(pattern: &str, name: &str) -> bool {
    matches_glob_by(pattern, name, |wanted, found| wanted.eq_ignore_ascii_case(&found))
}

fn matches_glob_by(pattern: &str, name: &str, same: impl Fn(char, char) -> bool) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // The backtracking position: the state after the last `*`.
    let mut retry = None;
    while let Some(next) = name.clone().next() {
        let mut rest = pattern.clone();
        match rest.next() {
            Some('*') => {
                retry = Some((rest.clone(), name.clone()));
                pattern = rest;
            }
            Some(c) if c == '?' || same(c, next) => {
                pattern = rest;
                name.next();
            }
            _ => match &mut retry {
                Some((after, from)) => {
                    from.next();
                    (pattern, name) = (after.clone(), from.clone());
                }
                None => return false,
            },
        }
    }
    pattern.all(|c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_length_and_characters() {
        for good in ["a", "_x", "look_up", "mcp__server__tool", "A-1", &"x".repeat(64)] {
            assert!(ToolName::new(good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", "1a", "-a", "a b", "a.b", "é", &"x".repeat(65)] {
            assert!(ToolName::new(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in [
            ("*", "x"),
            ("look_*", "look_up"),
            ("*_up", "look_up"),
            ("r?ad*", "read"),
            ("a*b*c", "aXbYbc"),
            ("*?ä", "öäöä"),
            ("a**", "a"),
        ] {
            assert!(matches_glob(pattern, name), "{pattern} {name}");
            assert!(
                matches_glob_ignore_case(&pattern.to_ascii_uppercase(), name),
                "{pattern} {name}"
            );
        }
        for (pattern, name) in [("read", "look_up"), ("*x", "read"), ("?", ""), ("a*b", "abc")] {
            assert!(!matches_glob(pattern, name), "{pattern} {name}");
            assert!(!matches_glob_ignore_case(pattern, name), "{pattern} {name}");
        }
    }
}
