//! The nonces of permits that a worker has seen, so that each permit counts once.
//!
//! **Invariant:** a nonce is remembered at least until its permit expires.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many nonces are remembered; more permits at a time are refused.
const MAX_NONCES: usize = 1 << 18;

/// Used nonces, with the time in milliseconds since 1970 at which they can be forgotten.
#[derive(Debug, Default)]
pub(crate) struct UsedNonces(Mutex<HashMap<String, u64>>);

impl UsedNonces {
    /// Uses a nonce; `false` when it was used before, or when too many are remembered.
    pub(crate) fn use_once(&self, nonce: &str, expires_ms: u64, now_ms: u64) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Amortized: a sweep at each power of two.
        if used.len().is_power_of_two() {
            used.retain(|_, until| *until >= now_ms);
        }
        if used.len() >= MAX_NONCES || used.contains_key(nonce) {
            return false;
        }
        used.insert(nonce.to_owned(), expires_ms);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_counts_once_until_it_expires() {
        let used = UsedNonces::default();
        assert!(used.use_once("a", 10, 0));
        assert!(!used.use_once("a", 10, 5));
        assert!(used.use_once("b", 10, 5));
        assert!(used.use_once("a", 20, 11), "its permit has expired, so it is refused anyway");
    }
}
