//! Idempotency keys: a repeated request gets the first result and runs nothing twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde_json::{Value, json};
use tool_sdk_core::ErrorKind;

use super::problem::ProblemDetails;
use super::running_calls::{CallHandle, NewCall};
use super::sessions::is_unnamed_session;
use crate::auth::HttpCaller;
use crate::token::TokenDigest;

/// How long a key is known.
const KEY_LIFETIME: Duration = Duration::from_hours(24);
/// How many keys of one user are known.
const MAX_KEYS_PER_USER: usize = 4096;

/// The known keys: each of one user.
#[derive(Default)]
pub(super) struct IdempotencyTable(Arc<Mutex<Keys>>);

type Keys = HashMap<KeyOwner, KeyEntry>;

/// A key and its user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KeyOwner {
    user: Option<String>,
    key: String,
}

struct KeyEntry {
    /// What the request asked for.
    digest: TokenDigest,
    since: Instant,
    /// The call, once it has started.
    call: Option<CallHandle>,
}

/// Whether a key is new.
pub(super) enum KeyClaim {
    /// It is new: the request makes the call.
    First(KeyTicket),
    /// The same request was sent before.
    Repeated(CallHandle),
}

/// The right to make the call of a key. A ticket that is dropped without a call frees the key.
pub(super) struct KeyTicket {
    keys: Arc<Mutex<Keys>>,
    owner: KeyOwner,
}

fn lock(keys: &Mutex<Keys>) -> MutexGuard<'_, Keys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IdempotencyTable {
    /// Claims a key for the calls of a request.
    ///
    /// # Errors
    ///
    /// Fails when the key was used for another request, and when the user has too many keys.
    pub(super) fn claim(
        &self,
        caller: &HttpCaller,
        key: &str,
        calls: &[NewCall],
    ) -> Result<KeyClaim, ProblemDetails> {
        let owner = KeyOwner { user: caller.user().map(str::to_owned), key: key.to_owned() };
        let digest = request_digest(calls);
        let mut keys = lock(&self.0);
        if let Some(entry) = keys.get(&owner)
            && entry.since.elapsed() < KEY_LIFETIME
        {
            return entry.repeat(&digest);
        }
        if keys.keys().filter(|it| it.user == owner.user).count() >= MAX_KEYS_PER_USER {
            keys.retain(|_, entry| entry.since.elapsed() < KEY_LIFETIME);
        }
        if keys.keys().filter(|it| it.user == owner.user).count() >= MAX_KEYS_PER_USER {
            let error = format!("{MAX_KEYS_PER_USER} of your idempotency keys are in use");
            return Err(ProblemDetails::busy(error).suggest("send the request without a key"));
        }
        keys.insert(owner.clone(), KeyEntry { digest, since: Instant::now(), call: None });
        Ok(KeyClaim::First(KeyTicket { keys: Arc::clone(&self.0), owner }))
    }
}

impl KeyEntry {
    fn repeat(&self, digest: &TokenDigest) -> Result<KeyClaim, ProblemDetails> {
        if !self.digest.matches(digest) {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let error = "the idempotency key was used for another request";
            return Err(ProblemDetails::new(status, ErrorKind::Conflict.as_str(), error)
                .suggest("send a new key with each new request"));
        }
        match &self.call {
            Some(call) => Ok(KeyClaim::Repeated(call.follow())),
            None => Err(ProblemDetails::conflict("the first request with this key is starting")
                .suggest("repeat the request")),
        }
    }
}

/// Returns the digest of what the calls ask for: session, tool and arguments. Every call without a
/// named session has another one.
fn request_digest(calls: &[NewCall]) -> TokenDigest {
    let wanted = |call: &NewCall| {
        let id = call.session.id();
        let session = if is_unnamed_session(id) { "" } else { id };
        json!([session, call.session.project(), call.tool, call.arguments])
    };
    TokenDigest::new(&Value::from_iter(calls.iter().map(wanted)).to_string())
}

impl KeyTicket {
    /// Remembers the call, so that repeated requests get its result.
    pub(super) fn set_call(self, call: CallHandle) {
        if let Some(entry) = lock(&self.keys).get_mut(&self.owner) {
            entry.call = Some(call);
        }
    }
}

impl Drop for KeyTicket {
    fn drop(&mut self) {
        let mut keys = lock(&self.keys);
        if keys.get(&self.owner).is_some_and(|entry| entry.call.is_none()) {
            keys.remove(&self.owner);
        }
    }
}
