//! Holds back output that may be the beginning of a secret, until more output follows.
//!
//! **Invariant:** the held text is no longer than a few secrets, and is released before its call
//! ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::CallId;
use crate::context::Session;
use crate::redact::Redactor;

/// Held output of calls. Without known secrets, nothing is held.
#[derive(Default)]
pub(crate) struct SecretHoldback(Mutex<HashMap<CallKey, String>>);

/// A session and a call.
type CallKey = (Arc<str>, CallId);

impl SecretHoldback {
    /// The maximum number of calls with held output. A call that emits output after its end would
    /// otherwise leave its last text here forever.
    const MAX_CALLS: usize = 1 << 10;

    /// Returns the part of the output that can be published now that `text` has arrived, with
    /// secrets masked; `None` when all of it is held.
    pub(crate) fn hold_back(
        &self,
        redactor: &Redactor,
        session: &Session,
        call: &CallId,
        mut text: String,
    ) -> Option<String> {
        if !redactor.has_known_secrets() || text.is_empty() {
            redactor.redact_in_place(&mut text);
            return Some(text);
        }
        let of = (Arc::clone(session.shared_id()), call.clone());
        let mut held = self.lock_outputs();
        if let Some(before) = held.remove(&of) {
            text.insert_str(0, &before);
        }
        let settled = redactor.stable_prefix_len(&text);
        if settled < text.len() {
            if held.len() >= Self::MAX_CALLS
                && let Some(other) = held.keys().next().cloned()
            {
                held.remove(&other);
            }
            held.insert(of, text.split_off(settled));
        }
        drop(held);
        redactor.redact_in_place(&mut text);
        (!text.is_empty()).then_some(text)
    }

    /// Returns the held output of a call that ends.
    pub(crate) fn release(
        &self,
        redactor: &Redactor,
        session: &Session,
        call: &CallId,
    ) -> Option<String> {
        if !redactor.has_known_secrets() {
            return None;
        }
        let mut held = self.lock_outputs();
        if held.is_empty() {
            return None;
        }
        let mut text = held.remove(&(Arc::clone(session.shared_id()), call.clone()))?;
        drop(held);
        redactor.redact_in_place(&mut text);
        Some(text)
    }

    /// A poisoned lock still guards valid data: no operation panics half-way.
    fn lock_outputs(&self) -> MutexGuard<'_, HashMap<CallKey, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push_texts(
        held: &SecretHoldback,
        redactor: &Redactor,
        call: &str,
        texts: &[&str],
    ) -> Vec<Option<String>> {
        let (session, call) = (Session::new("s"), CallId::from_external(call));
        let next = |text: &&str| held.hold_back(redactor, &session, &call, (*text).to_owned());
        texts.iter().map(next).collect()
    }

    // F62: a program prints a secret in several pieces.
    #[test]
    fn a_secret_that_comes_in_pieces_is_not_told() {
        let redactor = Redactor::new(["Zx9q8w7e6r5t4"]);
        let (held, session) = (SecretHoldback::default(), Session::new("s"));
        let texts = ["a Zx9q", "8w7e", "6r5t4 b", "Zx9", "y", "end Z"];
        let expected = [Some("a "), None, Some("[redacted] b"), None, Some("Zx9y"), Some("end ")];
        let expected = expected.map(|text| text.map(str::to_owned));
        assert_eq!(push_texts(&held, &redactor, "1", &texts), expected);
        // Another call is not affected.
        assert_eq!(push_texts(&held, &redactor, "2", &["x9q"]), [Some("x9q".to_owned())]);
        let rest = || held.release(&redactor, &session, &CallId::from_external("1"));
        assert_eq!((rest(), rest()), (Some("Z".to_owned()), None));
        assert!(held.lock_outputs().is_empty());
    }

    #[test]
    fn nothing_waits_without_secrets() {
        let held = SecretHoldback::default();
        let expected = [Some("a Zx9q".to_owned()), Some(String::new())];
        assert_eq!(push_texts(&held, &Redactor::default(), "1", &["a Zx9q", ""]), expected);
        assert!(held.lock_outputs().is_empty());
    }

    #[test]
    fn what_waits_is_bounded() {
        let (held, redactor) = (SecretHoldback::default(), Redactor::new(["aaaaaaaaaaaa"]));
        for call in 0..3000 {
            push_texts(&held, &redactor, &call.to_string(), &["a"]);
        }
        push_texts(&held, &redactor, "1", &["a"; 1000]);
        let held = held.lock_outputs();
        assert_eq!(held.len(), SecretHoldback::MAX_CALLS);
        assert!(held.values().all(|text| text.len() <= 48));
    }
}
