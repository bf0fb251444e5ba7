//! Which URLs may be requested, before any name is resolved.
//!
//! **Invariant:** what is judged is the parsed URL that is also requested, never its text.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::{HostPattern, is_public_address};

/// The longest URL in bytes.
const MAX_URL_BYTES: usize = 8 << 10;

/// The ports that are requested on hosts that the user does not name.
const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// The ends of names that only exist within networks.
const PRIVATE_DOMAINS: [&str; 4] = ["localhost", "internal", "local", "home.arpa"];

/// Returns whether `host`, as in a URL, is this machine: `localhost` or a loopback address.
///
/// # Examples
///
/// ```
/// use tool_sdk::net::is_loopback_host;
///
/// assert!(is_loopback_host("127.0.0.1") && is_loopback_host("[::1]"));
/// assert!(!is_loopback_host("localhost.example.com"));
/// ```
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Returns whether the host of `url` is this machine.
#[must_use]
pub fn is_loopback_url(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}

/// Returns whether `url` contains a user name or a password.
#[must_use]
pub fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Returns a host as people write it, with the letters of an international name.
///
/// # Examples
///
/// ```
/// assert_eq!(tool_sdk::net::host_in_unicode("xn--bcher-kva.example"), "b\u{fc}cher.example");
/// ```
#[must_use]
pub fn host_in_unicode(host: &str) -> String {
    let letters = url::quirks::domain_to_unicode(host);
    // An address has none.
    if letters.is_empty() { host.to_owned() } else { letters }
}

/// Which URLs may be requested.
///
/// # Examples
///
/// ```
/// use tool_sdk::net::UrlPolicy;
///
/// let mut policy = UrlPolicy::default();
/// assert_eq!(policy.parse_url("http://docs.rs/tokio#x")?.as_str(), "https://docs.rs/tokio");
/// assert!(policy.parse_url("http://localhost:8080/").is_err());
///
/// policy.named_hosts.push("localhost:8080".parse()?);
/// assert!(policy.parse_url("http://localhost:8080/").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UrlPolicy {
    /// The hosts that the user names. They may have addresses that are not public, any port, and
    /// plain `http`.
    pub named_hosts: Vec<HostPattern>,
    /// Whether `http` is used as it is. By default, `http` on port 80 becomes `https`, and is
    /// refused on other ports.
    pub allows_plain_http: bool,
}

impl UrlPolicy {
    /// Parses a URL and judges it. The result has no fragment, and `https` where the text has
    /// `http` that is not allowed.
    ///
    /// # Errors
    ///
    /// Fails when the text is not a URL of a host, has another scheme than `http` and `https`,
    /// contains credentials, blanks or control characters, is over 8 KiB long, or when its host or
    /// port is not reached. Names are not resolved.
    pub fn parse_url(&self, text: &str) -> Result<Url, RefusedUrl> {
        let text = text.trim();
        if text.len() > MAX_URL_BYTES {
            return Err(RefusedUrl::new("the URL is over 8 KiB long", "shorten it"));
        }
        // The parser would drop some of these characters.
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let problem = "the URL contains a blank or a control character";
            return Err(RefusedUrl::new(problem, "write a blank as `%20`"));
        }
        let url = Url::parse(text).map_err(|error| {
            let problem = format!("`{}` is not a URL: {error}", text.escape_debug());
            RefusedUrl::new(problem, "write it in full, such as `https://example.com/page`")
        })?;
        self.normalize_url(url)
    }

    /// Judges the target of a redirect from `from`, relative or absolute.
    ///
    /// # Errors
    ///
    /// Fails as [`parse_url`](Self::parse_url) does, and for a redirect from `https` to `http`.
    pub fn parse_redirect(&self, from: &Url, location: &str) -> Result<Url, RefusedUrl> {
        let to = from.join(location).map_err(|error| {
            RefusedUrl::new(format!("the redirect leads to no URL: {error}"), "use another page")
        })?;
        if to.as_str().len() > MAX_URL_BYTES {
            return Err(RefusedUrl::new(
                "the redirect's URL is over 8 KiB long",
                "use another page",
            ));
        }
        let to = self.normalize_url(to)?;
        if from.scheme() == "https" && to.scheme() == "http" && !self.names_url(&to) {
            let problem = format!("`{from}` redirects to plain http");
            return Err(RefusedUrl::new(problem, "use another page"));
        }
        Ok(to)
    }

    /// Returns whether the user names the host of `url`.
    #[must_use]
    pub fn names_url(&self, url: &Url) -> bool {
        self.named_hosts.iter().any(|pattern| pattern.matches(url))
    }

    /// Returns whether the user names `host`, with any port.
    #[must_use]
    pub fn names_host(&self, host: &str) -> bool {
        self.named_hosts.iter().any(|pattern| pattern.matches_host(host))
    }

    fn normalize_url(&self, mut url: Url) -> Result<Url, RefusedUrl> {
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") {
            let problem = format!("`{}` is not a scheme of the web", url.scheme());
            return Err(RefusedUrl::new(problem, "only `https` and `http` are requested"));
        }
        if has_credentials(&url) {
            let problem = "the URL contains a user name or a password";
            return Err(RefusedUrl::new(problem, "remove the part before `@`"));
        }
        if let Some(host) = url.host_str().and_then(|host| host.strip_suffix('.')) {
            let host = host.to_owned();
            url.set_host(Some(&host)).map_err(|_| no_host_error())?;
        }
        if self.names_url(&url) {
            return Ok(url);
        }
        check_public_host(&url)?;
        if url.scheme() == "http" && !self.allows_plain_http {
            if url.port().is_some() {
                let problem = format!("`{url}` is plain http");
                return Err(RefusedUrl::new(problem, "use `https`"));
            }
            url.set_scheme("https").map_err(|()| no_host_error())?;
        }
        check_port(&url)?;
        Ok(url)
    }
}

/// Fails when the host is known not to be public without resolving it.
fn check_public_host(url: &Url) -> Result<(), RefusedUrl> {
    let is_public = match url.host().ok_or_else(no_host_error)? {
        Host::Domain(name) => {
            let is_below = |domain: &&str| {
                name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            name.contains('.') && !PRIVATE_DOMAINS.iter().any(is_below)
        }
        Host::Ipv4(address) => is_public_address(address.into()),
        Host::Ipv6(address) => is_public_address(address.into()),
    };
    if !is_public {
        return Err(RefusedUrl::private_host(url.host_str().unwrap_or_default()));
    }
    Ok(())
}

/// Fails when the port is not one of the web.
fn check_port(url: &Url) -> Result<(), RefusedUrl> {
    match url.port_or_known_default() {
        Some(port) if PORTS.contains(&port) => Ok(()),
        port => {
            let port = port.unwrap_or_default();
            let problem = format!("port {port} is not one of the web");
            Err(RefusedUrl::new(problem, "the ports are 80, 443, 8080 and 8443"))
        }
    }
}

fn no_host_error() -> RefusedUrl {
    RefusedUrl::new("the URL has no host", "write it in full, such as `https://example.com/page`")
}

/// Why a URL is not requested: the problem, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedUrl {
    problem: String,
    hint: String,
}

impl RefusedUrl {
    fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into() }
    }

    /// The host is in the network of the user.
    pub(crate) fn private_host(host: &str) -> Self {
        Self::new(
            format!("`{host}` is not public"),
            "only hosts of the internet are reached; the user may name others with `--web-hosts`",
        )
    }

    /// Returns what to do instead.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for RefusedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for RefusedUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        let parsed = UrlPolicy::default().parse_url(text);
        parsed.map(Into::into).map_err(|error| error.to_string())
    }

    // WF1: the parsed URL is judged, and is the one that is requested.
    #[test]
    fn urls_are_normalized() {
        for (text, url) in [
            ("https://EXAMPLE.com/Path", "https://example.com/Path"),
            ("http://example.com:80/", "https://example.com/"),
            ("https://example.com:443/", "https://example.com/"),
            ("https://example.com:8443/", "https://example.com:8443/"),
            ("https://example.com./a#b", "https://example.com/a"),
            (" https://example.com ", "https://example.com/"),
            ("https:\\\\example.com\\a", "https://example.com/a"),
            ("https://b\u{fc}cher.example/", "https://xn--bcher-kva.example/"),
            ("http://8.8.8.8/", "https://8.8.8.8/"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(url), "{text}");
        }
    }

    // WF1, WF2: hosts that are known not to be public are refused without a resolver.
    #[test]
    fn refuses_what_is_not_of_the_web() {
        for (text, why) in [
            ("ftp://example.com/", "not a scheme"),
            ("file:///etc/passwd", "not a scheme"),
            ("javascript:alert(1)", "not a scheme"),
            ("not-a-url", "not a URL"),
            ("https://", "not a URL"),
            ("https://exa mple.com/", "a blank"),
            ("https://example.com/a\nb", "control"),
            ("https://ada@example.com/", "user name"),
            ("https://ada:secret@example.com/", "user name"),
            ("https://example.com:22/", "port 22"),
            ("http://example.com:8080/", "plain http"),
            ("https://localhost/", "not public"),
            ("https://a.localhost/", "not public"),
            ("https://LOCALHOST./", "not public"),
            ("https://printer.local/", "not public"),
            ("https://metadata.google.internal/", "not public"),
            ("https://intranet/", "not public"),
            ("https://router.home.arpa/", "not public"),
            ("https://127.0.0.1/", "not public"),
            ("https://2130706433/", "not public"),
            ("https://0x7f.1/", "not public"),
            ("https://0177.0.0.1/", "not public"),
            ("https://[::ffff:127.0.0.1]/", "not public"),
            ("https://169.254.169.254/latest/meta-data/", "not public"),
        ] {
            assert!(
                parse(text).is_err_and(|error| error.contains(why)),
                "{text}: {:?}",
                parse(text)
            );
        }
        assert!(parse(&format!("https://example.com/{}", "a".repeat(9000))).is_err());
        assert!(!parse("https://ada:secret@example.com/").unwrap_err().contains("secret"));
    }

    #[test]
    fn named_hosts_have_any_address_and_port() {
        let mut policy = UrlPolicy::default();
        policy.named_hosts.push("127.0.0.1:9000".parse().unwrap());
        policy.named_hosts.push("intranet".parse().unwrap());
        for url in ["http://127.0.0.1:9000/", "http://intranet/", "http://intranet:81/"] {
            assert_eq!(policy.parse_url(url).unwrap().as_str(), url);
        }
        for url in ["http://127.0.0.1:9001/", "http://other/", "http://u@intranet/"] {
            assert!(policy.parse_url(url).is_err(), "{url}");
        }
    }

    // WF4
    #[test]
    fn redirects_are_judged_like_urls() {
        let from = Url::parse("https://example.com/a/b").unwrap();
        let judge = |location| UrlPolicy::default().parse_redirect(&from, location);
        for (location, url) in [
            ("c", "https://example.com/a/c"),
            ("//docs.rs/x", "https://docs.rs/x"),
            ("http://docs.rs/x", "https://docs.rs/x"),
        ] {
            assert_eq!(judge(location).unwrap().as_str(), url);
        }
        for location in
            ["http://127.0.0.1/", "//u@docs.rs/", "file:///etc/passwd", "https://[::1]/"]
        {
            assert!(judge(location).is_err(), "{location}");
        }
        let plain = UrlPolicy { allows_plain_http: true, ..UrlPolicy::default() };
        assert_eq!(plain.parse_url("http://docs.rs/").unwrap().as_str(), "http://docs.rs/");
        assert!(plain.parse_redirect(&from, "http://docs.rs/").is_err());
    }

    #[test]
    fn this_machine_has_few_names() {
        for url in ["http://localhost:1/", "http://127.9.9.9/", "http://[::1]/"] {
            assert!(is_loopback_url(&Url::parse(url).unwrap()), "{url}");
        }
        for url in ["http://localhost.example/", "http://128.0.0.1/", "data:x"] {
            assert!(!is_loopback_url(&Url::parse(url).unwrap()), "{url}");
        }
    }
}
