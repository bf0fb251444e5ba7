//! How whoever made a call, or holds its session, gives it up.
//!
//! Most calls end before anybody could; a token of their own would be most of what they are
//! made of. So there is one only once somebody waits for it, or has something to cancel.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// A token that is made when somebody wants it; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LazyCancelToken(Arc<OnceLock<CancellationToken>>);

impl LazyCancelToken {
    /// The token itself.
    pub(crate) fn token(&self) -> &CancellationToken {
        self.0.get_or_init(CancellationToken::new)
    }

    /// Whether it was cancelled.
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.get().is_some_and(CancellationToken::is_cancelled)
    }

    /// The same for another call: this one, where nobody else knows of it.
    #[cfg(feature = "mcp")]
    #[inline]
    pub(crate) fn for_new_call(mut self) -> Self {
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

    // What cancels the next call cancels none before it.
    #[cfg(feature = "mcp")]
    #[test]
    fn nobody_who_has_it_has_that_of_the_next_call() {
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
