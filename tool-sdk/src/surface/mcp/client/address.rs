//! A place on the network, and what is sent there.
//!
//! **Invariant:** what is shown of it holds no secret: neither the values of its query nor
//! those of its headers, nor its token.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;

use hyper::header::{HeaderName, HeaderValue};
use reqwest::Url;

use super::upstream::InvalidUpstream;

/// What stands for a value that may be a secret.
const HIDDEN: &str = "[hidden]";

/// A place on the network, and what is sent there with every message.
#[derive(Clone)]
#[must_use]
pub struct Address {
    pub(super) url: Url,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
    pub(super) bearer: Option<String>,
}

impl Address {
    /// A server at `url`; anything but this machine is talked to over TLS.
    ///
    /// # Errors
    ///
    /// Fails when `url` is none, or when what is sent there could be read by others.
    pub fn new(url: &str) -> Result<Self, InvalidUpstream> {
        let wrong = |problem: &str| InvalidUpstream::new("the address", &masked(url), problem);
        let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        match parsed.scheme() {
            "https" => {}
            "http" if is_loopback(&parsed) => {}
            "http" => return Err(wrong("other machines are talked to over https")),
            _ => return Err(wrong("it must start with https://")),
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong("a password belongs into a header, and not into the address"));
        }
        Ok(Self { url: parsed, headers: HashMap::new(), bearer: None })
    }

    /// Sends a header with every message.
    ///
    /// # Errors
    ///
    /// Fails when that is no header.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, InvalidUpstream> {
        // The value may be a secret, so that it is not repeated.
        let wrong = || InvalidUpstream::new("the header", name, "it is none");
        let header = name.to_ascii_lowercase().parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// Sends a token with every message, to this server and to no other.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }
}

impl Address {
    /// The names of what is sent with every message.
    pub(super) fn header_names(&self) -> BTreeSet<&str> {
        self.headers.keys().map(HeaderName::as_str).collect()
    }

    /// Whether it is on this machine.
    pub(super) fn is_local(&self) -> bool {
        is_loopback(&self.url)
    }

    /// `text` with this address in it as it may be shown.
    pub(super) fn hide_in(&self, text: &str) -> String {
        text.replace(self.url.as_str(), &self.to_string())
    }

    /// Everything in it that is not for everybody.
    pub(super) fn secrets(&self) -> Vec<String> {
        let headers = self.headers.values().filter_map(|value| value.to_str().ok());
        let query = self.url.query_pairs().map(|(_, value)| value.into_owned());
        headers.map(str::to_owned).chain(self.bearer.clone()).chain(query).collect()
    }
}

/// Without the values of its query, any of which may be a secret.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(self.url.as_str()))
    }
}

/// As it is displayed, with the names of its headers.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("url", &self.to_string())
            .field("headers", &self.header_names())
            .finish_non_exhaustive()
    }
}

/// An address without what may be a secret in it: who logs in, the values of the query, and
/// what comes after that. It need not be a good one.
fn masked(url: &str) -> String {
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
        // Whatever comes before it could be a password.
        _ => place.rsplit('@').next().unwrap_or_default().to_owned(),
    };
    for (nth, pair) in query.iter().flat_map(|query| query.split('&')).enumerate() {
        shown.push(if nth == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) => shown.push_str(&format!("{name}={HIDDEN}")),
            None => shown.push_str(HIDDEN),
        }
    }
    shown
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    // MC8
    #[test]
    fn only_this_machine_is_talked_to_without_tls() {
        for good in [
            "https://example.com/mcp",
            "http://localhost:8000/mcp",
            "http://127.0.0.1/mcp",
            "http://[::1]:80/mcp",
        ] {
            assert!(Address::new(good).is_ok(), "{good}");
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
            assert!(Address::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
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
            assert_eq!(masked(url), shown);
        }
        for bad in ["https://ada:s3cret@a/?k=s3cret", "http://a.example/?k=s3cret", "x?k=s3cret"] {
            let error = Address::new(bad).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
