//! Web search: the port [`SearchProvider`], the providers by configuration, and their merged results.
//!
//! **Invariant:** a provider that fails costs its own results only, and is reported.

mod merge;
mod provider_api;
mod provider_client;
mod search_tool;

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tool_sdk::{Context, ToolError};

pub use self::search_tool::web_search;

/// A query to a provider of web search.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchQuery {
    /// The words.
    pub text: String,
    /// How many results are wanted; from 1 to 20.
    pub limit: usize,
    /// How old a result may be.
    pub recency: Option<SearchRecency>,
    /// The domains to which results are limited, with what is below them; none for all.
    pub include_domains: Vec<String>,
    /// The domains whose results are left out, with what is below them.
    pub exclude_domains: Vec<String>,
}

/// How old a result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a provider has to know each of them")]
pub enum SearchRecency {
    /// From the last 24 hours.
    Day,
    /// From the last week.
    Week,
    /// From the last month.
    Month,
    /// From the last year.
    Year,
}

impl SearchRecency {
    /// Returns `day`, `week`, `month` or `year`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Day, Self::Week, Self::Month, Self::Year].into_iter().find(|it| it.as_str() == text)
    }

    const fn days(self) -> u32 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
            Self::Year => 366,
        }
    }
}

/// A result of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchHit {
    /// The title of the page.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// A part of its text.
    pub snippet: String,
    /// When it was published or changed, in the words of the provider.
    pub date: Option<String>,
}

impl SearchHit {
    /// Creates a result.
    #[must_use]
    pub fn new(title: impl Into<String>, url: impl Into<String>) -> Self {
        Self { title: title.into(), url: url.into(), ..Self::default() }
    }

    /// Sets the part of the text.
    #[must_use]
    pub fn with_snippet(mut self, snippet: impl Into<String>) -> Self {
        self.snippet = snippet.into();
        self
    }

    /// Sets the date.
    #[must_use]
    pub fn with_date(mut self, date: Option<String>) -> Self {
        self.date = date;
        self
    }
}

/// A provider of web search.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Context, ToolError};
/// use tool_std::web::{SearchHit, SearchProvider, SearchProviders, SearchQuery};
///
/// /// Searches the handbook.
/// struct Handbook;
///
/// impl SearchProvider for Handbook {
///     fn name(&self) -> &str {
///         "handbook"
///     }
///
///     async fn search(&self, query: &SearchQuery, _: &Context) -> Result<Vec<SearchHit>, ToolError> {
///         Ok(vec![SearchHit::new(&query.text, "https://handbook.example/1")])
///     }
/// }
///
/// let providers = SearchProviders::default().with_provider(Handbook);
/// let session = tool_sdk::Session::new("s1").with_service(providers);
/// ```
pub trait SearchProvider: Send + Sync + 'static {
    /// Returns the name under which results and failures are reported.
    fn name(&self) -> &str;

    /// Returns the results, the best first. A filter that the provider does not have may be ignored;
    /// domains are filtered again.
    fn search(
        &self,
        query: &SearchQuery,
        cx: &Context,
    ) -> impl Future<Output = Result<Vec<SearchHit>, ToolError>> + Send;
}

/// A [`SearchProvider`] that can be stored without its type.
trait DynSearchProvider: Send + Sync {
    fn provider_name(&self) -> &str;

    fn search_boxed<'a>(
        &'a self,
        query: &'a SearchQuery,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, ToolError>>;
}

impl<P: SearchProvider> DynSearchProvider for P {
    fn provider_name(&self) -> &str {
        self.name()
    }

    fn search_boxed<'a>(
        &'a self,
        query: &'a SearchQuery,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, ToolError>> {
        self.search(query, cx).boxed()
    }
}

/// Providers of a host, as a service of the session, in place of those of the settings.
#[derive(Clone, Default)]
pub struct SearchProviders(Vec<Arc<dyn DynSearchProvider>>);

impl SearchProviders {
    /// Adds a provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl SearchProvider) -> Self {
        self.0.push(Arc::new(provider));
        self
    }
}

impl fmt::Debug for SearchProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|provider| provider.provider_name())).finish()
    }
}
