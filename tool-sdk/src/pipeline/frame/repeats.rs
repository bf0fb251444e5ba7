//! What the guard against loops finds of a call, and what it is told of the call's end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Frame;
use crate::content::Output;
use crate::error::ToolError;
use crate::loop_guard::{Finding, Ticket};
use crate::pipeline::core::Kept;
use crate::tool::Prepared;

/// What the guard against loops found, and where it is told the end.
pub(super) struct Guarded<'a> {
    kept: &'a Kept,
    ticket: Ticket,
    finding: Finding,
}

impl Frame<'_> {
    /// Whether the guard against loops has nothing to say; for who contains panics.
    #[inline(always)]
    pub(in crate::pipeline) fn is_no_loop(&mut self, prepared: &dyn Prepared) -> bool {
        self.core.guard.is_none() || self.look(|| prepared.digest()) == Finding::Fine
    }

    /// What the guard against loops finds, once for each call; nothing can be found where the
    /// tool panics.
    pub(in crate::pipeline) fn guard(&mut self, prepared: &dyn Prepared) -> Option<Finding> {
        catch_unwind(AssertUnwindSafe(|| self.look(|| prepared.digest()))).ok()
    }

    /// Counts a call that cannot run; whoever makes it again and again reads that, too.
    #[cold]
    pub(in crate::pipeline) fn in_vain(&mut self, error: ToolError) -> ToolError {
        let finding = self.look(|| None);
        match finding.message(self.definition.name.as_str()) {
            Some(repeats) => match error.suggestion().map(str::to_owned) {
                Some(hint) => error.hint(format_args!("{hint}; {repeats}")),
                None => error.hint(repeats),
            },
            None => error,
        }
    }

    fn look(&mut self, digest: impl FnOnce() -> Option<u64>) -> Finding {
        let Some(guard) = &self.core.guard else { return Finding::Fine };
        if let Some(guarded) = &self.guarded {
            return guarded.finding;
        }
        let kept = self.core.kept(self.session);
        let digest = digest();
        let name = self.definition.name.as_str();
        let (ticket, finding) = guard.begin(&kept.history, name, self.arguments(), digest);
        self.guarded = Some(Guarded { kept, ticket, finding });
        if finding != Finding::Fine {
            self.event(|| finding.into());
        }
        finding
    }

    /// Counts repeats anew: somebody looked at them and said yes.
    pub(in crate::pipeline) fn allow_repeat(&self) {
        if let Some(guarded) = &self.guarded {
            guarded.kept.history.allow(&guarded.ticket);
        }
    }

    /// Tells the guard what became of the call.
    #[inline]
    pub(super) fn conclude(&mut self, result: &Result<Output, ToolError>) {
        if self.guarded.is_none() {
            return;
        }
        let Some(Guarded { kept, ticket, .. }) = self.guarded.take() else { return };
        match result {
            _ if !self.ran => kept.history.forget(ticket),
            Ok(output) => match output.parts() {
                ("", text) => kept.history.end(ticket, Ok(text), ""),
                // What a heading says is never the same, and its facts stand beside the text.
                (_, text) => kept.history.end(ticket, Ok(text), &facts(output)),
            },
            Err(error) => kept.history.end(ticket, Err(error.message()), ""),
        }
    }
}

/// The facts of a result, as one text.
#[cold]
fn facts(output: &Output) -> String {
    let facts = output.metadata_map().map(serde_json::to_string);
    facts.and_then(Result::ok).unwrap_or_default()
}
