//! What is written down of a call: what was decided, and that it ran.
//!
//! **Invariant:** what cannot be written down does not run.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Frame, roots, sandbox};
use crate::audit::{self, AuditRecord, Audited};
use crate::content::Output;
use crate::context::Context;
use crate::error::{ErrorKind, ToolError};
use crate::event::{EventKind, millis};
use crate::permission::{Action, By, Decision, Fingerprint};
use crate::pipeline::ask::Replied;
use crate::pipeline::decide::{denied, unknown};
use crate::tool::{Prepared, Subject};

impl Frame<'_> {
    /// What tells this call from any other.
    pub(in crate::pipeline) fn fingerprint(&self, prepared: &dyn Prepared) -> Fingerprint {
        self.looked_at(prepared).0
    }

    /// The same, and whether the tool could say all that it stands for.
    fn looked_at(&self, prepared: &dyn Prepared) -> (Fingerprint, bool) {
        let cx = self.context(self.started());
        let subjects = catch_unwind(AssertUnwindSafe(|| prepared.subjects(&cx)));
        let is_known = subjects.is_ok();
        let subjects = subjects.unwrap_or_default().unwrap_or_default();
        let (fingerprint, has_facts) = self.with_facts(prepared, &subjects, &cx);
        (fingerprint, is_known && has_facts)
    }

    /// The same for whoever knows already what the call touches.
    pub(in crate::pipeline) fn fingerprint_of(
        &self,
        prepared: &dyn Prepared,
        subjects: &[Subject],
        cx: &Context,
    ) -> Fingerprint {
        self.with_facts(prepared, subjects, cx).0
    }

    /// The same, and whether the tool could say its facts.
    fn with_facts(
        &self,
        prepared: &dyn Prepared,
        subjects: &[Subject],
        cx: &Context,
    ) -> (Fingerprint, bool) {
        let own = catch_unwind(AssertUnwindSafe(|| prepared.facts(cx)));
        let has_facts = own.is_ok();
        let own = own.unwrap_or_else(|_| vec![unknown_fact()]);
        let around = [roots::of(self.session), sandbox::of(self.session)].concat();
        let who = [("user", self.session.user()), ("agent", self.session.agent())];
        let who = who.into_iter().filter_map(|(label, who)| who.map(|who| (label, who)));
        let facts: Vec<(&str, &str)> = subjects
            .iter()
            .flat_map(Subject::spellings)
            .map(|text| ("subject", text))
            .chain(who)
            .chain(around.iter().chain(&own).map(|(label, fact)| (*label, fact.as_str())))
            .collect();
        (Fingerprint::of(self.definition, self.arguments(), &facts), has_facts)
    }

    /// Keeps what the call is now that somebody let it run.
    pub(in crate::pipeline) fn approve_as_is(&mut self, prepared: &dyn Prepared) {
        self.extra().approved = Some(self.fingerprint(prepared));
    }

    /// Whether the call is still what it was when somebody let it run.
    pub(in crate::pipeline) fn is_as_approved(&self, prepared: &dyn Prepared) -> bool {
        let approved = self.extra.as_ref().and_then(|extra| extra.approved.as_ref());
        approved.is_some_and(|approved| *approved == self.fingerprint(prepared))
    }

    /// Writes a decision down; what cannot be written down does not run.
    pub(in crate::pipeline) fn record(
        &mut self,
        prepared: &dyn Prepared,
        decision: &Decision,
        reply: Option<&Replied>,
    ) -> Result<(), ToolError> {
        if self.core.audit.is_none() {
            return Ok(());
        }
        let (fingerprint, is_known) = self.looked_at(prepared);
        self.extra().fingerprint = Some(fingerprint);
        let answer = reply.map(Replied::as_answer);
        // Nobody could find in the record what was let run.
        let instead = (!is_known && decision.action == Action::Allow).then(unknown);
        let decision = instead.as_ref().unwrap_or(decision);
        self.write_down(Audited::decided(decision, answer)).map_err(|error| {
            let message = "the call may not run, because its decision could not be written down";
            ToolError::unavailable(message).source(error)
        })?;
        instead.map_or(Ok(()), |instead| Err(denied(self, instead)))
    }

    /// Writes down that a call was refused before it could be judged.
    pub(in crate::pipeline) fn refused(
        &mut self,
        prepared: &dyn Prepared,
        error: ToolError,
    ) -> ToolError {
        if error.kind() == ErrorKind::Aborted {
            return error;
        }
        let reason = error.message().to_owned();
        let decision = Decision::new(Action::Deny, By::Hook, reason);
        self.event(|| EventKind::Denied(decision.clone().into()));
        match self.record(prepared, &decision, None) {
            Ok(()) => error,
            Err(unwritten) => unwritten,
        }
    }

    /// Keeps for the record who changed the arguments, unless they only wrote them otherwise.
    pub(super) fn note_changes(&mut self, arguments: &str, names: Vec<String>) {
        if self.core.audit.is_none() {
            return;
        }
        let of = |arguments: &str| Fingerprint::of(self.definition, arguments, &[]);
        if of(self.arguments()) != of(arguments) {
            self.extra().changed_by.extend(names);
        }
    }

    fn write_down(&self, what: Audited<'_>) -> io::Result<()> {
        let fingerprint = self.extra.as_ref().and_then(|extra| extra.fingerprint.as_ref());
        let (Some(audit), Some(fingerprint)) = (&self.core.audit, fingerprint) else {
            return Ok(());
        };
        let (session, definition) = (self.session, self.definition);
        let made_of = self.made_of();
        let mut record = AuditRecord::new(session, definition, self.id, fingerprint, what);
        record.changed_by = self.extra.as_ref().map_or(&[], |extra| &extra.changed_by);
        record.made_of = &made_of;
        audit::keep(&**audit, &record)
    }

    /// Writes down that the tool ran, and how that ended.
    #[inline]
    pub(super) fn record_run(&self, result: &Result<Output, ToolError>) {
        if !self.ran || self.core.audit.is_none() {
            return;
        }
        let outcome = result.as_ref().map(|_| ()).map_err(ToolError::kind);
        let facts = result.as_ref().ok().and_then(Output::metadata_map);
        let elapsed_ms = millis(self.elapsed());
        // What ran has run: that this could not be written down changes nothing for it.
        let _ = self.write_down(Audited::Ran { outcome, elapsed_ms, facts });
    }
}

/// What stands for facts that cannot be found out: it is never the same, so that no yes holds.
#[cold]
fn unknown_fact() -> (&'static str, String) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    ("unknown", NEXT.fetch_add(1, Ordering::Relaxed).to_string())
}
