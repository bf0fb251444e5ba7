//! Writes audit records of a call: what was decided, and how the run ended.
//!
//! **Invariant:** a call whose decision cannot be recorded does not run.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::approval::ApprovalAnswer;
use super::authorize::unknown_call_decision;
use super::denial::denied_error;
use super::invocation::Invocation;
use super::session_files;
use crate::audit::{self, AuditEvent, AuditRecord};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::{ErrorKind, ToolError};
use crate::event::{EventKind, millis};
use crate::permission::{Action, Decision, DecisionSource, Fingerprint};
use crate::tool::{PreparedCall, Resource};

impl Invocation<'_> {
    /// Returns the fingerprint of the call, which also covers the folder and the sandbox in which
    /// it runs.
    pub(super) fn fingerprint(&self, prepared: &dyn PreparedCall) -> Fingerprint {
        self.compute_fingerprint(prepared).0
    }

    /// Returns the fingerprint, and whether the tool reported all facts that identify the call.
    fn compute_fingerprint(&self, prepared: &dyn PreparedCall) -> (Fingerprint, bool) {
        let context = self.context();
        let subjects = catch_unwind(AssertUnwindSafe(|| prepared.resources(&context)));
        let is_known = subjects.is_ok();
        let subjects = subjects.unwrap_or_default().unwrap_or_default();
        let (fingerprint, has_facts) = self.fingerprint_with_facts(prepared, &subjects, &context);
        (fingerprint, is_known && has_facts)
    }

    /// Like [`fingerprint`](Self::fingerprint), for a caller that already knows the resources of
    /// the call.
    pub(super) fn fingerprint_of(
        &self,
        prepared: &dyn PreparedCall,
        subjects: &[Resource],
        context: &Context,
    ) -> Fingerprint {
        self.fingerprint_with_facts(prepared, subjects, context).0
    }

    fn fingerprint_with_facts(
        &self,
        prepared: &dyn PreparedCall,
        subjects: &[Resource],
        context: &Context,
    ) -> (Fingerprint, bool) {
        let of_tool = catch_unwind(AssertUnwindSafe(|| prepared.fingerprint_facts(context)));
        let has_facts = of_tool.is_ok();
        let of_tool = of_tool.unwrap_or_else(|_| vec![unique_fact()]);
        let mut facts: Vec<(&str, &str)> =
            subjects.iter().flat_map(Resource::spellings).map(|text| ("subject", text)).collect();
        let principals = [("user", self.session.user()), ("agent", self.session.agent())];
        facts.extend(principals.into_iter().filter_map(|(label, id)| Some((label, id?))));
        let of_session = session_facts(self.session);
        facts.extend(of_session.iter().chain(&of_tool).map(|(label, fact)| (*label, &**fact)));
        (Fingerprint::compute(self.definition(), self.arguments(), &facts), has_facts)
    }

    /// Whether the call is still the one that a person approved.
    pub(super) fn is_still_approved(&self, prepared: &dyn PreparedCall) -> bool {
        let approved = self.approved_fingerprint.as_ref();
        approved.is_some_and(|approved| *approved == self.fingerprint(prepared))
    }

    /// Records a decision.
    ///
    /// # Errors
    ///
    /// Fails when the record cannot be written, and when a call is allowed whose tool cannot report
    /// all facts about it: the log would not show what ran.
    pub(super) fn record_decision(
        &mut self,
        prepared: &dyn PreparedCall,
        decision: &Decision,
        answer: Option<&ApprovalAnswer>,
    ) -> Result<(), ToolError> {
        if self.inner.audit.is_none() {
            return Ok(());
        }
        let (fingerprint, is_known) = self.compute_fingerprint(prepared);
        self.audit_fingerprint = Some(fingerprint);
        let answer = answer.map(ApprovalAnswer::for_audit);
        let is_unidentified = !is_known && decision.action == Action::Allow;
        let denied = is_unidentified.then(unknown_call_decision);
        let decision = denied.as_ref().unwrap_or(decision);
        self.write_record(AuditEvent::from_decision(decision, answer)).map_err(|error| {
            let message = "the call may not run, because its decision could not be written down";
            ToolError::unavailable(message).source(error)
        })?;
        denied.map_or(Ok(()), |denied| Err(denied_error(self, prepared, &[], denied)))
    }

    /// Emits and records that a hook denied the call; returns the error of the call.
    pub(super) fn record_refusal(
        &mut self,
        prepared: &dyn PreparedCall,
        error: ToolError,
    ) -> ToolError {
        if error.kind() == ErrorKind::Aborted {
            return error;
        }
        let decision =
            Decision::new(Action::Deny, DecisionSource::Hook, error.message().to_owned());
        self.emit(|| EventKind::Denied(decision.clone().into()));
        match self.record_decision(prepared, &decision, None) {
            Ok(()) => error,
            Err(not_recorded) => not_recorded,
        }
    }

    /// Records which hooks changed the arguments, unless they only changed the spelling.
    pub(super) fn note_rewrite(&mut self, arguments: &str, names: Vec<String>) {
        if self.inner.audit.is_none() {
            return;
        }
        let fingerprint = |arguments: &str| Fingerprint::compute(self.definition(), arguments, &[]);
        if fingerprint(self.arguments()) != fingerprint(arguments) {
            self.rewritten_by.extend(names);
        }
    }

    /// Records that the tool ran, and how that ended. A record that cannot be written does not
    /// change the outcome, because the tool has run.
    pub(super) fn record_run(&self, result: &Result<Output, ToolError>) {
        if !self.has_run || self.inner.audit.is_none() {
            return;
        }
        let outcome = result.as_ref().map(|_| ()).map_err(ToolError::kind);
        let facts = result.as_ref().ok().and_then(Output::metadata_map);
        let elapsed_ms = millis(self.started.elapsed());
        let _ = self.write_record(AuditEvent::Ran { outcome, elapsed_ms, facts });
    }

    fn write_record(&self, what: AuditEvent<'_>) -> io::Result<()> {
        let (Some(audit), Some(fingerprint)) = (&self.inner.audit, &self.audit_fingerprint) else {
            return Ok(());
        };
        let arguments = self.argument_texts();
        let mut record =
            AuditRecord::new(self.session, self.definition(), &self.origin.id, fingerprint, what)
                .with_origin(&self.origin);
        record.changed_by = &self.rewritten_by;
        record.edited = self.edit.as_ref();
        record.argument_texts = &arguments;
        audit::write_record(&**audit, &record)
    }
}

/// Returns the facts of the session on which the meaning of a call depends: the roots of relative
/// paths, and the sandbox.
fn session_facts(session: &Session) -> Vec<(&'static str, String)> {
    let roots = session_files::roots(session).into_iter();
    let roots = roots.map(|root| ("root", root.to_string_lossy().into_owned()));
    #[cfg(feature = "process")]
    let sandbox = Some((
        "sandbox",
        format!("{:?}", session.extension::<tool_sdk_process::sandbox::SandboxPolicy>()),
    ));
    #[cfg(not(feature = "process"))]
    let sandbox = None;
    roots.chain(sandbox).collect()
}

/// Stands for facts that the tool failed to report. It never repeats, so no approval holds.
fn unique_fact() -> (&'static str, String) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    ("unknown", NEXT.fetch_add(1, Ordering::Relaxed).to_string())
}
