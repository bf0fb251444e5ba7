//! Who may use an HTTP server, and when it ends.

use tokio_util::sync::CancellationToken;
use tool_sdk_core::Principal;

use super::Token;

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
#[derive(Clone, Debug)]
pub struct HttpOptions {
    pub(super) token: Token,
    pub(super) principals: Vec<(Token, Principal)>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) max_connections: usize,
    pub(super) shutdown: CancellationToken,
}

impl HttpOptions {
    /// The default of [`max_connections`](Self::max_connections).
    pub const DEFAULT_MAX_CONNECTIONS: usize = 128;

    /// Accepts requests with the token that name a local host, with the port if there is one.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self {
            token,
            principals: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            max_connections: Self::DEFAULT_MAX_CONNECTIONS,
            shutdown: CancellationToken::new(),
        }
    }

    /// Accepts a principal with a token of its own.
    #[must_use]
    pub fn with_principal(mut self, token: Token, principal: Principal) -> Self {
        self.principals.push((token, principal));
        self
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
