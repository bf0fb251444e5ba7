//! Keeps the secrets of a session out of what the model, the user and the host's logs see.
//!
//! Arguments that contain a secret are refused, so that hooks, approvers, audit records and child
//! processes never get one with a call. Results and errors are masked before the after-hooks and
//! again at the end. Only values that the session's store has learned count, see
//! [`SecretStore`](crate::SecretStore).

use serde_json::Value;

use super::call_facts::CallFacts;
use super::inner::PipelineInner;
use super::invocation::Invocation;
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::ToolError;
use crate::permission::ApprovalRequest;
use crate::redact::Redactor;

impl Invocation<'_> {
    /// Fails when the arguments that the caller sent contain a secret.
    pub(super) fn refuse_secret_arguments(&self) -> Result<(), ToolError> {
        let Some(redactor) = self.session.secret_redactor() else { return Ok(()) };
        let sent = self.call.arguments.text();
        let is_clean = match serde_json::from_str::<Value>(sent) {
            Ok(mut value) => {
                let before = value.clone();
                redactor.mask_learned_in_value(&mut value);
                value == before
            }
            // Arguments that cannot be read fail anyway.
            Err(_) => true,
        };
        if is_clean {
            return Ok(());
        }
        Err(ToolError::invalid_args("the arguments contain the value of a secret")
            .hint("leave the value out; tools read secrets by their names"))
    }

    /// Masks the secrets in a result.
    pub(super) fn mask_secrets(&self, result: &mut Result<Output, ToolError>) {
        if let Some(redactor) = self.session.secret_redactor() {
            match result {
                Ok(output) => output.mask_texts(&redactor),
                Err(error) => error.mask_texts(&redactor),
            }
        }
    }
}

impl Invocation<'_> {
    /// Masks the secrets in what another program is told about the call, which cannot mask them.
    pub(super) fn mask_facts(
        &self,
        described: Result<CallFacts, ToolError>,
    ) -> Result<CallFacts, ToolError> {
        let Some(redactor) = self.session.secret_redactor() else { return described };
        let mut facts = described.map_err(|mut error| {
            error.mask_texts(&redactor);
            error
        })?;
        if let Some(summary) = &mut facts.summary {
            redactor.mask_learned(summary);
        }
        match &mut facts.preview {
            Ok(Some(preview)) => redactor.mask_learned_in_value(preview),
            Ok(None) => {}
            Err(failure) => {
                redactor.mask_learned(&mut failure.message);
                failure.hint.iter_mut().for_each(|hint| redactor.mask_learned(hint));
            }
        }
        Ok(facts)
    }
}

/// Masks the secrets in what an approver is shown. The arguments contain none.
pub(super) fn mask_request(session: &Session, ask: &mut ApprovalRequest) {
    let Some(redactor) = session.secret_redactor() else { return };
    redactor.mask_learned(&mut ask.reason);
    if let Some(summary) = &mut ask.summary {
        redactor.mask_learned(summary);
    }
    if let Some(preview) = &mut ask.preview {
        redactor.mask_learned_in_value(preview);
    }
}

impl PipelineInner {
    /// Returns the redactors for events of a session: that of the host, and that of the session's
    /// secrets where it is another one.
    pub(super) fn redactors(&self, session: &Session) -> impl Iterator<Item = Redactor> {
        let host = self.redactor.as_deref().cloned();
        let own = session.secret_redactor();
        let is_same = host.iter().zip(&own).any(|(host, own)| host.shares_learned(own));
        own.filter(|_| !is_same).into_iter().chain(host)
    }

    /// Masks the secrets in what a tool asks the user.
    pub(super) fn mask_inquiry(cx: &Context, params: &mut Value) {
        if let Some(redactor) = cx.session().secret_redactor() {
            redactor.mask_learned_in_value(params);
        }
    }
}

impl Output {
    fn mask_texts(&mut self, redactor: &Redactor) {
        self.map_texts(&|text| redactor.mask_learned(text), &|value| {
            redactor.mask_learned_in_value(value);
        });
    }
}

impl ToolError {
    fn mask_texts(&mut self, redactor: &Redactor) {
        self.map_texts(&|text| redactor.mask_learned(text));
        if let Some(output) = self.output_mut() {
            output.mask_texts(redactor);
        }
        let mut causes = Vec::new();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            causes.push(format!("{error} {error:?}"));
            cause = error.source();
        }
        let mut text = causes.join(": ");
        let before = text.clone();
        redactor.mask_learned(&mut text);
        if text != before {
            self.replace_source("the cause contained a secret");
        }
    }
}
