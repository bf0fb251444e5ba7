//! One call on its way through the pipeline: what every stage may look at.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::core::{Core, Kept};
use super::fit;
use super::run::{aborted, panicked};
use super::turn::{Facts, Permit, Stop, Turn};
use crate::audit::{Answer, AuditRecord, Audited};
use crate::call::{Call, CallId, Note, Outcome, RawArgs};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::{ErrorKind, ToolError};
use crate::event::{Arguments, Artifact, Ending, EventKind, millis};
use crate::hook::{HookRun, HookedCall};
use crate::loop_guard::{Finding, Ticket};
use crate::permission::{Action, By, Decision, Fingerprint, Reply};
use crate::tool::{Definition, Prepared, Subject, Tool};
use crate::toolset::Policy;

/// One call on its way through the pipeline.
pub(super) struct Frame<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) session: &'a Session,
    pub(super) call: &'a Call<'a>,
    pub(super) definition: &'a Definition,
    pub(super) id: CallId,
    known: Option<Known<'a>>,
    /// When the time of the call began; unknown until somebody wants to know.
    started: Option<Instant>,
    /// Whether a beginning was told whose end was not.
    open: bool,
    /// What the guard against loops found.
    guarded: Option<Guarded<'a>>,
    /// Whether the tool was let run.
    ran: bool,
    /// What only few calls have.
    extra: Option<Box<Extra>>,
}

/// What the guard against loops found, and where it is told the end.
struct Guarded<'a> {
    kept: &'a Kept,
    ticket: Ticket,
    finding: Finding,
}

/// What is known of a call whose tool was found.
#[derive(Clone, Copy)]
struct Known<'a> {
    tool: &'a dyn Tool,
    policy: &'a Policy,
}

/// What only few calls have.
#[derive(Default)]
pub(super) struct Extra {
    /// The arguments, where a hook changed them.
    rewritten: Option<RawArgs<'static>>,
    /// What hooks want the model to read with the result.
    pub(super) context: Vec<String>,
    /// What the audit knows the call by.
    fingerprint: Option<Fingerprint>,
    /// Why the model's turn ends.
    pub(super) halted: Option<String>,
}

/// A call that is dropped half-way was cancelled by whoever dropped it.
impl Drop for Frame<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.open {
            self.dropped();
        }
    }
}

impl<'a> Frame<'a> {
    #[inline]
    pub(super) fn new(
        core: &'a Arc<Core>,
        session: &'a Session,
        call: &'a Call<'a>,
        tool: &'a dyn Tool,
        policy: &'a Policy,
    ) -> Self {
        let mut frame = Self::of(core, session, call, tool.definition());
        frame.known = Some(Known { tool, policy });
        frame
    }

    /// A call without a tool.
    #[inline]
    pub(super) fn of(
        core: &'a Arc<Core>,
        session: &'a Session,
        call: &'a Call<'a>,
        definition: &'a Definition,
    ) -> Self {
        let id = call.id.clone().unwrap_or_else(CallId::next);
        let started = core.hub.is_open().then(Instant::now);
        Self {
            core,
            session,
            call,
            definition,
            id,
            known: None,
            started,
            open: false,
            guarded: None,
            ran: false,
            extra: None,
        }
    }

    /// Whether the pipeline is open, and the caller known where the tool asks for that.
    #[inline]
    pub(super) fn admit(&self) -> Result<(), ToolError> {
        if self.core.hub.is_closed() {
            return Err(ToolError::unavailable("the host has closed its tools"));
        }
        if self.definition.flags.requires_auth && self.session.user().is_none() {
            return Err(ToolError::unauthorized(format_args!(
                "`{}` is for known users only, and nobody is signed in",
                self.definition.name
            )));
        }
        Ok(())
    }

    /// The arguments, decoded; a panic while that is done is the call's failure.
    #[inline]
    pub(super) fn prepare(&self) -> Result<Box<dyn Prepared>, ToolError> {
        let Some(known) = self.known else { return Err(ToolError::internal("there is no tool")) };
        let prepare = AssertUnwindSafe(|| match self.core.guard {
            Some(_) => known.tool.prepare(&self.raw().to_digest()),
            None => known.tool.prepare(self.raw()),
        });
        match catch_unwind(prepare) {
            Ok(prepared) => prepared.map_err(ToolError::from),
            Err(panic) => Err(panicked(&*panic)),
        }
    }

    /// Tells that the call was understood.
    #[inline]
    pub(super) fn announce(&mut self, prepared: &dyn Prepared) {
        let display = &self.definition.display;
        self.event(|| EventKind::Pending {
            display: Arc::clone(display),
            source: self.definition.source.clone(),
            arguments: Arguments::new(self.arguments(), display),
            summary: catch_unwind(AssertUnwindSafe(|| prepared.summary())).ok().flatten(),
            notes: prepared.notes().to_vec(),
        });
        self.open = true;
    }

    /// Whether, but for hooks, nothing has a say in this call but what allows it anyway.
    #[inline]
    pub(super) fn is_settled(&self, prepared: &dyn Prepared) -> bool {
        self.known.is_some_and(|known| known.policy.settled == Some(Action::Allow))
            && self.core.audit.is_none()
            && self.session.policy().is_none()
            && catch_unwind(AssertUnwindSafe(|| prepared.has_no_wish())).unwrap_or(false)
    }

    /// Whether a hook looks at the call.
    #[inline]
    pub(super) fn is_hooked(&self) -> bool {
        let hooks = &self.core.hooks;
        !hooks.is_empty() && hooks.iter().any(|hook| hook.sees(self.definition))
    }

    /// Tells that the tool runs; gives what was accepted beyond the contract.
    #[inline]
    pub(super) fn start(&mut self, prepared: &dyn Prepared) -> Vec<Note> {
        self.ran = true;
        self.event(|| {
            let rewritten = self.extra.as_ref().and_then(|extra| extra.rewritten.as_ref());
            let arguments =
                rewritten.map(|raw| Arguments::new(raw.text(), &self.definition.display));
            EventKind::Started { arguments }
        });
        match prepared.notes() {
            [] => Vec::new(),
            notes => notes.to_vec(),
        }
    }

    /// Lets the time of the call count from now: nobody waits for a person on its account.
    pub(super) fn begin_now(&mut self) {
        self.started = Some(Instant::now());
    }

    #[cold]
    fn dropped(&self) {
        let dropped = ToolError::aborted("the call was dropped");
        self.event(|| self.terminal(&Err(dropped), true));
    }

    /// The arguments as they are now.
    #[inline]
    fn raw(&self) -> &RawArgs<'_> {
        match &self.extra {
            Some(extra) => extra.rewritten.as_ref().unwrap_or(&self.call.arguments),
            None => &self.call.arguments,
        }
    }

    /// The text of the arguments as they are now.
    #[inline]
    pub(super) fn arguments(&self) -> &str {
        self.raw().text()
    }

    /// Replaces the arguments.
    pub(super) fn rewrite(&mut self, arguments: String) {
        let lenient = self.call.arguments.lenient;
        self.extra().rewritten = Some(RawArgs::from(arguments).lenient(lenient));
    }

    pub(super) fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// What hooks want the model to read with the result.
    #[inline]
    pub(super) fn take_context(&mut self) -> Option<String> {
        let context = std::mem::take(&mut self.extra.as_mut()?.context);
        (!context.is_empty()).then(|| context.join("\n\n"))
    }

    /// Lets the other calls of the batch know that a hook ended the model's turn.
    pub(super) fn pass_on_halt(&self, turn: Option<&dyn Turn>) {
        let is_halted = self.extra.as_ref().is_some_and(|extra| extra.halted.is_some());
        if let Some(turn) = turn.filter(|_| is_halted) {
            turn.stop(Stop::Halted);
            // Nobody needs to answer any more what was asked on their account.
            self.core.desk.reconsider();
        }
    }

    /// The call as hooks see it.
    pub(super) fn hooked<'f>(&'f self, watch: &'f (dyn Fn(HookRun) + Sync)) -> HookedCall<'f> {
        HookedCall {
            session: self.session,
            definition: self.definition,
            id: &self.id,
            original: self.call.arguments.text(),
            arguments: self.arguments(),
            watch: Some(watch),
            ran: None,
            halted: None,
        }
    }

    /// Whether the call is one of this very tool.
    pub(super) fn is_of(&self, tool: &Arc<dyn Tool>) -> bool {
        self.known.is_some_and(|known| std::ptr::addr_eq(known.tool, Arc::as_ptr(tool)))
    }

    /// The value of the argument `name`, under whichever name it came, or its default.
    pub(super) fn argument(&self, arguments: &Value, name: &str) -> Option<Value> {
        let known = self.known?;
        let lenient = self.call.arguments.lenient;
        let sent = known.tool.spellings(name).into_iter().find_map(|name| arguments.get(name));
        match sent {
            Some(Value::Null) if lenient.null_is_absent => known.tool.default_of(name),
            Some(Value::String(text)) if lenient.stringified => {
                let text = Value::String(text.clone());
                // Whichever way the tool takes it, a rule sees both.
                let inner = serde_json::from_str::<Value>(text.as_str().unwrap_or_default());
                Some(match inner {
                    Ok(inner) if inner.is_array() || inner.is_object() => {
                        Value::Array(vec![text, inner])
                    }
                    _ => text,
                })
            }
            Some(sent) => Some(sent.clone()),
            None => known.tool.default_of(name),
        }
    }

    /// What tells this call from any other.
    pub(super) fn fingerprint(&self, prepared: &dyn Prepared) -> Fingerprint {
        let cx = self.context(self.started());
        let subjects = AssertUnwindSafe(|| prepared.subjects(&cx));
        let subjects = catch_unwind(subjects).unwrap_or_default().unwrap_or_default();
        let who = [("user", self.session.user()), ("agent", self.session.agent())];
        let who = who.into_iter().filter_map(|(label, who)| who.map(|who| (label, who)));
        let facts: Vec<(&str, &str)> = subjects
            .iter()
            .flat_map(Subject::spellings)
            .map(|text| ("subject", text))
            .chain(who)
            .collect();
        Fingerprint::of(self.definition, self.arguments(), &facts)
    }

    /// Whether the guard against loops has nothing to say.
    #[inline]
    pub(super) fn is_no_loop(&mut self, prepared: &dyn Prepared) -> bool {
        self.core.guard.is_none() || self.guard(prepared) == Finding::Fine
    }

    /// What the guard against loops finds, once for each call.
    pub(super) fn guard(&mut self, prepared: &dyn Prepared) -> Finding {
        let Some(guard) = &self.core.guard else { return Finding::Fine };
        if let Some(guarded) = &self.guarded {
            return guarded.finding;
        }
        let kept = self.core.kept(self.session);
        let digest = catch_unwind(AssertUnwindSafe(|| prepared.digest())).ok().flatten();
        let name = self.definition.name.as_str();
        let (ticket, finding) = guard.begin(&kept.history, name, self.arguments(), digest);
        self.guarded = Some(Guarded { kept, ticket, finding });
        if finding != Finding::Fine {
            self.event(|| finding.into());
        }
        finding
    }

    /// Writes a decision down; what cannot be written down does not run.
    pub(super) fn record(
        &mut self,
        prepared: &dyn Prepared,
        decision: &Decision,
        reply: Option<&Reply>,
    ) -> Result<(), ToolError> {
        if self.core.audit.is_none() {
            return Ok(());
        }
        self.extra().fingerprint = Some(self.fingerprint(prepared));
        let answer = reply.map(|reply| Answer::new(reply, None));
        self.write_down(Audited::decided(decision, answer)).map_err(|error| {
            let message = "the call may not run, because its decision could not be written down";
            ToolError::unavailable(message).source(error)
        })
    }

    /// Writes down that a call was refused before it could be judged.
    pub(super) fn refused(&mut self, prepared: &dyn Prepared, error: ToolError) -> ToolError {
        if error.kind() == ErrorKind::Aborted {
            return error;
        }
        let reason = error.message().to_owned();
        let decision = Decision::new(Action::Deny, By::Hook, reason);
        self.event(|| EventKind::Denied(decision.clone()));
        match self.record(prepared, &decision, None) {
            Ok(()) => error,
            Err(unwritten) => unwritten,
        }
    }

    fn write_down(&self, what: Audited<'_>) -> io::Result<()> {
        let fingerprint = self.extra.as_ref().and_then(|extra| extra.fingerprint.as_ref());
        let (Some(audit), Some(fingerprint)) = (&self.core.audit, fingerprint) else {
            return Ok(());
        };
        audit.record(&AuditRecord::new(self.session, self.definition, &self.id, fingerprint, what))
    }

    /// Counts repeats anew: somebody looked at them and said yes.
    pub(super) fn allow_repeat(&self) {
        if let Some(guarded) = &self.guarded {
            guarded.kept.history.allow(&guarded.ticket);
        }
    }

    /// Waits until the call may run beside others of its batch.
    pub(super) fn wait<'t>(
        &mut self,
        turn: &'t dyn Turn,
        prepared: &dyn Prepared,
    ) -> impl Future<Output = Result<Permit, ToolError>> + use<'t, 'a, '_> {
        let key = catch_unwind(AssertUnwindSafe(|| prepared.parallel_key())).unwrap_or_default();
        let called = turn.wait(&Facts { parallel: self.definition.parallel(), key });
        let given_up = self.given_up();
        async move {
            let permit = tokio::select! {
                biased;
                () = given_up => Err(aborted()),
                permit = called => permit,
            };
            self.begin_now();
            permit
        }
    }

    /// What the tool gets to know, of a call whose time began at `started`.
    pub(super) fn context(&self, started: Instant) -> Context {
        Context::of_call(
            self.session,
            Arc::clone(self.core) as _,
            &self.definition.name,
            &self.id,
            self.call,
            started,
            self.timeout(),
        )
    }

    /// When the time of the call began, or now.
    pub(super) fn started(&self) -> Instant {
        self.started.unwrap_or_else(Instant::now)
    }

    /// When the time of the call began: now, unless it began before.
    pub(super) fn begun(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now)
    }

    #[inline]
    fn timeout(&self) -> std::time::Duration {
        self.call.timeout.or(self.definition.timeout).unwrap_or(self.core.timeout)
    }

    /// When the time of the call is up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.started().checked_add(self.timeout())
    }

    /// Whether nobody wants the result any more.
    #[inline]
    pub(super) fn is_aborted(&self) -> bool {
        self.session.is_cancelled()
            || self.call.cancel.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Waits until nobody wants the result any more.
    pub(super) fn given_up(&self) -> impl Future<Output = ()> + use<'a> {
        let (core, session, call) = (self.core, self.session, self.call);
        async move {
            let cancelled = async {
                match &call.cancel {
                    Some(token) => token.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancelled => {}
                () = session.cancel_token().cancelled() => {}
                () = core.closed.cancelled() => {}
            }
        }
    }

    /// The end of every call: its text is cut, exactly one terminal event goes out.
    #[inline]
    pub(super) fn end(
        &mut self,
        mut result: Result<Output, ToolError>,
        notes: Vec<Note>,
    ) -> Outcome {
        if let Some(Guarded { kept, ticket, .. }) = self.guarded.take() {
            match &result {
                _ if !self.ran => kept.history.forget(ticket),
                Ok(output) => kept.history.end(ticket, Ok(output.as_text())),
                Err(error) => kept.history.end(ticket, Err(error.message())),
            }
        }
        if self.ran && self.core.audit.is_some() {
            let outcome = result.as_ref().map(|_| ()).map_err(ToolError::kind);
            let facts = result.as_ref().ok().and_then(Output::metadata_map);
            let elapsed_ms = millis(self.started().elapsed());
            // What ran has run: that this could not be written down changes nothing for it.
            let _ = self.write_down(Audited::Ran { outcome, elapsed_ms, facts });
        }
        let truncated = fit::fit(self, &mut result);
        let begun = std::mem::take(&mut self.open);
        self.event(|| self.terminal(&result, begun));
        let halted = self.extra.take().and_then(|extra| extra.halted);
        Outcome { call: self.id.clone(), result, truncated, notes, halted }
    }

    fn terminal(&self, result: &Result<Output, ToolError>, begun: bool) -> EventKind {
        let elapsed = self.started().elapsed();
        let display = Arc::clone(&self.definition.display);
        let source = self.definition.source.clone();
        match result {
            Ok(output) => EventKind::Completed {
                display,
                source,
                elapsed_ms: millis(elapsed),
                title: output.title_text().map(str::to_owned),
                data: output.display_data().cloned().map(Arc::new),
                artifacts: match output.attachments() {
                    [] => Vec::new(),
                    some => some.iter().map(Artifact::of).collect(),
                },
            },
            Err(error) => {
                let ending = Ending::new(display, source, error.kind(), error.to_string(), elapsed)
                    .begun(begun);
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
    pub(super) fn is_heard(&self) -> bool {
        self.core.hub.is_open()
    }

    /// Sends an event, which is not even built when nobody listens.
    #[inline]
    pub(super) fn event(&self, kind: impl FnOnce() -> EventKind) {
        if self.is_heard() {
            self.tell(kind);
        }
    }

    /// Apart, so that calls that nobody listens to do not carry it.
    #[inline(never)]
    fn tell(&self, kind: impl FnOnce() -> EventKind) {
        self.core.tell(self.session, &self.definition.name, &self.id, kind());
    }
}
