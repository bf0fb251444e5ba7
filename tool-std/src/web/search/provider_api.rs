//! The APIs of the known providers: the request for a query, and the results in a response.
//!
//! **Invariant:** pure functions; the key goes into one header of the request and nowhere else.

use serde_json::{Value, json};
use tool_sdk::net::{Url, WebRequest, utc_date};

use super::{SearchHit, SearchQuery, SearchRecency};

/// A known API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderApi {
    Brave,
    Exa,
    OpenRouter,
    SearXng,
    Tavily,
}

impl ProviderApi {
    /// Returns the API with the name of the settings.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "brave" => Self::Brave,
            "exa" => Self::Exa,
            "openrouter" => Self::OpenRouter,
            "searxng" => Self::SearXng,
            "tavily" => Self::Tavily,
            _ => return None,
        })
    }

    /// Returns the URL below which the API is, unless the user runs it.
    pub(super) const fn default_url(self) -> &'static str {
        match self {
            Self::Brave => "https://api.search.brave.com/res/v1/",
            Self::Exa => "https://api.exa.ai/",
            Self::OpenRouter => "https://openrouter.ai/api/v1/",
            Self::SearXng => "http://localhost:8888/",
            Self::Tavily => "https://api.tavily.com/",
        }
    }

    /// Returns the request. `base` ends with a slash.
    pub(super) fn to_request(
        self,
        base: &Url,
        query: &SearchQuery,
        key: &str,
        model: &str,
    ) -> Option<WebRequest> {
        let bearer = || format!("Bearer {key}");
        Some(match self {
            Self::Brave => {
                let mut url = base.join("web/search").ok()?;
                url.query_pairs_mut()
                    .append_pair("q", &words_with_domains(query))
                    .append_pair("count", &query.limit.to_string());
                if let Some(recency) = query.recency {
                    let freshness = match recency {
                        SearchRecency::Day => "pd",
                        SearchRecency::Week => "pw",
                        SearchRecency::Month => "pm",
                        SearchRecency::Year => "py",
                    };
                    url.query_pairs_mut().append_pair("freshness", freshness);
                }
                WebRequest::get(url).header("x-subscription-token", key)
            }
            Self::Exa => {
                let mut body = json!({
                    "query": query.text,
                    "numResults": query.limit,
                    "contents": { "highlights": true },
                });
                add_domains(&mut body, query, "includeDomains", "excludeDomains");
                if let Some(recency) = query.recency {
                    body["startPublishedDate"] =
                        format!("{}T00:00:00.000Z", utc_date(recency.days())).into();
                }
                let url = base.join("search").ok()?;
                WebRequest::post_json(url, body.to_string()).header("x-api-key", key)
            }
            Self::OpenRouter => {
                let body = json!({
                    "model": model,
                    "messages": [{ "role": "user", "content": search_prompt(query) }],
                    "tools": [{
                        "type": "openrouter:web_search",
                        "parameters": { "max_results": query.limit },
                    }],
                });
                let url = base.join("chat/completions").ok()?;
                WebRequest::post_json(url, body.to_string()).header("authorization", &bearer())
            }
            Self::SearXng => {
                let mut url = base.join("search").ok()?;
                url.query_pairs_mut()
                    .append_pair("q", &words_with_domains(query))
                    .append_pair("format", "json");
                if let Some(recency) = query.recency {
                    url.query_pairs_mut().append_pair("time_range", recency.as_str());
                }
                WebRequest::get(url)
            }
            Self::Tavily => {
                let mut body = json!({ "query": query.text, "max_results": query.limit });
                add_domains(&mut body, query, "include_domains", "exclude_domains");
                if let Some(recency) = query.recency {
                    body["time_range"] = recency.as_str().into();
                }
                let url = base.join("search").ok()?;
                WebRequest::post_json(url, body.to_string()).header("authorization", &bearer())
            }
        })
    }

    /// Returns the results of a response, or `None` if the response is another one.
    pub(super) fn parse_hits(self, response: &Value) -> Option<Vec<SearchHit>> {
        let list = match self {
            // Without results, there is no part of the web.
            Self::Brave if response["type"] == "search" && response.get("web").is_none() => {
                return Some(Vec::new());
            }
            Self::Brave => &response["web"]["results"],
            Self::Exa | Self::SearXng | Self::Tavily => &response["results"],
            Self::OpenRouter => return parse_citations(response),
        };
        let hits = list.as_array()?.iter().map(|entry| self.parse_hit(entry));
        Some(hits.filter(|hit| !hit.url.is_empty()).collect())
    }

    fn parse_hit(self, entry: &Value) -> SearchHit {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let (snippet, date) = match self {
            Self::Brave => (text("description"), text("age")),
            Self::Exa => {
                let highlights = entry["highlights"].as_array().into_iter().flatten();
                let parts: Vec<&str> = highlights.filter_map(Value::as_str).collect();
                let snippet = if parts.is_empty() { text("text") } else { parts.join(" … ") };
                (snippet, text("publishedDate"))
            }
            Self::SearXng => (text("content"), text("publishedDate")),
            Self::Tavily | Self::OpenRouter => (text("content"), text("published_date")),
        };
        let date = Some(date).filter(|date| !date.is_empty());
        SearchHit::new(text("title"), text("url")).with_snippet(snippet).with_date(date)
    }
}

/// Returns the sources that a model cites.
fn parse_citations(response: &Value) -> Option<Vec<SearchHit>> {
    let message = response["choices"].as_array()?.first()?.get("message")?;
    let notes = message["annotations"].as_array().into_iter().flatten();
    let citations = notes.filter(|note| note["type"] == "url_citation");
    let hits = citations.map(|note| ProviderApi::OpenRouter.parse_hit(&note["url_citation"]));
    Some(hits.filter(|hit| !hit.url.is_empty()).collect())
}

/// Returns the words with the operators that search engines have for domains.
fn words_with_domains(query: &SearchQuery) -> String {
    let include: Vec<String> =
        query.include_domains.iter().map(|domain| format!("site:{domain}")).collect();
    let mut words = query.text.clone();
    if !include.is_empty() {
        words.push_str(&format!(" ({})", include.join(" OR ")));
    }
    for domain in &query.exclude_domains {
        words.push_str(&format!(" -site:{domain}"));
    }
    words
}

fn add_domains(body: &mut Value, query: &SearchQuery, include: &str, exclude: &str) {
    if !query.include_domains.is_empty() {
        body[include] = json!(query.include_domains);
    }
    if !query.exclude_domains.is_empty() {
        body[exclude] = json!(query.exclude_domains);
    }
}

/// Returns the instruction for a model that searches.
fn search_prompt(query: &SearchQuery) -> String {
    let mut prompt = format!(
        "Search the web for the text between the lines, and cite up to {} pages.\n---\n{}\n---",
        query.limit, query.text
    );
    if let Some(recency) = query.recency {
        prompt.push_str(&format!("\nOnly pages from the last {}.", recency.as_str()));
    }
    if !query.include_domains.is_empty() {
        prompt.push_str(&format!("\nOnly pages of {}.", query.include_domains.join(", ")));
    }
    if !query.exclude_domains.is_empty() {
        prompt.push_str(&format!("\nNo pages of {}.", query.exclude_domains.join(", ")));
    }
    prompt
}
