//! Redacts the secrets of a server: environment variables, headers and tokens that it was given.
//!
//! A server may repeat them in an error, on standard error, or in the result of a failed call.
//!
//! **Invariant:** the result of a successful call is left as it is: it is data, and the caller may
//! have asked for just that.

use serde_json::Value;

use super::address::Address;
use super::remote::RemoteResult;
use super::upstream::Reach;
use crate::permission::spelt;
use crate::redact::Redactor;

/// Redacts the secrets of one server, and values that look like secrets.
pub(super) struct Secrets {
    redactor: Redactor,
    address: Option<Address>,
}

impl Secrets {
    pub(super) fn of(reach: &Reach) -> Self {
        let address = match reach {
            Reach::Address(address) => Some(address.clone()),
            Reach::Launch(_) | Reach::Custom(_) => None,
        };
        Self { redactor: reach.redactor(), address }
    }

    /// Returns a text about or from the server, redacted and with invisible characters escaped.
    pub(super) fn told(&self, words: &str) -> String {
        spelt(&self.kept_back(words)).into_owned()
    }

    /// Redacts the result of a failed call.
    pub(super) fn keep_back_in(&self, result: &mut RemoteResult) {
        result.content.iter_mut().for_each(|block| self.keep_back(block));
        result.structured_content.iter_mut().for_each(|value| self.keep_back(value));
        let meta = result.meta.iter_mut().flat_map(|meta| meta.values_mut());
        meta.for_each(|value| self.keep_back(value));
    }

    fn keep_back(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.kept_back(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.keep_back(item)),
            Value::Object(members) => members.values_mut().for_each(|item| self.keep_back(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn kept_back(&self, words: &str) -> String {
        let words = match &self.address {
            Some(address) => address.hide_in(words),
            None => words.to_owned(),
        };
        self.redactor.redact(&words).into_owned()
    }
}
