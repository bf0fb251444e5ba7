//! The public keys of an issuer: fetched when they are needed, cached, and fetched again when the key of
//! a token is not among them.
//!
//! **Invariant:** tokens of strangers cause at most one request to the issuer in 30 seconds, and keys
//! that could not be confirmed for a day are not used.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::jwk::JwkSet;
use tokio::time::{Instant, timeout};
use tool_sdk_mcp::internal::fetch_issuer_keys;

/// How long keys are used without being fetched again.
const MAX_AGE: Duration = Duration::from_hours(1);

/// How long keys are used when they cannot be fetched again.
const MAX_STALE_AGE: Duration = Duration::from_hours(24);

/// The shortest time between two requests.
const MIN_INTERVAL: Duration = Duration::from_secs(30);

/// How long the issuer may take, because a request of a client waits for it.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// How many keys of an issuer are used.
const MAX_KEYS: usize = 100;

/// The keys of one issuer.
pub(super) struct IssuerKeyCache {
    issuer: String,
    state: Mutex<KeyState>,
    /// Held during a request, so that concurrent tokens share it.
    fetch_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KeyState {
    keys: Option<Arc<JwkSet>>,
    fetched_at: Option<Instant>,
    last_attempt: Option<Instant>,
}

impl KeyState {
    fn is_old(&self) -> bool {
        self.fetched_at.is_none_or(|at| at.elapsed() >= MAX_AGE)
    }

    fn may_fetch(&self) -> bool {
        self.last_attempt.is_none_or(|at| at.elapsed() >= MIN_INTERVAL)
    }
}

impl IssuerKeyCache {
    pub(super) fn new(issuer: &str) -> Self {
        let (state, fetch_lock) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { issuer: issuer.to_owned(), state, fetch_lock }
    }

    /// Returns the keys, if there are any that are not too old.
    pub(super) fn current_keys(&self) -> Option<Arc<JwkSet>> {
        let state = self.lock_state();
        let is_usable = state.fetched_at.is_some_and(|at| at.elapsed() < MAX_STALE_AGE);
        state.keys.clone().filter(|_| is_usable)
    }

    /// Fetches the keys if they are missing or old, or if `has_key` does not find the key of a token
    /// among them. An error keeps those that are there.
    pub(super) async fn refresh_if_due(&self, has_key: impl Fn(&JwkSet) -> bool) {
        if !self.is_due(&has_key) {
            return;
        }
        let _turn = self.fetch_lock.lock().await;
        if !self.is_due(&has_key) {
            return;
        }
        self.lock_state().last_attempt = Some(Instant::now());
        match timeout(FETCH_TIMEOUT, fetch_issuer_keys(&self.issuer)).await {
            Ok(Ok(body)) => self.replace_keys(&body),
            Ok(Err(error)) => {
                tracing::warn!(issuer = self.issuer, %error, "the keys of the token issuer were not fetched");
            }
            Err(_) => {
                tracing::warn!(issuer = self.issuer, "the token issuer did not answer in time");
            }
        }
    }

    /// Whether the keys are to be fetched for a token whose key `has_key` finds.
    fn is_due(&self, has_key: impl Fn(&JwkSet) -> bool) -> bool {
        let (keys, is_old) = {
            let state = self.lock_state();
            if !state.may_fetch() {
                return false;
            }
            (state.keys.clone(), state.is_old())
        };
        is_old || keys.is_none_or(|keys| !has_key(&keys))
    }

    /// Replaces the keys by those of a response, if it is a key set.
    fn replace_keys(&self, body: &[u8]) {
        match serde_json::from_slice::<JwkSet>(body) {
            Ok(mut keys) => {
                keys.keys.truncate(MAX_KEYS);
                let mut state = self.lock_state();
                (state.keys, state.fetched_at) = (Some(Arc::new(keys)), Some(Instant::now()));
            }
            Err(error) => {
                tracing::warn!(issuer = self.issuer, %error, "the token issuer did not send a JSON Web Key Set");
            }
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, KeyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the keys that the issuer would return, for tests of tokens.
    #[cfg(test)]
    pub(super) fn with_keys(self, body: &[u8]) -> Self {
        self.replace_keys(body);
        self.lock_state().last_attempt = Some(Instant::now());
        self
    }
}
