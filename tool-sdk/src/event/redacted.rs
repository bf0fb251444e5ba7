//! Events without secrets, for hosts that say what a secret is.
//!
//! What somebody is asked to approve is shown to them as it is; only the event that tells of
//! the ask is changed.

use std::sync::Arc;

use super::{Arguments, Ending, EventKind};
use crate::permission::{Ask, Decision, Rule};
use crate::redact::Redactor;
use crate::tool::Subject;

impl EventKind {
    /// Takes out of every text what `redactor` finds.
    #[cold]
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        match self {
            Self::Pending { arguments, summary, .. } => {
                if let Some(summary) = summary {
                    redactor.scrub_cut(summary, arguments);
                }
                *arguments = arguments.redacted(redactor);
            }
            Self::Started { arguments } => {
                *arguments = arguments.take().map(|arguments| arguments.redacted(redactor));
            }
            Self::HookFinished(run) => redactor.scrub(&mut run.outcome),
            Self::PermissionAsked(ask) => redact_ask(Arc::make_mut(ask), redactor),
            Self::Denied(decision) => redact_decision(decision, redactor),
            Self::Warned { message } | Self::Progress { message, .. } => redactor.scrub(message),
            Self::Metadata { value, .. } | Self::Emitted { data: value, .. } => {
                redactor.redact_value(Arc::make_mut(value));
            }
            Self::Output { text } => redactor.scrub(text),
            Self::Completed { title, data, artifacts, .. } => {
                redactor.scrub_each(title);
                if let Some(data) = data {
                    redactor.redact_value(Arc::make_mut(data));
                }
                artifacts.iter_mut().for_each(|artifact| redactor.scrub_each(&mut artifact.name));
            }
            Self::Failed(Ending { message, .. })
            | Self::Aborted(Ending { message, .. })
            | Self::TimedOut(Ending { message, .. }) => redactor.scrub(message),
            Self::HookStarted { .. }
            | Self::PermissionReplied { .. }
            | Self::Looped { .. }
            | Self::Truncated(_)
            | Self::Lost { .. } => {}
        }
    }
}

impl Arguments {
    fn redacted(&self, redactor: &Redactor) -> Self {
        let mut value = (**self).clone();
        redactor.redact_value(&mut value);
        Self::of_value(value)
    }
}

fn redact_ask(ask: &mut Ask, redactor: &Redactor) {
    if let Some(summary) = &mut ask.summary {
        redactor.scrub_cut(summary, &ask.arguments);
    }
    redactor.redact_value(&mut ask.arguments);
    for value in ask.original.iter_mut().chain(&mut ask.preview) {
        redactor.redact_value(value);
    }
    redactor.scrub_each(&mut ask.suggestions);
    redactor.scrub(&mut ask.reason);
    redact_subjects(&mut ask.subjects, redactor);
    redact_rules(&mut ask.rules, redactor);
}

fn redact_decision(decision: &mut Decision, redactor: &Redactor) {
    redactor.scrub(decision.reason.to_mut());
    redact_subjects(&mut decision.subjects, redactor);
    redact_rules(&mut decision.rules, redactor);
}

fn redact_subjects(subjects: &mut [Subject], redactor: &Redactor) {
    for subject in subjects {
        *subject = subject.clone().redacted(redactor);
    }
}

fn redact_rules(rules: &mut [Rule], redactor: &Redactor) {
    for rule in rules {
        rule.pattern = redactor.redact(rule.pattern.as_str()).into_owned().into();
    }
}
