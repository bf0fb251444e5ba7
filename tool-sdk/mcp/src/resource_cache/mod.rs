//! A cache for resources of other MCP servers, with prefetching.
//!
//! The cache does not depend on servers, the prefetcher not on connections: both get a callback
//! that reads a resource.
//!
//! **Invariant:** no tool call waits for a fetch.

mod cache;
mod prefetch;

pub use self::cache::{CacheStats, ResourceCache};
pub use self::prefetch::ResourcePrefetcher;
