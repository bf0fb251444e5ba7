//! The namespace of workers, and the names that its tools have at a host.
//!
//! A model sees `remote__{namespace}__{tool}`, in characters that every provider accepts. A name
//! that would be too long, or that had to be changed, ends in a part of its hash.
//!
//! **Invariant:** the namespace comes from the host's configuration, never from a worker.

use std::fmt;
use std::str::FromStr;

use tool_sdk_core::internal::sha256_hex;
use tool_sdk_core::{ToolName, ToolPins};

use crate::error::RemoteError;

/// The prefix of the names of all remote tools.
const REMOTE_PREFIX: &str = "remote__";

/// The longest name of a namespace, in bytes.
const MAX_LEN: usize = 24;

/// How many hexadecimal digits of the hash a name gets.
const HASH_DIGITS: usize = 12;

/// The name of a group of workers, whose tools a host has together.
///
/// # Examples
///
/// ```
/// use tool_sdk::remote::Namespace;
///
/// let namespace: Namespace = "gpu".parse()?;
/// assert_eq!(namespace.as_str(), "gpu");
/// assert!("GPU.pool".parse::<Namespace>().is_err());
/// # Ok::<(), tool_sdk::remote::RemoteError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(String);

impl Namespace {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the prefix of the names and permissions of its tools.
    pub(crate) fn prefix(&self) -> String {
        format!("{REMOTE_PREFIX}{}__", self.0.replace('-', "_"))
    }

    /// Returns the name that a tool of the namespace has at a host.
    pub(crate) fn tool_name(&self, tool: &ToolName) -> Option<ToolName> {
        let plain = tool.as_str().replace('-', "_");
        let mut name = self.prefix() + &plain;
        if plain != tool.as_str() || name.len() > ToolName::MAX {
            name.truncate(ToolName::MAX - HASH_DIGITS - 1);
            let hash = sha256_hex([self.as_str(), tool.as_str()].join("\0"));
            name = format!("{name}_{}", &hash[..HASH_DIGITS]);
        }
        ToolName::new(name).ok()
    }
}

impl FromStr for Namespace {
    type Err = RemoteError;

    fn from_str(name: &str) -> Result<Self, RemoteError> {
        let plain =
            |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-');
        let starts = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        let ends = !name.ends_with(['_', '-']) && !name.replace('-', "_").contains("__");
        if name.len() <= MAX_LEN && starts && ends && name.bytes().all(plain) {
            return Ok(Self(name.to_owned()));
        }
        let shown: String = name.escape_debug().take(80).collect();
        Err(RemoteError::Config(format!(
            "`{shown}` is not a namespace: it must be 1 to {MAX_LEN} of a-z 0-9 _ -, start with a \
             letter or digit, and not have two of _ - in a row or at its end"
        )))
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the namespace in the name that a tool has at a host, as far as it can be told: `-` is
/// written as `_`.
#[must_use]
pub fn parse_namespace(name: &str) -> Option<&str> {
    Some(name.strip_prefix(REMOTE_PREFIX)?.split_once("__")?.0)
}

/// Returns the prefix of the names and permissions of a namespace's tools.
#[must_use]
pub fn name_prefix(namespace: &Namespace) -> String {
    namespace.prefix()
}

/// Whether an approval of the tool that models call `name` is void, because the tool changed since.
#[must_use]
pub fn is_approval_void(pins: &ToolPins, name: &str, definition: &str) -> bool {
    let is_tool = |namespace: &str, tool: &str| {
        let (Ok(namespace), Ok(tool)) = (namespace.parse(), ToolName::new(tool.to_owned())) else {
            return false;
        };
        Namespace::tool_name(&namespace, &tool).is_some_and(|own| own == *name)
    };
    pins.is_approval_void(is_tool, definition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_namespaces() {
        for good in ["a", "gpu-pool", "0", "a_b", &"a".repeat(24)] {
            assert!(good.parse::<Namespace>().is_ok(), "{good}");
        }
        for bad in ["", "A", "a.b", "a*", ">", "a b", "a__b", "a-", "_a", "ä", &"a".repeat(25)] {
            assert!(bad.parse::<Namespace>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_valid_and_differ() {
        let namespace: Namespace = "gpu-pool".parse().unwrap();
        let name = |tool: &str| {
            let tool = ToolName::new(tool.to_owned()).unwrap();
            namespace.tool_name(&tool).unwrap().to_string()
        };
        assert_eq!(name("look_up"), "remote__gpu_pool__look_up");
        assert!(name("look-up").starts_with("remote__gpu_pool__look_up_"));
        let long = name(&"x".repeat(64));
        assert_eq!(long.len(), 64);
        assert_ne!(long, name(&"x".repeat(63)));
        assert_eq!(parse_namespace(&name("look_up")), Some("gpu_pool"));
    }
}
