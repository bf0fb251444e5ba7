//! One call on its way through the pipeline: what every stage may look at.

mod hooked;
mod record;
mod repeats;
#[cfg(feature = "workspace")]
mod roots;
#[cfg(not(feature = "workspace"))]
#[path = "nothing.rs"]
mod roots;
#[cfg(feature = "process")]
mod sandbox;
#[cfg(not(feature = "process"))]
#[path = "nothing.rs"]
mod sandbox;
mod told;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::Span;

pub(super) use self::hooked::Seen;
use self::repeats::Guarded;
use super::core::Core;
use super::run::{aborted, contained};
use super::turn::{Facts, Permit, Stop, Turn};
use crate::call::{Aside, Call, CallId, Cancel, RawArgs};
use crate::context::{Context, Session};
use crate::effect::RiskClass;
use crate::error::ToolError;
use crate::permission::{Action, By, Decision, Fingerprint};
use crate::seldom::Seldom;
use crate::tool::{Definition, Prepared, Tool};
use crate::toolset::{Policy, View};

/// One call on its way through the pipeline.
pub(super) struct Frame<'a> {
    pub(super) core: &'a Core,
    /// The same, for who keeps it.
    pub(super) shared: &'a Arc<Core>,
    pub(super) session: &'a Session,
    pub(super) call: &'a Call<'a>,
    pub(super) definition: &'a Definition,
    pub(super) id: &'a CallId,
    tool: &'a dyn Tool,
    policy: &'a Policy,
    /// What the caller saw of the toolset when the call was looked up.
    view: &'a Arc<View>,
    /// When the time of the call began; unknown until somebody wants to know.
    started: Option<Instant>,
    /// Where a beginning was told whose end was not: the number of that event, or 0 where
    /// nobody listened.
    begun: Option<u64>,
    /// What the guard against loops found.
    guarded: Option<Guarded<'a>>,
    /// Whether rules let the call through, or the mode, and nobody who was asked.
    is_unasked: bool,
    /// Whether the tool was let run.
    ran: bool,
    /// What only few calls have.
    extra: Seldom<Option<Box<Extra>>>,
}

/// What only few calls have.
#[derive(Default)]
pub(super) struct Extra {
    /// The arguments, where a hook changed them.
    rewritten: Option<RawArgs<'static>>,
    /// The hooks that changed them, for the record.
    changed_by: Vec<String>,
    /// What hooks want the model to read with the result.
    pub(super) context: Vec<String>,
    /// What the audit knows the call by.
    fingerprint: Option<Fingerprint>,
    /// What the call was when somebody let it run.
    approved: Option<Fingerprint>,
    /// What goes beside the result.
    pub(super) aside: Seldom<Option<Box<Aside>>>,
    /// The span of the stage that the call is in, where somebody traces that closely.
    pub(super) stage: Option<Span>,
}

impl<'a> Frame<'a> {
    #[inline]
    pub(super) fn new(
        core: &'a Arc<Core>,
        session: &'a Session,
        call: &'a Call<'a>,
        id: &'a CallId,
        tool: &'a dyn Tool,
        policy: &'a Policy,
        view: &'a Arc<View>,
    ) -> Self {
        let started = core.hub.is_open().then(Instant::now);
        Self {
            core,
            shared: core,
            session,
            call,
            definition: tool.definition(),
            id,
            tool,
            policy,
            view,
            started,
            begun: None,
            guarded: None,
            is_unasked: false,
            ran: false,
            extra: Seldom::default(),
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
    pub(super) fn prepare(&self) -> Result<Box<dyn Prepared>, ToolError> {
        contained(|| self.decode()).flatten()
    }

    /// The same for who contains panics.
    #[inline]
    pub(super) fn decode(&self) -> Result<Box<dyn Prepared>, ToolError> {
        let prepared = match self.core.guard {
            Some(_) => self.tool.prepare(&self.raw().to_digest()),
            None => self.tool.prepare(self.raw()),
        };
        prepared.map_err(ToolError::from)
    }

    /// Whether, but for hooks, nothing has a say in this call but what allows it anyway.
    pub(super) fn is_settled(&self, prepared: &dyn Prepared) -> bool {
        contained(|| self.lets_run(prepared)).unwrap_or(false)
    }

    /// The same for who contains panics.
    #[inline(always)]
    pub(super) fn lets_run(&self, prepared: &dyn Prepared) -> bool {
        self.policy.settled == Some(Action::Allow)
            && self.core.audit.is_none()
            && (self.core.writable.is_none() || self.definition.risk.class == RiskClass::Read)
            && self.session.policy().is_none()
            && prepared.has_no_wish()
    }

    /// Whether somebody is asked about what only looks, too.
    pub(super) fn asks_about_looking(&self) -> bool {
        self.core.mode(self.session).default_action(RiskClass::Read) == Action::Ask
    }

    /// Whether the tool was let run.
    #[inline]
    pub(super) fn has_run(&self) -> bool {
        self.ran
    }

    /// Whether a hook looks at the call.
    #[inline]
    pub(super) fn is_hooked(&self) -> bool {
        let hooks = &self.core.hooks;
        !hooks.is_empty() && hooks.iter().any(|hook| hook.sees(self.definition))
    }

    /// Whether a hook or the guard against loops looks at the call.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.core.guard.is_some() || self.is_hooked()
    }

    /// Whether the toolset is still what it was when the call was looked up.
    #[inline]
    pub(super) fn is_current(&self) -> bool {
        self.core.toolset.shows(self.view)
    }

    /// Lets the time of the call count from now: nobody waits for a person on its account.
    pub(super) fn begin_now(&mut self) {
        self.started = Some(Instant::now());
    }

    /// The same, where anybody wants to know how long the tool ran; else it counts from when
    /// somebody looks.
    #[inline]
    pub(super) fn begin_soon(&mut self) {
        let core = self.core;
        if self.started.is_some() || core.wants_elapsed || core.audit.is_some() {
            self.begin_now();
        }
    }

    /// The arguments as they are now.
    #[inline]
    fn raw(&self) -> &RawArgs<'_> {
        match &*self.extra {
            Some(extra) => extra.rewritten.as_ref().unwrap_or(&self.call.arguments),
            None => &self.call.arguments,
        }
    }

    /// The text of the arguments as they are now.
    #[inline]
    pub(super) fn arguments(&self) -> &str {
        self.raw().text()
    }

    /// Replaces the arguments, which hooks with these `names` changed.
    pub(super) fn rewrite(&mut self, arguments: String, names: Vec<String>) {
        self.note_changes(&arguments, names);
        // What was sent has been looked at before; what a hook writes is the host's word.
        let lenient = self.call.arguments.lenient.hidden();
        self.extra().rewritten = Some(RawArgs::from(arguments).lenient(lenient));
    }

    /// Ends the span of one stage, and begins that of the next.
    pub(super) fn enter(&mut self, stage: impl FnOnce() -> Span) {
        let extra = self.extra();
        extra.stage = None;
        extra.stage = Some(stage());
    }

    pub(super) fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// What goes beside the result.
    pub(super) fn aside(&mut self) -> &mut Aside {
        self.extra().aside.get_or_insert_default()
    }

    /// What hooks want the model to read with the result.
    #[inline]
    pub(super) fn take_context(&mut self) -> Option<String> {
        let context = std::mem::take(&mut self.extra.as_mut()?.context);
        (!context.is_empty()).then(|| context.join("\n\n"))
    }

    /// Lets the other calls of the batch know that a hook ended the model's turn.
    pub(super) fn pass_on_halt(&self, turn: Option<&dyn Turn>) {
        let Some(turn) = turn else { return };
        let aside = self.extra.as_ref().and_then(|extra| extra.aside.as_ref());
        if aside.is_some_and(|aside| aside.halted.is_some()) {
            turn.stop(Stop::Halted);
            // Nobody needs to answer any more what was asked on their account.
            self.core.desk.reconsider();
        }
    }

    /// Whether the call is one of this very tool.
    pub(super) fn is_of(&self, tool: &Arc<dyn Tool>) -> bool {
        std::ptr::addr_eq(self.tool, Arc::as_ptr(tool))
    }

    /// The value of the argument `name`, under whichever name it came, or its default.
    pub(super) fn argument(&self, arguments: &Value, name: &str) -> Option<Value> {
        let lenient = self.call.arguments.lenient;
        let sent = self.tool.spellings(name).into_iter().find_map(|name| arguments.get(name));
        match sent {
            Some(Value::Null) if lenient.null_is_absent => self.tool.default_of(name),
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
            None => self.tool.default_of(name),
        }
    }

    /// Waits until those before it in its batch are decided, or wait for an answer.
    pub(super) async fn in_line(&self, turn: &dyn Turn) -> Result<(), ToolError> {
        tokio::select! {
            biased;
            () = self.given_up() => Err(aborted()),
            () = turn.in_line() => Ok(()),
        }
    }

    /// Waits until the call may run beside others of its batch.
    pub(super) fn wait<'t>(
        &mut self,
        turn: &'t dyn Turn,
        prepared: &dyn Prepared,
    ) -> impl Future<Output = Result<Permit, ToolError>> + use<'t, 'a, '_> {
        let key = contained(|| prepared.parallel_key());
        let parallel = self.definition.parallel();
        let called = key.map(|key| turn.wait(&Facts { parallel, key }));
        let given_up = self.given_up();
        async move {
            let called = called?;
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
            Arc::clone(self.shared) as _,
            &self.definition.name,
            self.id,
            self.call,
            started,
            self.timeout(),
        )
    }

    /// The context in which the tool runs.
    pub(super) fn context_to_run(&mut self) -> Context {
        let started = self.begun();
        self.context(started).unasked(self.is_unasked)
    }

    /// Keeps who let the call through.
    pub(super) fn let_through(&mut self, decision: &Decision) {
        self.is_unasked = matches!(decision.by, By::Rule | By::Default);
    }

    /// When the time of the call began, or now.
    pub(super) fn started(&self) -> Instant {
        self.started.unwrap_or_else(Instant::now)
    }

    /// For how long the call has been on its way.
    #[inline]
    pub(super) fn elapsed(&self) -> Duration {
        let started = self.started();
        Instant::now().into_std().duration_since(started.into_std())
    }

    /// When the time of the call began: now, unless it began before.
    pub(super) fn begun(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now)
    }

    #[inline]
    fn timeout(&self) -> Duration {
        self.call.timeout.or(self.definition.timeout).unwrap_or(self.core.timeout)
    }

    /// When the time of the call is up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.started().checked_add(self.timeout())
    }

    /// Whether nobody wants the result any more.
    #[inline(always)]
    pub(super) fn is_aborted(&self) -> bool {
        self.core.hub.is_closed()
            || self.session.is_cancelled()
            || self.call.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// Waits until nobody wants the result any more.
    pub(super) fn given_up(&self) -> impl Future<Output = ()> + use<'a> {
        given_up(self.core, self.session, self.call)
    }
}

/// Waits until nobody wants the result of a call any more.
async fn given_up(core: &Core, session: &Session, call: &Call<'_>) {
    let cancelled = async {
        match &call.cancel {
            Some(cancel) => cancel.token().cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cancelled => {}
        () = session.cancel_token().cancelled() => {}
        () = core.closed.cancelled() => {}
    }
}
