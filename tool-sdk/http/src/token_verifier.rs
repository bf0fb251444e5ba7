//! Tokens that the host verifies itself.

use tool_sdk_core::Principal;

use super::TokenScopes;

/// Who sends a request, and what the token of the request allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "hosts construct it")]
pub struct TokenIdentity {
    /// The principal; `None` for the owner of the server.
    pub principal: Option<Principal>,
    /// What the token allows.
    pub scopes: TokenScopes,
}

/// Verifies tokens that the options of the server do not list, for hosts that keep tokens
/// elsewhere.
///
/// # Examples
///
/// ```
/// use tool_sdk::Principal;
/// use tool_sdk::http::{HttpOptions, Token, TokenIdentity, TokenScope, TokenVerifier};
///
/// struct Directory;
///
/// impl TokenVerifier for Directory {
///     fn verify_token(&self, token: &str) -> Option<TokenIdentity> {
///         // A real one compares digests, in constant time.
///         (token == "ada-correct-horse-battery-staple-01").then(|| TokenIdentity {
///             principal: Some(Principal::new("ada")),
///             scopes: TokenScope::Tools.into(),
///         })
///     }
/// }
///
/// let options = HttpOptions::new(Token::random()?).with_token_verifier(Directory);
/// # let _ = options;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait TokenVerifier: Send + Sync + 'static {
    /// Returns whose token it is; `None` refuses the request. Called for each request whose token
    /// the options do not list, so it must be quick.
    fn verify_token(&self, token: &str) -> Option<TokenIdentity>;

    /// Whether there is a token whose bearer may answer the approval requests of `principal`. If
    /// there is none, calls that need an approval are denied at once, instead of waiting.
    fn has_approver(&self, principal: Option<&Principal>) -> bool {
        let _ = principal;
        false
    }
}
