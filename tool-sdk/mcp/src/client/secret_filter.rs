//! Redacts the secrets of a server: environment variables, headers and tokens that it was given.
//!
//! A server may repeat them in an error, on standard error, or in the result of a failed call.
//!
//! **Invariant:** the result of a successful call is left as it is: it is data, and the caller may
//! have asked for just that.

use std::sync::Arc;

use serde_json::Value;
use tool_sdk_core::{Redactor, internal::spell_hidden};

use super::authorization::TokenSource;
use super::config::TransportConfig;
use super::http_endpoint::HttpEndpoint;
use super::remote::RemoteResult;

/// Redacts the secrets of one server, and values that look like secrets.
pub(super) struct SecretFilter {
    redactor: Redactor,
    endpoint: Option<HttpEndpoint>,
    /// Its tokens change, so they are looked up each time.
    tokens: Option<Arc<TokenSource>>,
}

/// Replaces each token.
const REDACTED: &str = "[hidden]";

impl SecretFilter {
    pub(super) fn for_transport(reach: &TransportConfig, tokens: Option<Arc<TokenSource>>) -> Self {
        let endpoint = match reach {
            TransportConfig::Http(address) => Some(address.clone()),
            TransportConfig::Stdio(_) | TransportConfig::Custom(_) => None,
        };
        Self { redactor: reach.build_redactor(), endpoint, tokens }
    }

    /// Returns a text about or from the server, redacted and with invisible characters escaped.
    pub(super) fn clean_text(&self, words: &str) -> String {
        spell_hidden(&self.redact_text(words)).into_owned()
    }

    /// Redacts the result of a failed call.
    pub(super) fn redact_result(&self, result: &mut RemoteResult) {
        result.content.iter_mut().for_each(|block| self.redact_value(block));
        result.structured_content.iter_mut().for_each(|value| self.redact_value(value));
        let meta = result.meta.iter_mut().flat_map(|meta| meta.values_mut());
        meta.for_each(|value| self.redact_value(value));
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => members.values_mut().for_each(|item| self.redact_value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn redact_text(&self, words: &str) -> String {
        let mut words = match &self.endpoint {
            Some(address) => address.redact_url_in(words),
            None => words.to_owned(),
        };
        for token in self.tokens.iter().flat_map(|tokens| tokens.secret_values()) {
            words = words.replace(&token, REDACTED);
        }
        self.redactor.redact(&words).into_owned()
    }
}
