//! An LRU cache with a time to live for resources of MCP servers.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use lru::LruCache;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

/// An LRU cache of resources, by server and URI. Resources of the program itself have no server.
///
/// Expired entries are not returned. When the cache is full, the least recently used entry is
/// evicted.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
/// use serde_json::json;
/// use tool_sdk::mcp::ResourceCache;
///
/// let two = NonZeroUsize::new(2).ok_or("it is not nought")?;
/// let cache = ResourceCache::new(two, Duration::from_secs(60));
/// cache.set("shelf", "book://1", json!("A tale"));
/// cache.set("shelf", "book://2", json!("A song"));
/// assert!(cache.get("shelf", "book://1").is_some());
///
/// cache.set("shelf", "book://3", json!("A map"));
/// assert!(cache.get("shelf", "book://2").is_none(), "it was used longest ago");
/// # Ok::<(), &str>(())
/// ```
pub struct ResourceCache {
    entries: Mutex<LruCache<Key, Entry>>,
    lifetime: Duration,
}

type Key = (Option<String>, String);

struct Entry {
    resource: Arc<Value>,
    read: Instant,
}

/// Statistics of a [`ResourceCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// The number of entries, including expired ones.
    pub size: usize,
    /// The number of expired entries.
    pub expired: usize,
    /// The number of entries that have not expired.
    pub effective_size: usize,
    /// The maximum number of entries.
    pub capacity: usize,
}

impl fmt::Debug for ResourceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResourceCache").field(&self.stats()).finish()
    }
}

impl ResourceCache {
    /// Returns an empty cache for `capacity` resources, each kept for `lifetime`.
    #[must_use]
    pub fn new(capacity: NonZeroUsize, lifetime: Duration) -> Self {
        Self { entries: Mutex::new(LruCache::new(capacity)), lifetime }
    }

    /// Returns the resource if it is cached and not expired.
    #[must_use]
    pub fn get<'s>(&self, server: impl Into<Option<&'s str>>, uri: &str) -> Option<Arc<Value>> {
        let key = key(server.into(), uri);
        let mut entries = self.entries();
        let entry = entries.get(&key)?;
        if self.is_current(entry) {
            return Some(Arc::clone(&entry.resource));
        }
        entries.pop(&key);
        None
    }

    /// Stores a resource that was just read.
    pub fn set<'s>(&self, server: impl Into<Option<&'s str>>, uri: &str, resource: Value) {
        let entry = Entry { resource: Arc::new(resource), read: Instant::now() };
        self.entries().put(key(server.into(), uri), entry);
    }

    /// Reads all `uris` that are not cached, concurrently. Those that cannot be read are skipped.
    pub async fn prefetch<F, E>(
        &self,
        server: Option<&str>,
        uris: &[String],
        read: impl Fn(Option<String>, String) -> F,
    ) where
        F: Future<Output = Result<Value, E>>,
    {
        let missing = uris.iter().filter(|uri| self.get(server, uri).is_none());
        let read = &read;
        join_all(missing.map(|uri| async move {
            if let Ok(resource) = read(server.map(str::to_owned), uri.clone()).await {
                self.set(server, uri, resource);
            }
        }))
        .await;
    }

    /// Removes expired entries and returns their number.
    pub fn cleanup_expired(&self) -> usize {
        let mut entries = self.entries();
        let old = |(_, entry): &(&Key, &Entry)| !self.is_current(entry);
        let expired: Vec<Key> = entries.iter().filter(old).map(|(key, _)| key.clone()).collect();
        for key in &expired {
            entries.pop(key);
        }
        expired.len()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.entries().clear();
    }

    /// Returns the statistics.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let entries = self.entries();
        let size = entries.len();
        let effective_size = entries.iter().filter(|(_, entry)| self.is_current(entry)).count();
        let capacity = entries.cap().get();
        CacheStats { size, expired: size - effective_size, effective_size, capacity }
    }

    fn is_current(&self, entry: &Entry) -> bool {
        entry.read.elapsed() < self.lifetime
    }

    fn entries(&self) -> MutexGuard<'_, LruCache<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(server: Option<&str>, uri: &str) -> Key {
    (server.map(str::to_owned), uri.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cache(capacity: usize) -> ResourceCache {
        ResourceCache::new(NonZeroUsize::new(capacity).unwrap(), Duration::from_secs(60))
    }

    // F124
    #[tokio::test(start_paused = true)]
    async fn what_is_too_old_is_not_given() {
        let cache = cache(4);
        cache.set("s", "a", json!(1));
        tokio::time::advance(Duration::from_secs(40)).await;
        cache.set("s", "b", json!(2));
        tokio::time::advance(Duration::from_secs(40)).await;
        let stats = cache.stats();
        assert_eq!((stats.size, stats.expired, stats.effective_size), (2, 1, 1));
        assert_eq!(cache.cleanup_expired(), 1);
        assert!(cache.get("s", "a").is_none() && cache.get("s", "b").is_some());
        tokio::time::advance(Duration::from_secs(40)).await;
        assert!(cache.get("s", "b").is_none());
        assert_eq!(cache.stats().size, 0);
    }

    // F124
    #[tokio::test]
    async fn what_cannot_be_fetched_stays_away() {
        let cache = cache(4);
        cache.set("s", "kept", json!("old"));
        let uris = ["kept", "new", "bad"].map(str::to_owned);
        let read = |_, uri: String| async move {
            if uri == "bad" { Err("no such resource") } else { Ok(json!(uri)) }
        };
        cache.prefetch(Some("s"), &uris, read).await;
        assert_eq!(*cache.get("s", "kept").unwrap(), "old");
        assert_eq!(*cache.get("s", "new").unwrap(), "new");
        assert!(cache.get("s", "bad").is_none() && cache.get("other", "new").is_none());
    }
}
