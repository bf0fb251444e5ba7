//! The port to the user: shows the URL at which the user authorizes a server.
//!
//! **Invariant:** the URL is `https`, or of this machine; it is data, and no part of a command line.

use thiserror::Error;
use tool_sdk_net::Url;

/// Shows the user where to authorize a server. The command line implements it with a browser.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{AuthorizationPrompt, AuthorizationRequest, PromptFailure};
///
/// /// Prints the URL, and waits for the redirect to this machine.
/// struct PrintedUrl;
///
/// impl AuthorizationPrompt for PrintedUrl {
///     async fn show_url(&self, request: AuthorizationRequest<'_>) -> Result<Option<String>, PromptFailure> {
///         println!("{} asks you to log in: {}", request.server, request.url);
///         Ok(None)
///     }
/// }
/// ```
pub trait AuthorizationPrompt: Sync {
    /// Shows the URL to the user. Returns the address that the browser ended at, if the user pastes
    /// it, or `None` when the redirect to this machine is all that there is to wait for. The future
    /// is dropped when the redirect arrives.
    ///
    /// # Errors
    ///
    /// Fails when the user declines, or when the URL cannot be shown.
    fn show_url(
        &self,
        request: AuthorizationRequest<'_>,
    ) -> impl Future<Output = Result<Option<String>, PromptFailure>> + Send;
}

/// What the user is asked to authorize.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AuthorizationRequest<'a> {
    /// The name of the server in the host's configuration.
    pub server: &'a str,
    /// The authorization server that asks the user.
    pub issuer: &'a str,
    /// The scopes that are requested; none where the authorization server decides.
    pub scopes: &'a [String],
    /// The URL for the user's browser.
    pub url: &'a Url,
    /// Where the browser is sent afterwards: an address of this machine.
    pub redirect_uri: &'a str,
}

/// Why the user did not authorize a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PromptFailure {
    /// The user declined.
    #[error("the authorization was cancelled")]
    Cancelled,
    /// The URL could not be shown.
    #[error("the user cannot be asked: {0}")]
    Unavailable(String),
    /// The user took too long.
    #[error("there was no answer in time; try again")]
    Timeout,
}
