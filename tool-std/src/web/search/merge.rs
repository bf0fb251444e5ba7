//! Merges the results of several providers by reciprocal rank.
//!
//! A result scores `1 / (60 + rank)` for each provider that has it, so what several providers have
//! near the top comes first. 60 is the constant of the paper that introduced the method (Cormack,
//! Clarke and Büttcher, SIGIR 2009).

use std::collections::HashMap;

use tool_sdk::net::Url;

use super::{SearchHit, SearchQuery};

const RANK_OFFSET: f64 = 60.0;

/// Parameters that say where a link was clicked, and not which page it is.
const TRACKING_PARAMETERS: [&str; 6] = ["fbclid", "gclid", "msclkid", "ref", "ref_src", "srsltid"];

/// A result with the providers that have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MergedHit<'p> {
    pub(super) hit: SearchHit,
    pub(super) providers: Vec<&'p str>,
    score: f64,
}

/// Returns the best results of all lists, each page once.
pub(super) fn merge_hits<'p>(
    lists: Vec<(&'p str, Vec<SearchHit>)>,
    query: &SearchQuery,
) -> Vec<MergedHit<'p>> {
    let mut merged: Vec<MergedHit<'p>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (provider, hits) in lists {
        for (rank, hit) in hits.into_iter().enumerate() {
            let Some(url) = web_url(&hit.url).filter(|url| is_wanted(url, query)) else { continue };
            #[expect(clippy::cast_precision_loss, reason = "a provider returns some dozens")]
            let score = 1.0 / (RANK_OFFSET + (rank + 1) as f64);
            let place = *places.entry(page_key(&url)).or_insert(merged.len());
            match merged.get_mut(place) {
                // A provider that has a page twice counts once.
                Some(known) if known.providers.contains(&provider) => {}
                Some(known) => {
                    known.score += score;
                    known.providers.push(provider);
                    fill_gaps(&mut known.hit, hit);
                }
                None => merged.push(MergedHit { hit, providers: vec![provider], score }),
            }
        }
    }
    // Stable: of equal ones, the earlier provider comes first.
    merged.sort_by(|one, other| other.score.total_cmp(&one.score));
    merged.truncate(query.limit);
    merged
}

fn fill_gaps(known: &mut SearchHit, other: SearchHit) {
    if known.title.is_empty() {
        known.title = other.title;
    }
    if known.snippet.is_empty() {
        known.snippet = other.snippet;
    }
    known.date = known.date.take().or(other.date);
}

fn web_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Whether the domain filters keep the page; a provider may have ignored them.
fn is_wanted(url: &Url, query: &SearchQuery) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let is_below = |domain: &String| {
        host.strip_suffix(domain.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_included =
        query.include_domains.is_empty() || query.include_domains.iter().any(is_below);
    is_included && !query.exclude_domains.iter().any(is_below)
}

/// Returns what is equal for the same page: without scheme, `www.`, fragment, slash at the end and
/// tracking parameters.
fn page_key(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let is_kept = |name: &str| !name.starts_with("utm_") && !TRACKING_PARAMETERS.contains(&name);
    let query: Vec<String> = url
        .query_pairs()
        .filter(|(name, _)| is_kept(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{host}{port}{}?{}", url.path().trim_end_matches('/'), query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(limit: usize) -> SearchQuery {
        SearchQuery {
            text: "x".into(),
            limit,
            recency: None,
            include_domains: Vec::new(),
            exclude_domains: Vec::new(),
        }
    }

    fn hits(urls: &[&str]) -> Vec<SearchHit> {
        urls.iter().map(|url| SearchHit::new("", format!("https://{url}"))).collect()
    }

    // F148
    #[test]
    fn what_several_providers_have_comes_first() {
        let lists = vec![
            ("one", hits(&["a.example/1", "a.example/2", "www.b.example/"])),
            ("two", hits(&["c.example/?utm_source=x&id=1", "b.example", "c.example?id=1#top"])),
        ];
        let merged = merge_hits(lists, &query(3));
        let found: Vec<_> =
            merged.iter().map(|it| (&*it.hit.url, it.providers.as_slice())).collect();
        assert_eq!(
            found,
            [
                ("https://www.b.example/", &["one", "two"][..]),
                ("https://a.example/1", &["one"]),
                ("https://c.example/?utm_source=x&id=1", &["two"]),
            ]
        );
    }

    #[test]
    fn gaps_are_filled_by_other_providers() {
        let full = SearchHit::new("T", "http://a.example").with_snippet("S");
        let full = full.with_date(Some("2026".into()));
        let lists = vec![("one", hits(&["a.example"])), ("two", vec![full.clone()])];
        let merged = merge_hits(lists, &query(1));
        assert_eq!(merged[0].hit, SearchHit { url: "https://a.example".into(), ..full });
    }

    #[test]
    fn domains_are_filtered_by_labels() {
        let lists =
            || vec![("one", hits(&["a.example", "b.a.example", "ba.example", "c.example"]))];
        let urls = |query: &SearchQuery| {
            merge_hits(lists(), query).into_iter().map(|it| it.hit.url).collect::<Vec<_>>()
        };
        let include = SearchQuery { include_domains: vec!["a.example".into()], ..query(9) };
        assert_eq!(urls(&include), ["https://a.example", "https://b.a.example"]);
        let exclude = SearchQuery { exclude_domains: vec!["a.example".into()], ..query(9) };
        assert_eq!(urls(&exclude), ["https://ba.example", "https://c.example"]);
        assert!(
            merge_hits(vec![("x", vec![SearchHit::new("", "javascript:x")])], &query(9)).is_empty()
        );
    }
}
