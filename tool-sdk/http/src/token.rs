//! Bearer tokens.

use std::fmt;
use std::io;
use std::str::FromStr;

use hmac_sha256::Hash;
use subtle::ConstantTimeEq as _;

/// A bearer token.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::Token;
///
/// let token = Token::new("correct-horse-battery-staple-0123456789")?;
/// assert_eq!(format!("{token:?}"), "Token(..)");
/// assert!(Token::new("short").is_err());
/// # Ok::<(), tool_sdk::mcp::InvalidToken>(())
/// ```
#[derive(Clone)]
pub struct Token(String);

/// What is compared in place of a secret: it is as long for all of them, and how far two are
/// equal tells nothing about the secrets.
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(super) fn new(secret: &str) -> Self {
        Self(Hash::hash(secret.as_bytes()))
    }

    /// Whether both are of one secret; how long the answer takes tells nothing about it.
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// Never shows anything of the secret.
impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// A text that is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has at least {} visible ASCII characters and no spaces", Token::MIN_LENGTH)]
#[non_exhaustive]
pub struct InvalidToken;

impl Token {
    /// A shorter one could be guessed.
    const MIN_LENGTH: usize = 32;

    /// Creates a token from the secret that clients send.
    ///
    /// # Errors
    ///
    /// Fails when the secret has fewer than 32 characters, spaces, or characters that are not
    /// visible ASCII.
    pub fn new(secret: impl Into<String>) -> Result<Self, InvalidToken> {
        let secret = secret.into();
        let fits = secret.len() >= Self::MIN_LENGTH && secret.bytes().all(|b| b.is_ascii_graphic());
        if fits { Ok(Self(secret)) } else { Err(InvalidToken) }
    }

    /// A new one, of 32 random bytes.
    ///
    /// # Errors
    ///
    /// Fails when the system has no random numbers.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The secret itself, to hand it to those who may enter.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = InvalidToken;

    fn from_str(secret: &str) -> Result<Self, InvalidToken> {
        Self::new(secret)
    }
}

/// Never shows the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}
