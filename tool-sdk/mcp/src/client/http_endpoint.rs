//! The HTTP endpoint of a server: its URL, headers and token.
//!
//! **Invariant:** `Display` and `Debug` show no secret: query values, header values and the token
//! are redacted.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::Url;
use tool_sdk_net::{has_credentials, is_loopback_url};

use super::authorization::OAuthSettings;
use super::config::InvalidServerConfig;

/// Replaces each value that may be a secret.
const REDACTED: &str = "[hidden]";

/// The URL of a server, and the headers and the token that are sent with every request.
#[derive(Clone)]
#[must_use]
pub struct HttpEndpoint {
    pub(super) url: Url,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
    pub(super) bearer_token: Option<String>,
    pub(super) oauth: OAuthSettings,
}

impl HttpEndpoint {
    /// Returns the endpoint at `url`, which must use `https`; `http` is accepted for loopback hosts.
    ///
    /// # Errors
    ///
    /// Fails when `url` is not a URL, has another scheme, contains credentials, or is plain `http`
    /// to another machine.
    pub fn new(url: &str) -> Result<Self, InvalidServerConfig> {
        let wrong = |problem: &str| InvalidServerConfig::new("the URL", &redact_url(url), problem);
        let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        match parsed.scheme() {
            "https" => {}
            "http" if is_loopback_url(&parsed) => {}
            "http" => return Err(wrong("plain http is allowed for this machine only; use https")),
            _ => return Err(wrong("it must start with https://")),
        }
        if has_credentials(&parsed) {
            return Err(wrong("it must not contain credentials; use a header or a bearer token"));
        }
        let oauth = OAuthSettings::default();
        Ok(Self { url: parsed, headers: HashMap::new(), bearer_token: None, oauth })
    }

    /// Adds a header that is sent with every request.
    ///
    /// # Errors
    ///
    /// Fails when the name or the value is not valid in an HTTP header.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, InvalidServerConfig> {
        // The value may be a secret, so the error does not repeat it.
        let wrong = || {
            InvalidServerConfig::new("the header", name, "its name or value is not valid in HTTP")
        };
        let header = name.to_ascii_lowercase().parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// Sets the bearer token that is sent with every request, to this server only.
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        self.bearer_token = Some(token.into());
        self
    }

    /// Sets how this program identifies itself when the user authorizes the server. It has no effect
    /// beside a bearer token or an `Authorization` header.
    pub fn oauth(mut self, settings: OAuthSettings) -> Self {
        self.oauth = settings;
        self
    }
}

impl HttpEndpoint {
    /// Returns the names of the configured headers.
    pub(super) fn header_names(&self) -> BTreeSet<&str> {
        self.headers.keys().map(HeaderName::as_str).collect()
    }

    /// Whether the host configured what authorizes the requests.
    pub(super) fn has_own_token(&self) -> bool {
        self.bearer_token.is_some() || self.headers.contains_key(&AUTHORIZATION)
    }

    /// Whether the host is this machine.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback_url(&self.url)
    }

    /// Returns `text` with every occurrence of this URL redacted.
    pub(super) fn redact_url_in(&self, text: &str) -> String {
        text.replace(self.url.as_str(), &self.to_string())
    }

    /// Returns every value that may be secret: header values, the token and query values.
    pub(super) fn secret_values(&self) -> Vec<String> {
        let headers = self.headers.values().filter_map(|value| value.to_str().ok());
        let query = self.url.query_pairs().map(|(_, value)| value.into_owned());
        let tokens = self.bearer_token.clone().into_iter().chain(self.oauth.secret_value());
        headers.map(str::to_owned).chain(tokens).chain(query).collect()
    }
}

/// Redacts the values of the query, because any of them may be a secret.
impl fmt::Display for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_url(self.url.as_str()))
    }
}

/// Shows the redacted URL and the names of the headers.
impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEndpoint")
            .field("url", &self.to_string())
            .field("headers", &self.header_names())
            .finish_non_exhaustive()
    }
}

/// Redacts credentials, query values and the fragment of a URL; `url` may be malformed.
fn redact_url(url: &str) -> String {
    let parsed = Url::parse(url);
    let url = parsed.as_ref().map_or(url, Url::as_str);
    let url = url.split('#').next().unwrap_or_default();
    let (place, query) = url.split_once('?').map_or((url, None), |(a, b)| (a, Some(b)));
    let mut shown = match &parsed {
        Ok(parsed) if parsed.has_authority() => {
            let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = parsed.host_str().unwrap_or_default();
            format!("{}://{host}{port}{}", parsed.scheme(), parsed.path())
        }
        // Everything before the last `@` could be credentials.
        _ => place.rsplit('@').next().unwrap_or_default().to_owned(),
    };
    for (nth, pair) in query.iter().flat_map(|query| query.split('&')).enumerate() {
        shown.push(if nth == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) => shown.push_str(&format!("{name}={REDACTED}")),
            None => shown.push_str(REDACTED),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    // MC8
    #[test]
    fn allows_plain_http_for_loopback_only() {
        for good in [
            "https://example.com/mcp",
            "http://localhost:8000/mcp",
            "http://127.0.0.1/mcp",
            "http://[::1]:80/mcp",
        ] {
            assert!(HttpEndpoint::new(good).is_ok(), "{good}");
        }
        for bad in [
            "http://example.com/mcp",
            "http://localhost.example.com/",
            "http://169.254.169.254/latest/meta-data",
            "ftp://localhost/",
            "https://ada:secret@example.com/",
            "file:///etc/passwd",
            "example.com",
        ] {
            assert!(HttpEndpoint::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn redacts_secrets_in_urls() {
        for (url, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            (
                "https://a.example:1/x?key=s3cret&b=2",
                "https://a.example:1/x?key=[hidden]&b=[hidden]",
            ),
            ("https://a/?s3cret", "https://a/?[hidden]"),
            ("https://a/#s3cret", "https://a/"),
            ("https://ada:s3cret@a/x@y", "https://a/x@y"),
            ("ada:s3cret@a?k=s3cret", "a?k=[hidden]"),
            ("https://ada:s3/cret@a/x", "a/x"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
        for bad in ["https://ada:s3cret@a/?k=s3cret", "http://a.example/?k=s3cret", "x?k=s3cret"] {
            let error = HttpEndpoint::new(bad).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
