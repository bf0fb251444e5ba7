//! Resources of servers, kept for a while, and fetched before anybody asks for them.
//!
//! The cache knows no server, the previews know no connection: both are handed a way to
//! fetch.
//!
//! **Invariant:** no call waits for anything here.

mod cache;
mod prefetch;

pub use self::cache::{CacheStats, ResourceCache};
pub use self::prefetch::ResourcePrefetcher;
