//! What a token allows its bearer to do.
//!
//! A model that calls tools over HTTP must not answer its own approval requests, so calling and
//! approving are scopes of their own, and a token has only those that it was made with.

use std::fmt;
use std::str::FromStr;

/// One thing that a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TokenScope {
    /// Calling tools, and reading the history and the events of own sessions.
    Tools,
    /// Reading and answering the approval requests of the token's principal.
    Approvals,
    /// Metrics, and the approval requests, events and calls of all principals.
    Administration,
}

impl TokenScope {
    /// All scopes, in declaration order.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Approvals, Self::Administration];

    /// Returns `tools`, `approvals` or `administration`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Approvals => "approvals",
            Self::Administration => "administration",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is `tools`, `approvals` or `administration`")]
#[non_exhaustive]
pub struct UnknownScope;

impl FromStr for TokenScope {
    type Err = UnknownScope;

    fn from_str(name: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name).ok_or(UnknownScope)
    }
}

/// A set of scopes.
///
/// # Examples
///
/// ```
/// use tool_sdk::http::{TokenScope, TokenScopes};
///
/// let scopes = TokenScopes::from_iter([TokenScope::Tools, TokenScope::Approvals]);
/// assert!(scopes.contains(TokenScope::Approvals));
/// assert_eq!(scopes.to_string(), "tools approvals");
/// assert_eq!(TokenScopes::default().to_string(), "tools");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenScopes(u8);

impl TokenScopes {
    /// Whether the set has `scope`.
    #[must_use]
    pub const fn contains(self, scope: TokenScope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns the scopes in declaration order.
    pub fn iter(self) -> impl Iterator<Item = TokenScope> {
        TokenScope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }
}

/// The scope `tools` alone.
impl Default for TokenScopes {
    fn default() -> Self {
        Self(TokenScope::Tools.bit())
    }
}

impl FromIterator<TokenScope> for TokenScopes {
    fn from_iter<I: IntoIterator<Item = TokenScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | scope.bit()))
    }
}

impl From<TokenScope> for TokenScopes {
    fn from(scope: TokenScope) -> Self {
        Self(scope.bit())
    }
}

impl fmt::Display for TokenScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(TokenScope::as_str).collect();
        f.write_str(&names.join(" "))
    }
}

impl fmt::Debug for TokenScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
