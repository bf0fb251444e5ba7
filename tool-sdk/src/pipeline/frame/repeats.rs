//! What the guard against loops finds of a call, and what it is told of the call's end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Frame;
use crate::content::Output;
use crate::error::ToolError;
use crate::loop_guard::{Caller, Finding, Ticket};
use crate::pipeline::core::Kept;
use crate::tool::{Parallel, Prepared};

/// What the guard against loops found, and where it is told the end.
pub(super) struct Guarded<'a> {
    kept: &'a Kept,
    ticket: Ticket,
    finding: Finding,
}

impl Frame<'_> {
    /// Whether the guard against loops has nothing to say, as to most calls: they are like none
    /// before, which is seen at once. For who contains panics.
    #[inline(always)]
    pub(in crate::pipeline) fn is_no_loop(&mut self, prepared: &dyn Prepared) -> bool {
        let Some(guard) = &self.core.guard else { return true };
        let digest = prepared.digest();
        if let (Some(digest), None) = (digest, &self.guarded) {
            let kept = self.core.kept(self.session);
            if let Some(ticket) = guard.begin_new(&kept.history, self.policy.number, digest) {
                self.guarded = Some(Guarded { kept, ticket, finding: Finding::Fine });
                return true;
            }
        }
        self.look(digest) == Finding::Fine
    }

    /// What the guard against loops finds, once for each call, which may wait from now on; nothing
    /// can be found where the tool panics.
    pub(in crate::pipeline) fn guard(&mut self, prepared: &dyn Prepared) -> Option<Finding> {
        let look = || {
            let finding = self.look(prepared.digest());
            self.write_repeat();
            finding
        };
        catch_unwind(AssertUnwindSafe(look)).ok()
    }

    /// Lets the guard look once more at a call that waited for its turn, since those before it are
    /// over by now; says whether it found anything. For calls that run one after the other: those
    /// that run beside others repeat nothing that is over.
    pub(in crate::pipeline) fn guard_in_turn(&mut self) -> bool {
        let (Some(guard), Some(guarded)) = (&self.core.guard, &mut self.guarded) else {
            return false;
        };
        if self.definition.parallel() == Parallel::Shared {
            return false;
        }
        let name = self.definition.name.as_str();
        let finding = guard.again(&guarded.kept.history, name, &guarded.ticket);
        if finding == Finding::Fine {
            return false;
        }
        guarded.finding = finding;
        self.tell_finding(finding);
        true
    }

    /// Lets the guard know of the call before it waits.
    pub(in crate::pipeline) fn write_repeat(&mut self) {
        if let Some(guarded) = &mut self.guarded {
            guarded.kept.history.write(&mut guarded.ticket);
        }
    }

    /// Counts a call that cannot run; whoever makes it again and again reads that, too.
    #[cold]
    pub(in crate::pipeline) fn in_vain(&mut self, error: ToolError) -> ToolError {
        let finding = self.look(None);
        match finding.message(self.definition.name.as_str()) {
            Some(repeats) => match error.suggestion().map(str::to_owned) {
                Some(hint) => error.hint(format_args!("{hint}; {repeats}")),
                None => error.hint(repeats),
            },
            None => error,
        }
    }

    /// What the guard finds of a call whose arguments have this digest, where decoding left one.
    #[inline(never)]
    fn look(&mut self, digest: Option<u64>) -> Finding {
        let Some(guard) = &self.core.guard else { return Finding::Fine };
        if let Some(guarded) = &self.guarded {
            return guarded.finding;
        }
        let kept = self.core.kept(self.session);
        let who = Caller { name: self.definition.name.as_str(), number: self.policy.number };
        let (ticket, finding) = guard.begin(&kept.history, who, self.arguments(), digest);
        self.guarded = Some(Guarded { kept, ticket, finding });
        if finding != Finding::Fine {
            self.tell_finding(finding);
        }
        finding
    }

    /// Lets the guard look anew, at what a hook made of the call. That as which it was sent stays as
    /// if it still ran: it repeats nothing, and nothing repeats it.
    pub(in crate::pipeline) fn guard_anew(&mut self) {
        self.guarded = None;
    }

    #[cold]
    fn tell_finding(&self, finding: Finding) {
        self.event(|| finding.into());
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
        if self.guarded.is_some() {
            self.conclude_guarded(result);
        }
    }

    /// Apart, so that calls that nothing guards do not carry it.
    #[inline(never)]
    fn conclude_guarded(&mut self, result: &Result<Output, ToolError>) {
        let Some(Guarded { kept, ticket, .. }) = self.guarded.take() else { return };
        if !self.ran {
            return kept.history.forget(ticket);
        }
        match result {
            Ok(output) if output.is_bare() => kept.history.end(ticket, Ok(output.as_text()), ""),
            result => end(kept, ticket, result),
        }
    }
}

/// Tells of the end of a call whose result is more than a text.
#[inline(never)]
fn end(kept: &Kept, ticket: Ticket, result: &Result<Output, ToolError>) {
    let (text, facts) = match result {
        Ok(output) => match output.parts() {
            ("", text) => (Ok(text), String::new()),
            // What a heading says is never the same, and its facts stand beside the text.
            (_, text) => (Ok(text), facts(output)),
        },
        Err(error) => (Err(error.message()), String::new()),
    };
    kept.history.end(ticket, text, &facts);
}

/// The facts of a result, as one text.
#[cold]
fn facts(output: &Output) -> String {
    let facts = output.metadata_map().map(serde_json::to_string);
    facts.and_then(Result::ok).unwrap_or_default()
}
