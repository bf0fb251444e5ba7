//! A cancellation token that is created on first use.
//!
//! Most calls end before they could be cancelled, and creating a token would be most of the cost
//! of such a call. So the token is created only when a task waits for it or cancels it.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// A cancellation token that is created on first use; clones share it.
#[derive(Clone, Debug, Default)]
pub struct LazyCancelToken(Arc<OnceLock<CancellationToken>>);

impl LazyCancelToken {
    /// Returns the token; creates it on first use.
    #[doc(hidden)]
    pub fn token(&self) -> &CancellationToken {
        self.0.get_or_init(CancellationToken::new)
    }

    /// Returns whether the token was cancelled.
    #[inline]
    #[doc(hidden)]
    pub fn is_cancelled(&self) -> bool {
        self.0.get().is_some_and(CancellationToken::is_cancelled)
    }

    /// Returns a token for another call: this one if it is unused and has no clones, otherwise a
    /// new one.
    #[inline]
    #[doc(hidden)]
    pub fn for_new_call(mut self) -> Self {
        match Arc::get_mut(&mut self.0) {
            Some(token) if token.get().is_none() => self,
            _ => Self::default(),
        }
    }
}

impl From<CancellationToken> for LazyCancelToken {
    fn from(token: CancellationToken) -> Self {
        Self(Arc::new(token.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_share_it_see_that_it_is_cancelled() {
        let cancel = LazyCancelToken::default();
        let before = cancel.clone();
        assert!(!before.is_cancelled());
        cancel.token().cancel();
        assert!(before.is_cancelled() && cancel.clone().is_cancelled());
        assert!(before.token().is_cancelled());
    }

    // Cancelling the next call does not cancel an earlier one.
    #[test]
    fn each_call_has_a_token_of_its_own() {
        let unknown = LazyCancelToken::default().for_new_call();
        let known = unknown.clone();
        let next = unknown.for_new_call();
        next.token().cancel();
        assert!(!known.is_cancelled());

        let asked = LazyCancelToken::default();
        let token = asked.token().clone();
        asked.for_new_call().token().cancel();
        assert!(!token.is_cancelled());
    }
}
