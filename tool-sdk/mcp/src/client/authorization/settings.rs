//! What the host configures for the authorization of one server.
//!
//! **Invariant:** `Debug` shows no client secret.

use std::fmt;

use tool_sdk_net::{Url, has_credentials, is_loopback_url};

use crate::client::config::InvalidServerConfig;

/// How this program identifies itself to the authorization server of a server. By default it is
/// registered dynamically.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{HttpEndpoint, OAuthSettings, ServerConfig};
///
/// let oauth = OAuthSettings::default()
///     .client_id("my-client")
///     .issuer("https://login.example.com")?
///     .scopes(["notes:read"]);
/// let notes = HttpEndpoint::new("https://notes.example.com/mcp")?.oauth(oauth);
/// let notes = ServerConfig::new("notes", notes)?;
///
/// assert!(OAuthSettings::default().client_metadata_url("https://example.com").is_err(), "it has no path");
/// # Ok::<(), tool_sdk::mcp::InvalidServerConfig>(())
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct OAuthSettings {
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) client_metadata_url: Option<String>,
    pub(super) client_name: Option<String>,
    pub(super) issuer: Option<Url>,
    /// The issuer as it is written, because issuers are compared as texts.
    pub(super) issuer_text: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) redirect_port: Option<u16>,
}

impl OAuthSettings {
    /// Sets the id of a client that was registered by hand.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// Sets the secret of the client with [`client_id`](Self::client_id). A login fails without an
    /// [`issuer`](Self::issuer), because otherwise the server would name the authorization server
    /// that gets the secret.
    pub fn client_secret(mut self, secret: impl Into<String>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Sets the URL of a client-id metadata document, which is then the client id where the
    /// authorization server supports such documents.
    ///
    /// # Errors
    ///
    /// Fails when `url` is not an `https` URL with a path.
    pub fn client_metadata_url(mut self, url: &str) -> Result<Self, InvalidServerConfig> {
        let subject = "the client metadata URL";
        let parsed = parse_https_url(subject, url)?;
        if parsed.path() == "/" || parsed.fragment().is_some() {
            let problem = "it must have a path and no fragment";
            return Err(InvalidServerConfig::new(subject, url, problem));
        }
        // The text is the client id, so it must stay as it is in the document.
        self.client_metadata_url = Some(url.to_owned());
        Ok(self)
    }

    /// Sets the name under which this program is registered, for the user's consent; `tool-sdk` by
    /// default.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Sets the only authorization server that is used, by its issuer identifier. Its host is
    /// reached also when it is in the user's own network.
    ///
    /// # Errors
    ///
    /// Fails when `issuer` is not an `https` URL, or a `http` URL of this machine.
    pub fn issuer(mut self, issuer: &str) -> Result<Self, InvalidServerConfig> {
        self.issuer = Some(parse_https_url("the issuer", issuer)?);
        self.issuer_text = Some(issuer.to_owned());
        Ok(self)
    }

    /// Adds scopes that are always requested.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Sets the port of the redirect URI on `127.0.0.1`, for authorization servers that compare it;
    /// a free port by default.
    pub fn redirect_port(mut self, port: u16) -> Self {
        self.redirect_port = Some(port);
        self
    }

    /// Returns the configured secret, to redact it.
    pub(crate) fn secret_value(&self) -> Option<String> {
        self.client_secret.clone()
    }
}

impl fmt::Debug for OAuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthSettings")
            .field("client_id", &self.client_id)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("issuer", &self.issuer_text)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Parses a URL that must be encrypted, unless it is of this machine.
fn parse_https_url(subject: &'static str, text: &str) -> Result<Url, InvalidServerConfig> {
    let invalid = |problem: &str| InvalidServerConfig::new(subject, text, problem);
    let url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    match url.scheme() {
        _ if has_credentials(&url) => Err(invalid("it must not contain credentials")),
        "https" => Ok(url),
        "http" if is_loopback_url(&url) => Ok(url),
        _ => Err(invalid("it must start with https://")),
    }
}
