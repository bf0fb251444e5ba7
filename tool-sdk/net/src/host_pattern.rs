//! Patterns of hosts: `docs.rs`, `*.example.com`, `localhost:8080`, `[::1]`.
//!
//! **Invariant:** a wildcard ends at a dot: `*.example.com` matches neither `example.com` nor
//! `badexample.com`.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// A host, or all below a domain, with or without a port.
///
/// # Examples
///
/// ```
/// use tool_sdk::net::{HostPattern, Url};
///
/// let pattern: HostPattern = "*.Example.com".parse()?;
/// assert!(pattern.matches(&Url::parse("https://docs.example.com/a")?));
/// assert!(!pattern.matches(&Url::parse("https://badexample.com/")?));
/// assert!(!pattern.matches(&Url::parse("https://example.com.evil.test/")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    /// As URLs have it: lower case, in ASCII, an IPv6 address in brackets.
    host: String,
    is_wildcard: bool,
    port: Option<u16>,
}

impl HostPattern {
    /// Returns whether the host of `url` matches, and its port, if the pattern has one.
    #[must_use]
    pub fn matches(&self, url: &Url) -> bool {
        let is_port = self.port.is_none_or(|port| url.port_or_known_default() == Some(port));
        is_port && url.host_str().is_some_and(|host| self.matches_host(host))
    }

    /// Returns whether `host` matches, with any port.
    #[must_use]
    pub fn matches_host(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self.is_wildcard {
            true => host
                .strip_suffix(&*self.host)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|rest| !rest.is_empty()),
            false => host == self.host,
        }
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        let invalid = |why: &str| InvalidHostPattern(format!("`{}`: {why}", text.escape_debug()));
        if text.contains('/') {
            return Err(invalid("a host has no scheme and no path, as in `localhost:8080`"));
        }
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address are inside of brackets.
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().map_err(|_| invalid("the port is not a number"))?;
                (host, Some(port))
            }
            _ => (text, None),
        };
        let (host, is_wildcard) = match host.strip_prefix("*.") {
            Some(domain) => (domain, true),
            None => (host, false),
        };
        if host.contains('*') {
            return Err(invalid("`*` must be at the start, before a dot"));
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        match Host::parse(host) {
            Ok(Host::Domain(domain)) => Ok(Self { host: domain, is_wildcard, port }),
            Ok(_) if is_wildcard => Err(invalid("nothing is below an address")),
            Ok(address) => Ok(Self { host: address.to_string(), is_wildcard, port }),
            Err(_) => Err(invalid("it is not a host; write an IPv6 address in brackets")),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_wildcard { "*." } else { "" };
        write!(f, "{star}{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A text that is not a pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidHostPattern(String);

impl fmt::Display for InvalidHostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidHostPattern {}

#[cfg(test)]
mod tests {
    use super::*;

    // WF7
    #[test]
    fn patterns_match_whole_labels() {
        for (pattern, url, expected) in [
            ("example.com", "https://example.com/", true),
            ("Example.COM.", "https://example.com./", true),
            ("example.com", "https://www.example.com/", false),
            ("example.com", "https://example.com.evil.test/", false),
            ("*.example.com", "https://a.b.example.com:99/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://badexample.com/", false),
            ("b\u{fc}cher.example", "https://xn--bcher-kva.example/", true),
            ("localhost:8080", "http://localhost:8080/", true),
            ("localhost:8080", "http://localhost:80/", false),
            ("localhost:80", "http://localhost/", true),
            ("127.0.0.1", "http://0x7f.1/", true),
            ("[::1]:80", "http://[0:0:0:0:0:0:0:1]/", true),
            ("[::1]", "http://[::2]/", false),
        ] {
            let parsed: HostPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(&Url::parse(url).unwrap()), expected, "{pattern} {url}");
        }
    }

    #[test]
    fn what_is_no_host_says_why() {
        for (text, why) in [
            ("https://a.example", "no scheme"),
            ("a.example/x", "no path"),
            ("a*.example", "must be at the start"),
            ("*.10.0.0.1", "below an address"),
            ("a.example:http", "not a number"),
            ("::1", "in brackets"),
            ("", "not a host"),
            ("a b", "not a host"),
        ] {
            let error = text.parse::<HostPattern>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!("*.A.example:1".parse::<HostPattern>().unwrap().to_string(), "*.a.example:1");
    }
}
