//! Who may use an HTTP server, and when it ends.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tool_sdk_core::Principal;

use super::{AccessTokenIssuer, Token, TokenIdentity, TokenScopes, TokenVerifier};

/// The options of an HTTP server: who may use it.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{HttpOptions, Token};
///
/// let token = Token::random()?;
/// let http = HttpOptions::new(token).allow_host("tools.example.com").allow_origin("https://example.com");
/// # let _ = http;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct HttpOptions {
    /// The tokens and their owners; the token of the start is first.
    pub(super) tokens: Vec<(Token, TokenIdentity)>,
    pub(super) verifier: Option<Arc<dyn TokenVerifier>>,
    /// The authorization server whose tokens are accepted.
    pub(super) issuer: Option<AccessTokenIssuer>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) max_connections: usize,
    pub(super) shutdown: CancellationToken,
}

impl HttpOptions {
    /// The default of [`max_connections`](Self::max_connections).
    pub const DEFAULT_MAX_CONNECTIONS: usize = 128;

    /// Accepts requests with the token that name a local host, with the port if there is one. The
    /// token has the scope `tools` only, so that a client that calls tools cannot approve calls.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self {
            tokens: vec![(token, TokenIdentity::default())],
            verifier: None,
            issuer: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            max_connections: Self::DEFAULT_MAX_CONNECTIONS,
            shutdown: CancellationToken::new(),
        }
    }

    /// Accepts a principal with a token of its own, which has the scope `tools`.
    #[must_use]
    pub fn with_principal(self, token: Token, principal: Principal) -> Self {
        self.with_principal_scopes(token, principal, TokenScopes::default())
    }

    /// Accepts a principal with a token of these scopes.
    #[must_use]
    pub fn with_principal_scopes(
        mut self,
        token: Token,
        principal: Principal,
        scopes: impl Into<TokenScopes>,
    ) -> Self {
        let scopes = scopes.into();
        self.tokens.push((token, TokenIdentity { principal: Some(principal), scopes }));
        self
    }

    /// Accepts a further token of the server's owner, with these scopes.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::http::{HttpOptions, Token, TokenScope};
    ///
    /// // The first token is for the client that calls tools, the second for the person who approves.
    /// let options = HttpOptions::new(Token::random()?)
    ///     .with_token(Token::random()?, TokenScope::Approvals);
    /// # let _ = options;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn with_token(mut self, token: Token, scopes: impl Into<TokenScopes>) -> Self {
        let scopes = scopes.into();
        self.tokens.push((token, TokenIdentity { principal: None, scopes }));
        self
    }

    /// Accepts tokens that `verifier` knows, beside those of the options.
    #[must_use]
    pub fn with_token_verifier(mut self, verifier: impl TokenVerifier) -> Self {
        self.verifier = Some(Arc::new(verifier));
        self
    }

    /// Accepts access tokens of an authorization server, beside the tokens of the options. Clients
    /// find it by the metadata at `/.well-known/oauth-protected-resource`, and by the challenge in a
    /// response that refuses a request.
    #[must_use]
    pub fn with_access_tokens(mut self, issuer: AccessTokenIssuer) -> Self {
        self.issuer = Some(issuer);
        self
    }

    /// Whether several principals use the server.
    pub(super) fn has_principals(&self) -> bool {
        self.issuer.is_some()
            || self.tokens.iter().any(|(_, identity)| identity.principal.is_some())
    }

    /// Accepts requests for this host, as `HOST` or `HOST:PORT`.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Accepts scripts of this web site, such as `https://example.com`.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets the maximum number of connections of each principal, 128 by default. A further one
    /// closes an idle connection of the same principal; if all of them have running requests, it is
    /// refused with status 503 and `Retry-After`.
    #[must_use]
    pub fn max_connections(mut self, max: usize) -> Self {
        self.max_connections = max;
        self
    }

    /// Shuts the server down when `token` is cancelled: it accepts no further connection, running
    /// requests get five seconds to end, and then serving ends without an error.
    #[must_use]
    pub fn shut_down_on(mut self, token: CancellationToken) -> Self {
        self.shutdown = token;
        self
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("tokens", &self.tokens)
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}
