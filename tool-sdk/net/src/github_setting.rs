//! Whether tools for GitHub are offered, and where its API is.

use std::fmt;
use std::str::FromStr;

use url::Url;

use crate::{has_credentials, is_loopback_url};

/// The API of github.com.
const PUBLIC_API: &str = "https://api.github.com/";

/// Whether tools for GitHub are offered, and where its API is. As text `off`, `on` for github.com, or
/// the URL of the API of another server, such as `https://github.example/api/v3`.
///
/// # Examples
///
/// ```
/// use tool_sdk::net::GithubSetting;
///
/// assert!(GithubSetting::default().api_url().is_none());
/// let public: GithubSetting = "on".parse()?;
/// assert_eq!(public.api_url().map(|url| url.to_string()).as_deref(), Some("https://api.github.com/"));
/// assert!("http://github.example/api/v3".parse::<GithubSetting>().is_err());
/// # Ok::<(), tool_sdk::net::InvalidGithubSetting>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GithubSetting(GithubApiKind);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum GithubApiKind {
    #[default]
    Off,
    Public,
    /// The API of a server that an organization runs itself.
    Own(Url),
}

impl GithubSetting {
    /// Returns the URL of the API; `None` when the tools are off.
    #[must_use]
    pub fn api_url(&self) -> Option<Url> {
        match &self.0 {
            GithubApiKind::Off => None,
            GithubApiKind::Public => Url::parse(PUBLIC_API).ok(),
            GithubApiKind::Own(url) => Some(url.clone()),
        }
    }

    /// Returns whether the API is that of a server of one's own, which may be in a private network.
    #[must_use]
    pub const fn is_own_server(&self) -> bool {
        matches!(self.0, GithubApiKind::Own(_))
    }

    /// Returns whether the tools are off.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self.0, GithubApiKind::Off)
    }
}

impl FromStr for GithubSetting {
    type Err = InvalidGithubSetting;

    fn from_str(text: &str) -> Result<Self, InvalidGithubSetting> {
        let invalid = |why: &str| Err(InvalidGithubSetting(why.to_owned()));
        match text.trim() {
            "off" => return Ok(Self(GithubApiKind::Off)),
            "on" => return Ok(Self(GithubApiKind::Public)),
            _ => {}
        }
        match Url::parse(text.trim()) {
            Ok(url) if has_credentials(&url) || url.query().is_some() => {
                invalid("the URL of the API must have neither credentials nor a query")
            }
            // The token would be readable on the way.
            Ok(url)
                if url.scheme() == "https" || is_loopback_url(&url) && url.scheme() == "http" =>
            {
                Ok(Self(GithubApiKind::Own(url)))
            }
            Ok(_) => invalid("the URL of the API must start with https://"),
            Err(_) => invalid("must be `on`, `off`, or the URL of the API of another server"),
        }
    }
}

impl fmt::Display for GithubSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            GithubApiKind::Off => f.write_str("off"),
            GithubApiKind::Public => f.write_str("on"),
            GithubApiKind::Own(url) => write!(f, "{url}"),
        }
    }
}

/// A text that is no [`GithubSetting`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidGithubSetting(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_on_off_or_a_url() {
        for good in ["on", "off", "https://github.example/api/v3", "http://127.0.0.1:8080/"] {
            assert_eq!(good.parse::<GithubSetting>().unwrap().to_string(), good);
        }
        for (text, why) in [
            ("yes", "must be `on`, `off`"),
            ("http://github.example/", "https://"),
            ("https://a:b@github.example/", "credentials"),
            ("https://github.example/?a=b", "query"),
        ] {
            let error = text.parse::<GithubSetting>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
