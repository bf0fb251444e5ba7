//! The end of a call: truncation, observers, the audit record and the one terminal event.
//!
//! **Invariant:** a call whose pending event was emitted has exactly one terminal event, also
//! when its future is dropped.

use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::invocation::Invocation;
use super::trace::log_cause;
use super::truncate::truncate_result;
use crate::call::{Outcome, OutcomeMetadata};
use crate::content::Output;
use crate::error::{ErrorKind, ToolError};
use crate::event::{Artifact, CallFailure, EventKind, MaskedArguments, millis};
use crate::tool::PreparedCall;

/// Dropping the future of a call cancels the call.
impl Drop for Invocation<'_> {
    fn drop(&mut self) {
        if self.pending_event.is_some() {
            let result = Err(ToolError::aborted("the call was dropped"));
            self.conclude(Outcome { call: self.origin.id.clone(), result, metadata: None });
        }
    }
}

impl Invocation<'_> {
    /// Emits that the arguments were understood.
    pub(super) fn emit_pending(&mut self, prepared: &dyn PreparedCall) {
        let pending = self.emit(|| EventKind::Pending {
            arguments: MaskedArguments::new(self.arguments(), &self.label.display),
            summary: catch_unwind(AssertUnwindSafe(|| self.summarize(prepared))).ok().flatten(),
            // A panic fails the call when it runs; here it only leaves out the notes.
            notes: catch_unwind(AssertUnwindSafe(|| prepared.notes().into())).unwrap_or_default(),
        });
        self.pending_event = Some(pending);
    }

    /// Returns the summary of the call, by the pattern of the host or as the tool says.
    pub(super) fn summarize(&self, prepared: &dyn PreparedCall) -> Option<String> {
        let display = &self.label.display;
        if self.label.has_host_summary {
            return display.summarize(&display.mask_arguments(self.arguments()));
        }
        let summary = prepared.summary()?;
        // A pattern cannot name a sensitive argument.
        match self.definition().display.summary {
            Some(_) => Some(summary),
            None => Some(display.mask_text(summary, self.arguments())),
        }
    }

    /// Emits that the tool runs, with the arguments where a hook rewrote them.
    pub(super) fn emit_started(&mut self) {
        self.has_run = true;
        self.emit(|| {
            let display = &self.label.display;
            let rewritten = self.rewritten.as_ref();
            EventKind::Started {
                arguments: rewritten.map(|raw| MaskedArguments::new(raw.text(), display)),
            }
        });
    }

    /// Ends the call: truncates the text, then concludes it.
    pub(super) fn finish(&mut self, mut result: Result<Output, ToolError>) -> Outcome {
        self.mask_secrets(&mut result);
        if let Err(error) = &result {
            log_cause(self.definition().name.as_str(), error);
        }
        self.enter_stage("truncate");
        self.conclude_loop_guard(&result);
        if let Some(truncated) = truncate_result(self, &mut result) {
            self.metadata.truncation = Some(truncated);
        }
        self.enter_stage("finish");
        let metadata = take(&mut self.metadata);
        let aside = (metadata != OutcomeMetadata::default()).then(|| Box::new(metadata));
        let outcome = Outcome { call: self.origin.id.clone(), result, metadata: aside };
        self.pending_event.get_or_insert(0);
        let outcome = self.conclude(outcome);
        self.exit_stage();
        outcome
    }

    /// Shows the outcome to the observers, the audit log and the subscribers.
    fn conclude(&mut self, outcome: Outcome) -> Outcome {
        let pending = self.pending_event.take().unwrap_or_default();
        self.notify_observers(&outcome);
        self.record_run(&outcome.result);
        self.inner.flush_held_output(self.session, &self.definition().name, &self.origin);
        self.emit_after(pending, || self.terminal_event(&outcome.result));
        outcome
    }

    fn terminal_event(&self, result: &Result<Output, ToolError>) -> EventKind {
        let elapsed = self.started.elapsed();
        match result {
            Ok(output) => EventKind::Completed {
                elapsed_ms: millis(elapsed),
                title: output.title_text().map(str::to_owned),
                data: output.display_data().cloned().map(Arc::new),
                artifacts: output.attachments().iter().map(Artifact::from_attachment).collect(),
            },
            Err(error) => {
                let ending = CallFailure::new(error, elapsed);
                match error.kind() {
                    ErrorKind::Aborted => EventKind::Aborted(ending),
                    ErrorKind::Timeout => EventKind::TimedOut(ending),
                    _ => EventKind::Failed(ending),
                }
            }
        }
    }
}
