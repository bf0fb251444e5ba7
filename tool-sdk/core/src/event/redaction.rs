//! Masks secrets in events, for hosts that configure a redactor.
//!
//! The approver sees the request unmasked; only the event about the request is changed.

use std::sync::Arc;

use super::{CallFailure, EventKind, MaskedArguments};
use crate::permission::{ApprovalRequest, Decision, Rule};
use crate::redact::{DetectedSecrets, Redactor};
use crate::tool::Resource;

impl EventKind {
    /// Masks all secrets that `redactor` finds, and the parts of them that remain from any
    /// version of the `arguments` of the call.
    #[cold]
    pub(crate) fn redact(&mut self, redactor: &Redactor, arguments: &[&str]) {
        let spotted = || DetectedSecrets::from_arguments(redactor, arguments);
        match self {
            Self::Pending { arguments, summary, .. } => {
                if let Some(summary) = summary {
                    let mut spotted = DetectedSecrets::default();
                    spotted.scan_value(redactor, arguments);
                    redactor.redact_call_text(summary, &spotted);
                }
                *arguments = arguments.redacted(redactor);
            }
            Self::Started { arguments } => {
                *arguments = arguments.take().map(|arguments| arguments.redacted(redactor));
            }
            Self::HookFinished(run) => redactor.redact_call_text(&mut run.outcome, &spotted()),
            Self::PermissionAsked(ask) => redact_request(Arc::make_mut(ask), redactor, spotted()),
            Self::Denied(decision) => redact_decision(decision, redactor, spotted()),
            Self::Warned { message } | Self::Progress { message, .. } => {
                redactor.redact_call_text(message, &spotted());
            }
            Self::Metadata { value, .. } | Self::Emitted { data: value, .. } => {
                redactor.redact_value(Arc::make_mut(value));
            }
            Self::Output { text } => redactor.redact_in_place(text),
            Self::Completed { title, data, artifacts, .. } => {
                let names = artifacts.iter_mut().filter_map(|artifact| artifact.name.as_mut());
                let mut texts = title.iter_mut().chain(names).peekable();
                if texts.peek().is_some() || data.is_some() {
                    let spotted = spotted();
                    texts.for_each(|text| redactor.redact_call_text(text, &spotted));
                    if let Some(data) = data {
                        redactor.redact_call_value(Arc::make_mut(data), &spotted);
                    }
                }
            }
            Self::Failed(CallFailure { message, .. })
            | Self::Aborted(CallFailure { message, .. })
            | Self::TimedOut(CallFailure { message, .. }) => {
                redactor.redact_call_text(message, &spotted())
            }
            Self::HookStarted { .. }
            | Self::PermissionReplied { .. }
            | Self::Looped { .. }
            | Self::Truncated(_)
            | Self::Lost { .. } => {}
        }
    }
}

impl MaskedArguments {
    fn redacted(&self, redactor: &Redactor) -> Self {
        let mut value = (**self).clone();
        redactor.redact_value(&mut value);
        Self::from_value(value)
    }
}

fn redact_request(ask: &mut ApprovalRequest, redactor: &Redactor, mut spotted: DetectedSecrets) {
    for value in ask.original.iter().chain([&ask.arguments]) {
        spotted.scan_value(redactor, value);
    }
    detect_in_resources(&mut spotted, &ask.subjects, redactor);
    redactor.redact_value(&mut ask.arguments);
    if let Some(original) = &mut ask.original {
        redactor.redact_value(original);
    }
    if let Some(preview) = &mut ask.preview {
        redactor.redact_call_value(preview, &spotted);
    }
    let told = ask.summary.iter_mut().chain(&mut ask.suggestions).chain([&mut ask.reason]);
    told.for_each(|text| redactor.redact_call_text(text, &spotted));
    redact_resources(&mut ask.subjects, redactor);
    redact_rules(&mut ask.rules, redactor);
}

fn redact_decision(decision: &mut Decision, redactor: &Redactor, mut spotted: DetectedSecrets) {
    detect_in_resources(&mut spotted, &decision.subjects, redactor);
    redactor.redact_call_text(decision.reason.to_mut(), &spotted);
    redact_resources(&mut decision.subjects, redactor);
    redact_rules(&mut decision.rules, redactor);
}

fn detect_in_resources(spotted: &mut DetectedSecrets, subjects: &[Resource], redactor: &Redactor) {
    let texts = subjects.iter().flat_map(Resource::forbidden_spellings);
    texts.for_each(|text| spotted.scan_text(redactor, text));
}

/// Resources are masked as a whole, so that no part of a secret remains.
fn redact_resources(subjects: &mut [Resource], redactor: &Redactor) {
    for subject in subjects {
        *subject = subject.clone().redacted(redactor);
    }
}

fn redact_rules(rules: &mut [Rule], redactor: &Redactor) {
    for rule in rules {
        let mut pattern = rule.pattern.as_str().to_owned();
        redactor.redact_in_place(&mut pattern);
        rule.pattern = pattern.into();
    }
}
