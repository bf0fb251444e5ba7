//! The nonces of permits that a worker has seen, so that each permit counts once.
//!
//! **Invariant:** a nonce is remembered at least until its permit expires.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::permit::is_random_id;
use crate::protocol::WorkerRefusal;

/// How many nonces are remembered; more permits at a time are refused.
const MAX_NONCES: usize = 1 << 18;

/// How many cancellations are remembered that came before their call.
const MAX_CANCELLED: usize = 4096;

/// Used nonces, with the time in milliseconds since 1970 at which they can be forgotten.
#[derive(Debug, Default)]
pub(crate) struct UsedNonces(Mutex<HashMap<String, u64>>);

impl UsedNonces {
    /// Uses a nonce. Fails when it was used before, or when too many are remembered.
    pub(crate) fn use_once(
        &self,
        nonce: &str,
        expires_ms: u64,
        now_ms: u64,
    ) -> Result<(), WorkerRefusal> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Amortized: a sweep at each power of two, and whenever there is no room.
        if used.len().is_power_of_two() || used.len() >= MAX_NONCES {
            used.retain(|_, until| *until >= now_ms);
        }
        if used.contains_key(nonce) {
            return Err(WorkerRefusal::Replayed);
        }
        if used.len() >= MAX_NONCES {
            return Err(WorkerRefusal::Busy);
        }
        used.insert(nonce.to_owned(), expires_ms);
        Ok(())
    }
}

/// The nonces of calls that a host cancelled before they arrived. Cancellations need no permit, so
/// the newest ones count, and no number of them keeps other calls from running.
#[derive(Debug, Default)]
pub(crate) struct CancelledNonces {
    order: VecDeque<String>,
    known: HashSet<String>,
}

impl CancelledNonces {
    /// Remembers a nonce; a text that is none is ignored.
    pub(crate) fn insert(&mut self, nonce: &str) {
        if !is_random_id(nonce) || !self.known.insert(nonce.to_owned()) {
            return;
        }
        self.order.push_back(nonce.to_owned());
        if self.order.len() > MAX_CANCELLED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, nonce: &str) -> bool {
        self.known.contains(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_counts_once_until_it_expires() {
        let used = UsedNonces::default();
        assert!(used.use_once("a", 10, 0).is_ok());
        assert_eq!(used.use_once("a", 10, 5), Err(WorkerRefusal::Replayed));
        assert!(used.use_once("b", 10, 5).is_ok());
        assert!(
            used.use_once("a", 20, 11).is_ok(),
            "its permit has expired, so it is refused anyway"
        );
    }

    #[test]
    fn the_newest_cancellations_count() {
        let mut cancelled = CancelledNonces::default();
        let nonce = |number: usize| format!("{number:032x}");
        for number in 0..=MAX_CANCELLED {
            cancelled.insert(&nonce(number));
        }
        cancelled.insert("no nonce");
        cancelled.insert(&"x".repeat(32));
        assert!(!cancelled.contains(&nonce(0)) && cancelled.contains(&nonce(MAX_CANCELLED)));
        assert_eq!((cancelled.order.len(), cancelled.known.len()), (MAX_CANCELLED, MAX_CANCELLED));
    }
}
