//! Responses that are used again: for a while as they are, then after the server confirmed them.
//!
//! **Invariant:** memory is bounded, and a response is stored under the URL that it came from, so
//! that a redirect is judged each time.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;
use reqwest::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, LAST_MODIFIED, VARY};
use url::Url;

use crate::WebResponse;

/// The most responses.
const MAX_ENTRIES: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");

/// The most bytes of all bodies.
const MAX_BYTES: usize = 32 << 20;

/// The responses of one client, the least recently used first to go.
pub(crate) struct ResponseCache {
    entries: LruCache<String, CachedResponse>,
    bytes: usize,
}

#[derive(Clone)]
struct CachedResponse {
    response: WebResponse,
    fresh_until: Instant,
}

/// What the cache knows about a URL.
pub(crate) enum CacheLookup {
    /// The response may be used as it is.
    Fresh(WebResponse),
    /// The server may confirm the response.
    Stale(WebResponse),
    Missing,
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self { entries: LruCache::new(MAX_ENTRIES), bytes: 0 }
    }
}

impl ResponseCache {
    pub(crate) fn find_response(&mut self, url: &Url) -> CacheLookup {
        match self.entries.get(url.as_str()) {
            Some(entry) if Instant::now() < entry.fresh_until => {
                CacheLookup::Fresh(entry.response.clone())
            }
            Some(entry) if conditional_headers(&entry.response.headers).next().is_some() => {
                CacheLookup::Stale(entry.response.clone())
            }
            _ => CacheLookup::Missing,
        }
    }

    /// Stores a response, for at most `cache_time`, unless its server forbids that.
    pub(crate) fn store_response(&mut self, response: &WebResponse, cache_time: Duration) {
        self.remove_response(&response.url);
        let Some(fresh_for) = response_lifetime(&response.headers, cache_time) else { return };
        let is_useful =
            !fresh_for.is_zero() || conditional_headers(&response.headers).next().is_some();
        if !is_useful || cache_time.is_zero() || response.body.len() > MAX_BYTES / 4 {
            return;
        }
        let fresh_until = Instant::now() + fresh_for;
        let entry = CachedResponse { response: response.clone(), fresh_until };
        self.bytes += response.body.len();
        if let Some((_, old)) = self.entries.push(response.url.as_str().to_owned(), entry) {
            self.bytes -= old.response.body.len();
        }
        while self.bytes > MAX_BYTES
            && let Some((_, old)) = self.entries.pop_lru()
        {
            self.bytes -= old.response.body.len();
        }
    }

    fn remove_response(&mut self, url: &Url) {
        if let Some(old) = self.entries.pop(url.as_str()) {
            self.bytes -= old.response.body.len();
        }
    }
}

/// Returns the headers that ask the server whether the response is still current.
pub(crate) fn conditional_headers(
    headers: &HeaderMap,
) -> impl Iterator<Item = (&'static str, HeaderValue)> + use<> {
    let etag = headers.get(ETAG).cloned().map(|value| ("if-none-match", value));
    let date = headers.get(LAST_MODIFIED).cloned().map(|value| ("if-modified-since", value));
    etag.into_iter().chain(date)
}

/// Returns how long the response is current; `None` if it must not be stored.
fn response_lifetime(headers: &HeaderMap, cache_time: Duration) -> Option<Duration> {
    if headers.get(VARY).is_some_and(|vary| vary.as_bytes().contains(&b'*')) {
        return None;
    }
    let mut fresh_for = cache_time;
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    for directive in values.flat_map(|value| value.split(',')) {
        let directive = directive.trim().to_ascii_lowercase();
        match directive.split_once('=').unwrap_or((&directive, "")) {
            ("no-store", _) => return None,
            ("no-cache", _) => fresh_for = Duration::ZERO,
            ("max-age", seconds) => {
                let seconds = seconds.trim_matches('"').parse().unwrap_or_default();
                fresh_for = fresh_for.min(Duration::from_secs(seconds));
            }
            _ => {}
        }
    }
    Some(fresh_for)
}
