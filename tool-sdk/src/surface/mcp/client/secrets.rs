//! What a server was handed that nobody else may read.
//!
//! A server may say it again in whatever it complains about: in an error, in what it writes to
//! its standard error, and in the result of a call that failed.
//!
//! **Invariant:** what a call that went well gives is left as it is: that is data, and whoever
//! asked for it may want just that.

use serde_json::Value;

use super::address::Address;
use super::remote::RemoteResult;
use super::upstream::Reach;
use crate::permission::spelt;
use crate::redact::Redactor;

/// Finds the secrets of one server, and whatever else looks like one.
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

    /// Words about the server, or by it, without its secrets and with nothing in them that
    /// hides.
    pub(super) fn told(&self, words: &str) -> String {
        spelt(&self.kept_back(words)).into_owned()
    }

    /// What a call gives that failed, without the secrets.
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
