//! Elicitation by URL: judges the address that a server asks the user to open.
//!
//! The user sees the address as browsers read it, in ASCII, and the host in a line of its own, because
//! `https://bank.example@evil.example/` reads like another host. Nothing is opened here: the user
//! decides, and opens the address.
//!
//! **Invariant:** an address that could show something else than it is, or that is not encrypted on
//! its way, is not shown.

use reqwest::Url;
use serde_json::Value;
use tool_sdk_core::internal::spell_hidden;
use tool_sdk_net::{has_credentials, is_loopback_host};

use super::description_lint;

/// The longest address; a person does not compare more.
const MAX_URL_BYTES: usize = 2048;
const MAX_MESSAGE_CHARS: usize = 4000;

/// An address that may be shown to the user.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ElicitationUrl {
    /// The server's words.
    pub(super) message: String,
    /// The address in ASCII.
    pub(super) url: String,
    pub(super) host: String,
    /// What is odd about the host, for the user.
    pub(super) warnings: Vec<&'static str>,
}

impl ElicitationUrl {
    /// Parses the params of `elicitation/create` with the mode `url`.
    ///
    /// # Errors
    ///
    /// Returns why the address must not be shown.
    pub(super) fn parse(params: &Value) -> Result<Self, &'static str> {
        let text = params["url"].as_str().ok_or("it has no address")?;
        if text.len() > MAX_URL_BYTES {
            return Err("its address is too long for a person to read");
        }
        // The parser would drop some of these characters.
        if spell_hidden(text) != text || text.contains(char::is_whitespace) {
            return Err("its address contains invisible characters");
        }
        let url = Url::parse(text).map_err(|_| "its address is not a URL")?;
        if has_credentials(&url) {
            return Err("its address contains a user name, which hides the host");
        }
        let host = url.host_str().ok_or("its address has no host")?.to_owned();
        match url.scheme() {
            "https" => {}
            "http" if is_loopback_host(&host) => {}
            "http" => return Err("its address is not encrypted (`https`)"),
            _ => return Err("its address is not one of the web (`https`)"),
        }
        let message = params["message"].as_str().unwrap_or_default();
        let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
        let warnings = host_warnings(&host);
        let message = description_lint::clean_text(&message);
        Ok(Self { message, url: url.into(), host, warnings })
    }
}

/// Returns what the user should know about a host before the user trusts it.
fn host_warnings(host: &str) -> Vec<&'static str> {
    let is_encoded = host.split('.').any(|label| label.starts_with("xn--"));
    let is_number = host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok();
    let warnings = [
        (is_encoded, "the host has letters that can look like others; `xn--` stands for them"),
        (is_number && !is_loopback_host(host), "the host is a number and not a name"),
        (is_loopback_host(host), "the host is this computer"),
    ];
    warnings.into_iter().filter(|(applies, _)| *applies).map(|(_, warning)| warning).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(url: &str) -> Result<ElicitationUrl, &'static str> {
        ElicitationUrl::parse(&json!({ "mode": "url", "message": "Log\u{202e} in.", "url": url }))
    }

    // MC7, MC8
    #[test]
    fn shows_the_host_and_the_whole_address() {
        let shown = judge("https://Login.Example.com:8443/a?b=c#d").unwrap();
        assert_eq!(shown.url, "https://login.example.com:8443/a?b=c#d");
        assert_eq!((&*shown.host, &*shown.message), ("login.example.com", "Log\\u{202e} in."));
        assert!(shown.warnings.is_empty());
    }

    // PR5: what looks like another host is marked.
    #[test]
    fn marks_hosts_that_may_mislead() {
        let shown = judge("https://p\u{430}ypal.com/").unwrap();
        assert!(shown.host.starts_with("xn--") && shown.url.is_ascii(), "{shown:?}");
        assert!(shown.warnings[0].contains("look like others"));
        assert!(judge("https://198.51.100.7/").unwrap().warnings[0].contains("a number"));
        for own in ["http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/"] {
            assert!(judge(own).unwrap().warnings[0].contains("this computer"), "{own}");
        }
    }

    #[test]
    fn rejects_addresses_that_hide_or_expose_something() {
        for (url, why) in [
            ("http://example.com/", "not encrypted"),
            ("http://127.0.0.1.example.com/", "not encrypted"),
            ("javascript:alert(1)", "no host"),
            ("file:///etc/passwd", "no host"),
            ("ftp://example.com/", "of the web"),
            ("https://bank.example@evil.example/", "user name"),
            ("https://exam\u{200b}ple.com/", "invisible"),
            ("https://example.com/\u{202e}moc", "invisible"),
            ("https://exam\tple.com/", "invisible"),
            ("https://example.com/a b", "invisible"),
            ("example.com", "not a URL"),
            ("", "not a URL"),
        ] {
            assert!(judge(url).unwrap_err().contains(why), "{url}");
        }
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES));
        assert!(judge(&long).unwrap_err().contains("too long"));
        assert!(ElicitationUrl::parse(&json!({ "mode": "url" })).is_err());
    }
}
