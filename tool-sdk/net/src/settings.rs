//! What a user sets for tools on the web.
//!
//! **Invariant:** no setting allows a call; rules and modes do that.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use crate::{GithubSetting, UrlPolicy, has_credentials, is_loopback_url};

/// The user's settings for tools on the web.
///
/// # Examples
///
/// ```
/// use tool_sdk::net::WebSettings;
///
/// let mut settings = WebSettings::default();
/// settings.limits.body_bytes = 1 << 20;
/// settings.urls.named_hosts.push("*.corp.example".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebSettings {
    /// Which URLs may be requested.
    pub urls: UrlPolicy,
    /// The limits of one request.
    pub limits: ResponseLimits,
    /// How the client names itself.
    pub user_agent: String,
    /// Whether pages that `robots.txt` excludes are left alone; `false` by default, because a page
    /// is fetched for a person who asks for it. The targets of redirects are not checked.
    pub obeys_robots: bool,
    /// How long a response is used again without a request; 15 minutes by default. After that, one
    /// with a validator is revalidated.
    pub cache_time: Duration,
    /// The providers of web search, in order; none by default.
    pub search: Vec<SearchProviderSetting>,
    /// The model that a provider which is a model uses; `openai/gpt-5-mini` by default.
    pub search_model: String,
    /// Whether tools for GitHub are offered, and where its API is; off by default.
    pub github: GithubSetting,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            urls: UrlPolicy::default(),
            limits: ResponseLimits::default(),
            user_agent: concat!("tool-sdk/", env!("CARGO_PKG_VERSION")).to_owned(),
            obeys_robots: false,
            cache_time: Duration::from_mins(15),
            search: Vec::new(),
            search_model: "openai/gpt-5-mini".to_owned(),
            github: GithubSetting::default(),
        }
    }
}

/// The limits of one request with its redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseLimits {
    /// How long a connection may take to open; 5 s by default.
    pub connect_timeout: Duration,
    /// How long everything may take, without the time in which a redirect is judged; 30 s by
    /// default.
    pub total_timeout: Duration,
    /// The most bytes of headers; 64 KiB by default.
    pub header_bytes: usize,
    /// The most bytes of a body, decompressed; 5 MiB by default.
    pub body_bytes: usize,
    /// The most redirects that are followed; 5 by default.
    pub redirects: usize,
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(30),
            header_bytes: 64 << 10,
            body_bytes: 5 << 20,
            redirects: 5,
        }
    }
}

/// A provider of web search: its name, and the URL of its API, if that is not the usual one. As text
/// `NAME` or `NAME=URL`.
///
/// # Examples
///
/// ```
/// use tool_sdk::net::SearchProviderSetting;
///
/// let own: SearchProviderSetting = "searxng=https://search.example".parse()?;
/// assert_eq!((own.name(), own.url().map(|url| url.as_str())), ("searxng", Some("https://search.example/")));
/// assert!("searxng".parse::<SearchProviderSetting>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchProviderSetting {
    name: &'static str,
    url: Option<Url>,
}

/// The known providers.
const PROVIDERS: [&str; 5] = ["brave", "exa", "openrouter", "searxng", "tavily"];

/// The provider that has no usual URL, because its users run it themselves. It takes no key.
const SELF_HOSTED: &str = "searxng";

impl SearchProviderSetting {
    /// Returns the name: `brave`, `exa`, `openrouter`, `searxng` or `tavily`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of the secret with the key of the API; `None` for a provider without one.
    #[must_use]
    pub fn key_name(&self) -> Option<&'static str> {
        Some(match self.name {
            "brave" => "BRAVE_API_KEY",
            "exa" => "EXA_API_KEY",
            "openrouter" => "OPENROUTER_API_KEY",
            "tavily" => "TAVILY_API_KEY",
            _ => return None,
        })
    }

    /// Returns the URL of the API, if it is not the usual one.
    #[must_use]
    pub fn url(&self) -> Option<&Url> {
        self.url.as_ref()
    }
}

impl FromStr for SearchProviderSetting {
    type Err = InvalidSearchProvider;

    fn from_str(text: &str) -> Result<Self, InvalidSearchProvider> {
        let invalid = |why: String| Err(InvalidSearchProvider(why));
        let (name, url) = match text.split_once('=') {
            Some((name, url)) => (name.trim(), Some(url.trim())),
            None => (text.trim(), None),
        };
        let Some(name) = PROVIDERS.into_iter().find(|known| *known == name) else {
            let (name, known) = (name.escape_debug(), PROVIDERS.join(", "));
            return invalid(format!(
                "`{name}` is not a provider of web search; expected one of {known}"
            ));
        };
        let Some(url) = url else {
            if name == SELF_HOSTED {
                return invalid(format!(
                    "`{name}` needs a URL, as in `{name}=https://search.example`"
                ));
            }
            return Ok(Self { name, url: None });
        };
        match Url::parse(url) {
            Ok(url) if has_credentials(&url) || url.query().is_some() => {
                invalid(format!("the URL of `{name}` must have neither credentials nor a query"))
            }
            Ok(url) if url.scheme() == "https" => Ok(Self { name, url: Some(url) }),
            Ok(url) if url.scheme() == "http" && (name == SELF_HOSTED || is_loopback_url(&url)) => {
                Ok(Self { name, url: Some(url) })
            }
            Ok(_) => invalid(format!("the URL of `{name}` must start with https://")),
            Err(error) => invalid(format!("the URL of `{name}`: {error}")),
        }
    }
}

impl fmt::Display for SearchProviderSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.url {
            Some(url) => write!(f, "{}={url}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// A text that is not a provider of web search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSearchProvider(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_have_names_and_urls() {
        for good in
            ["brave", "tavily=https://proxy.example/tavily", "searxng=http://10.0.0.5:8888/"]
        {
            assert_eq!(good.parse::<SearchProviderSetting>().unwrap().to_string(), good);
        }
        for (text, why) in [
            ("google", "expected one of brave, exa"),
            ("searxng", "needs a URL"),
            ("brave=http://example.com", "must start with https"),
            ("brave=https://a:b@example.com", "credentials"),
            ("exa=https://example.com/?key=1", "a query"),
            ("exa=x", "URL of `exa`"),
        ] {
            let error = text.parse::<SearchProviderSetting>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
