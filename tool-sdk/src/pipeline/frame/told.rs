//! What subscribers are told of a call: that it was understood, that its tool runs, and how
//! it ended.
//!
//! **Invariant:** whose beginning was told has exactly one end, also when the call is dropped.

use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Frame;
use crate::call::{Note, Outcome};
use crate::content::Output;
use crate::error::{ErrorKind, ToolError};
use crate::event::{About, Arguments, Artifact, Ending, EventKind, millis};
use crate::hook::HookedCall;
use crate::pipeline::fit;
use crate::pipeline::trace::{self, Traced};
use crate::tool::Prepared;

/// A call that is dropped half-way was cancelled by whoever dropped it.
impl Drop for Frame<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            self.dropped(begun);
        }
    }
}

impl Frame<'_> {
    /// Tells that the call was understood.
    #[inline]
    pub(in crate::pipeline) fn announce(&mut self, prepared: &dyn Prepared) {
        self.begun = Some(self.event(|| self.pending(prepared)));
    }

    /// Nobody is told that the call was understood.
    #[inline(always)]
    pub(in crate::pipeline) fn begin_unheard(&mut self) {
        self.begun = Some(0);
    }

    /// Tells that the call was understood and that its tool runs, where nothing comes between.
    #[inline(never)]
    pub(in crate::pipeline) fn announce_start(&mut self, prepared: &dyn Prepared) {
        if self.core.redactor.is_some() || !self.definition.display.sensitive.is_empty() {
            self.announce(prepared);
            return self.start();
        }
        let (summary, notes) = (summary(prepared), notes(prepared));
        let (text, about) = (self.arguments(), self.about());
        let long = Arguments::long(text);
        let begun = self.core.hub.send_start(about, text, long, summary, notes);
        self.begun = Some(begun);
        self.ran = true;
    }

    #[inline(always)]
    fn pending(&self, prepared: &dyn Prepared) -> EventKind {
        EventKind::Pending {
            arguments: Arguments::new(self.arguments(), &self.definition.display),
            summary: summary(prepared),
            notes: notes(prepared),
        }
    }

    /// Keeps what was accepted beyond the contract.
    pub(in crate::pipeline) fn note(&mut self, prepared: &dyn Prepared) {
        let notes = prepared.notes();
        if !notes.is_empty() {
            self.aside().notes = notes.to_vec();
        }
    }

    /// Tells that the tool runs.
    #[inline(always)]
    pub(in crate::pipeline) fn start(&mut self) {
        self.ran = true;
        self.event(|| {
            let rewritten = self.extra.as_ref().and_then(|extra| extra.rewritten.as_ref());
            let arguments =
                rewritten.map(|raw| Arguments::new(raw.text(), &self.definition.display));
            EventKind::Started { arguments }
        });
    }

    /// The end of every call: its text is cut, exactly one terminal event goes out.
    #[inline]
    pub(in crate::pipeline) fn end<T: Traced>(
        &mut self,
        result: &mut Option<Result<Output, ToolError>>,
    ) -> Outcome {
        // fit
        trace::stage(self, T::IS_ON, "fit");
        let done = result.get_or_insert_with(|| Err(no_result()));
        self.conclude(done);
        if let Some(truncated) = fit::fit(self, done) {
            self.aside().truncated = Some(truncated);
        }

        // finish
        trace::stage(self, T::IS_ON, "finish");
        let aside = self.extra.as_mut().map(|extra| take(&mut extra.aside)).unwrap_or_default();
        let result = result.take().unwrap_or_else(|| Err(no_result()));
        let outcome = Outcome { call: self.id.clone(), result, aside };
        self.observe(&outcome);
        self.record_run(&outcome.result);
        self.release();
        if self.is_heard() {
            self.tell_end(&outcome.result);
        }
        self.begun = None;
        outcome
    }

    /// Lets the hooks observe the outcome.
    fn observe(&self, outcome: &Outcome) {
        if !self.is_hooked() {
            return;
        }
        let seen = self.seen();
        self.is_done(&seen);
        let call = HookedCall::new(&seen);
        for hook in self.core.hooks.iter().filter(|hook| hook.sees(self.definition)) {
            let _ = catch_unwind(AssertUnwindSafe(|| hook.hook.observe(&call, outcome)));
        }
    }

    /// Tells what waits of the call's output.
    #[inline]
    fn release(&self) {
        if self.core.redactor.is_some() {
            self.core.release(self.session, &self.definition.name, self.id);
        }
    }

    /// Apart, so that calls that nobody listens to do not carry it.
    #[inline(never)]
    fn tell_end(&self, done: &Result<Output, ToolError>) {
        let begun = self.begun.unwrap_or_default();
        match done {
            Ok(output) if output.is_bare() => {
                let elapsed = millis(self.elapsed());
                self.core.hub.send_bare_end(begun, self.about(), elapsed);
            }
            _ => drop(self.tell(begun, || self.terminal(done))),
        }
    }

    #[cold]
    fn dropped(&self, begun: u64) {
        self.release();
        let result = Err(ToolError::aborted("the call was dropped"));
        let outcome = Outcome { call: self.id.clone(), result, aside: Default::default() };
        self.observe(&outcome);
        self.event_of(begun, || self.terminal(&outcome.result));
    }

    fn terminal(&self, result: &Result<Output, ToolError>) -> EventKind {
        let elapsed = self.elapsed();
        match result {
            Ok(output) if output.is_bare() => EventKind::completed(millis(elapsed)),
            Ok(output) => EventKind::Completed {
                elapsed_ms: millis(elapsed),
                title: output.title_text().map(str::to_owned),
                data: output.display_data().cloned().map(Arc::new),
                artifacts: match output.attachments() {
                    [] => Box::default(),
                    some => some.iter().map(Artifact::of).collect(),
                },
            },
            Err(error) => {
                let ending = Ending::new(error, elapsed);
                match error.kind() {
                    ErrorKind::Aborted => EventKind::Aborted(ending),
                    ErrorKind::Timeout => EventKind::TimedOut(ending),
                    _ => EventKind::Failed(ending),
                }
            }
        }
    }

    /// Whether anybody listens.
    #[inline]
    pub(in crate::pipeline) fn is_heard(&self) -> bool {
        self.core.hub.is_open()
    }

    /// Sends an event, which is not even built when nobody listens; gives its number, or 0.
    #[inline]
    pub(in crate::pipeline) fn event(&self, kind: impl FnOnce() -> EventKind) -> u64 {
        self.event_of(0, kind)
    }

    /// The same of a call whose beginning was told with the number `begun`.
    #[inline]
    fn event_of(&self, begun: u64, kind: impl FnOnce() -> EventKind) -> u64 {
        if self.is_heard() { self.tell(begun, kind) } else { 0 }
    }

    /// Apart, so that calls that nobody listens to do not carry it.
    #[inline(never)]
    fn tell(&self, begun: u64, kind: impl FnOnce() -> EventKind) -> u64 {
        self.core.tell_of(begun, self.about(), kind(), &self.made_of())
    }

    /// The arguments as they were sent, and as they are now.
    pub(super) fn made_of(&self) -> [&str; 2] {
        [self.call.arguments.text(), self.arguments()]
    }

    #[inline]
    fn about(&self) -> About<'_> {
        let tool = self.policy.label(self.definition);
        About { session: self.session, tool, call: self.id }
    }
}

#[inline(always)]
fn summary(prepared: &dyn Prepared) -> Option<String> {
    catch_unwind(AssertUnwindSafe(|| prepared.summary())).ok().flatten()
}

#[inline(always)]
fn notes(prepared: &dyn Prepared) -> Box<[Note]> {
    match prepared.notes() {
        [] => Box::default(),
        some => some.into(),
    }
}

#[cold]
fn no_result() -> ToolError {
    ToolError::internal("the call ended without a result")
}
