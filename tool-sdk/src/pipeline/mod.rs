//! The one way to run a tool: every gate stands here, in this order.
//!
//! ```text
//! resolve   name or alias; unknown names get close ones back
//! admit     the pipeline is open, the caller is known where the tool asks for that
//! prepare   strict JSON, decoded once, every fault in one message
//! hooks     before-hooks by priority; a rewrite is prepared again
//! guard     the same call again and again is found out
//! decide    rules, approvals, mode, hooks' opinions
//! ask       blocks on the answer; what was shown is what runs
//! turn      in a batch, waits until it may run beside the others
//! run       time limit, cancellation, panics contained; events flow
//! after     after-hooks see the whole result, on failure too
//! fit       the text is cut to what a model can read; the whole goes to a file
//! finish    audit record, exactly one terminal event, exactly one result
//! ```
//!
//! A call that nobody has a say in, as most are, passes them without a stop ([`at_once`]);
//! any other stops at each ([`gates`]).
//!
//! **Invariant:** nothing here knows a surface, or any tool by its name, and no error on
//! the way to `run` ends in running the tool.

mod approved;
mod arguments;
mod ask;
mod at_once;
mod builder;
mod core;
mod decide;
mod files;
mod fit;
mod frame;
mod gates;
mod hooks;
mod more;
mod run;
mod sight;
#[cfg(test)]
mod tests;
mod thoughts;
mod trace;
mod turn;
mod unknown;
mod witness;
mod works;

use std::borrow::Borrow;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{self, Poll};

use futures_util::FutureExt as _;

use self::core::Core;
use self::frame::Frame;
use self::gates::Way;
use self::hooks::Shown;
use self::trace::Traced;
pub(crate) use self::turn::{Facts, Line, Permit, Stop, Turn};
use crate::call::{Call, CallId, Outcome};
use crate::context::Session;
use crate::error::ToolError;
use crate::event::{Events, HubOwner};
use crate::name::ToolName;
use crate::permission::{
    Ask, AskId, Decision, Fingerprint, Grant, Mode, Reply, ReplyError, Rule, Ruleset,
};
use crate::toolset::Toolset;
use crate::truncate::{RETENTION, sweep};

/// Runs calls of the tools in a [`Toolset`].
///
/// Cheap to clone; clones share the toolset, the subscribers and what waits for an answer.
///
/// A pipeline is careful unless it is told otherwise: tools that only read run, everything
/// else must be allowed by a [rule](Self::rules), by the [mode](Self::mode), or by whoever
/// [can be asked](Self::approver). Without anybody to ask, the answer is no.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
///
/// /// Add two numbers.
/// #[tool(read)]
/// fn add(
///     /// The first.
///     a: i64,
///     /// The second.
///     b: i64,
/// ) -> String {
///     (a + b).to_string()
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let registry = Registry::builder().add(tools![add]).build()?;
/// let pipeline = Pipeline::new(registry);
///
/// let outcome = pipeline.call(&Session::default(), Call::new("add", r#"{"a": 2, "b": 3}"#)).await;
/// assert_eq!(outcome.text(), "5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Pipeline {
    core: Arc<Core>,
    /// Closes the subscriptions when the last clone is gone.
    owner: HubOwner,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("toolset", &self.core.toolset)
            .field("hooks", &self.core.hooks)
            .field("events", &self.owner)
            .finish_non_exhaustive()
    }
}

/// What happens while calls run.
impl Pipeline {
    /// The tools that can be called.
    #[must_use]
    pub fn toolset(&self) -> &Toolset {
        &self.core.toolset
    }

    /// The toolset, for whoever adds tools to it while calls are made.
    #[cfg(feature = "mcp")]
    pub(crate) fn shared_toolset(&self) -> Arc<Toolset> {
        Arc::clone(&self.core.toolset)
    }

    /// Listens to what happens to calls from now on.
    ///
    /// Nobody waits for who listens. Whoever does not keep up loses progress, then what
    /// happens to calls on their way, which [`EventKind::Lost`](crate::EventKind::Lost)
    /// counts; the end of a call that was seen to begin is never lost.
    #[must_use]
    pub fn subscribe(&self) -> Events {
        self.core.hub.subscribe()
    }

    /// Listens to what one call says while it runs.
    #[cfg(feature = "mcp")]
    pub(crate) fn subscribe_to(&self, call: &CallId) -> Events {
        self.core.hub.subscribe_to(call)
    }

    /// Changes how much is done without asking; what waits for an answer is looked at
    /// again.
    pub fn set_mode(&self, mode: Mode) {
        self.core.toolset.set_mode(mode);
        self.core.desk.reconsider();
    }

    /// Replaces the rules; what waits for an answer is looked at again.
    pub fn set_rules(&self, rules: Ruleset) {
        self.core.toolset.set_rules(rules);
        self.core.desk.reconsider();
    }

    /// Whether the host named somebody to ask.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only servers want to know"))]
    pub(crate) fn has_approver(&self) -> bool {
        self.core.approver.is_some()
    }

    /// What waits for an answer, the oldest first.
    #[must_use]
    pub fn asks(&self) -> Vec<Arc<Ask>> {
        self.core.desk.waiting()
    }

    /// Answers an ask by its id.
    ///
    /// `shown` is the [fingerprint](Ask::fingerprint) of what was shown, so that no answer
    /// counts for another call.
    ///
    /// # Errors
    ///
    /// Fails when no such ask waits, when it is about another call than what was shown, or
    /// when the answer reaches further than was offered. The ask then waits on.
    pub async fn reply(&self, ask: &AskId, shown: &str, reply: Reply) -> Result<(), ReplyError> {
        ask::answer(&self.core, ask, shown, reply).await
    }

    /// What was approved until the session ends, the oldest first. What was approved for always
    /// is [listed](crate::ApprovalStore::list) by its store.
    #[must_use]
    pub fn approved(&self, session: &Session) -> Vec<Grant> {
        self.core.kept(session).approvals.list()
    }

    /// Takes back what was approved until the session ends: all of it, or only what was granted
    /// to one tool. The next call that needs it is asked about again.
    pub fn forget(&self, session: &Session, tool: Option<&ToolName>) {
        self.core.kept(session).approvals.clear(tool);
    }

    /// Removes kept outputs that are older than seven days; says how many.
    ///
    /// Happens by itself, at most once an hour, when an output is kept.
    ///
    /// # Errors
    ///
    /// Fails when the folder of outputs cannot be read.
    pub fn sweep_outputs(&self) -> std::io::Result<usize> {
        match &self.core.output_dir {
            Some(folder) => sweep(folder, RETENTION),
            None => Ok(0),
        }
    }

    /// Ends every running call, every ask and every subscription; later calls fail.
    pub fn close(&self) {
        self.core.desk.close();
        self.core.closed.cancel();
        self.core.hub.close();
    }

    /// Waits for what hooks do that no call waited for, such as commands in the background;
    /// each has a limit of its own.
    ///
    /// For the end of a program: what still runs when its runtime ends is never done.
    pub async fn finish(&self) {
        for registered in &*self.core.hooks {
            let finish = async { registered.hook.finish().done().await };
            // A panic of a hook is its own end, and of nothing else.
            let _ = AssertUnwindSafe(finish).catch_unwind().await;
        }
    }

    /// Runs one call from beginning to end.
    ///
    /// Whatever happens, there is exactly one outcome: a panic of the tool is a failed call.
    /// Dropping the future drops the tool's future too.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with its timer, once a tool waits for something.
    pub fn call<'a>(
        &'a self,
        session: &'a Session,
        call: Call<'a>,
    ) -> impl Future<Output = Outcome> + Send + 'a {
        self.through_the_gates(session, call, None, trace::Off)
    }

    /// Runs one call, which waits for its turn between being approved and being run.
    pub(crate) fn call_in_turn<'a>(
        &'a self,
        session: &'a Session,
        call: &'a Call<'a>,
        turn: &'a dyn Turn,
    ) -> impl Future<Output = Outcome> + Send + 'a {
        self.through_the_gates(session, call, Some(turn), trace::Off)
    }

    /// The same inside a span.
    #[cold]
    fn spanned<'a>(
        &'a self,
        session: &'a Session,
        call: &'a Call<'a>,
        turn: Option<&'a dyn Turn>,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>> {
        Box::pin(async move {
            let mut call = call.clone();
            let id = call.id.get_or_insert_with(CallId::next).clone();
            let view = self.core.toolset.view_for(session);
            let span = match view.definition(&call.name) {
                Some(it) => trace::call_span(session, &it.name, Some(it), &id),
                None => trace::call_span(session, &unknown::told(&call.name), None, &id),
            };
            let resolving = trace::On::resolving(&span);
            let running = self.through_the_gates(session, &call, turn, resolving);
            trace::traced(span, running).await
        })
    }

    /// The whole way of a call, whoever owns it, which may have its span already. One future from
    /// beginning to end: each that stands in another copies the outcome once more. And one function
    /// for those who trace and one for those who do not: these pay for nothing but one look.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` would copy the call once more")]
    fn through_the_gates<'a, T: Traced + 'a>(
        &'a self,
        session: &'a Session,
        call: impl Borrow<Call<'a>> + Send + 'a,
        turn: Option<&'a dyn Turn>,
        resolving: T,
    ) -> impl Future<Output = Outcome> + Send + 'a {
        async move {
            let call = call.borrow();
            if !T::IS_ON && trace::is_on() {
                return self.spanned(session, call, turn).await;
            }

            // resolve; the id is first, because what was only just written is slow to move
            let id = call.known_as();
            let view = self.core.toolset.view_for(session);
            let Some((tool, policy)) = view.find(&call.name).and_then(|at| view.at(at)) else {
                return self.unresolved(session, call, resolving);
            };
            drop(resolving);
            let mut shown = Shown::default();
            let mut frame = Frame::new(&self.core, session, call, &id, &**tool, policy, &view);

            // admit, prepare, and for most calls all the rest
            let mut result = None;
            trace::stage(&mut frame, T::IS_ON, "admit");
            let is_slow = turn.is_some() || T::IS_ON;
            let instead = {
                let mut left = None;
                let (on_its_way, room) = (&mut frame, (&mut shown, &mut result, &mut left));
                let mut room = Some(room);
                let go = move |task: &mut task::Context<'_>| {
                    // Most leave nothing, and then there is nothing to write.
                    if let Some((shown, result, left)) = room.take()
                        && let Some(here) =
                            at_once::go::<T>(on_its_way, is_slow, task, shown, result)
                    {
                        *left = Some(here);
                    }
                    Poll::Ready(())
                };
                poll_fn(go).await;
                match left {
                    None => None,
                    Some(left) => {
                        let mut way = Way { turn, is_traced: T::IS_ON, permit: None };
                        let mut passing = pin!(gates::pass(&mut frame, left, &mut way));
                        poll_fn(|task| apart(passing.as_mut(), task)).await
                    }
                }
            };
            if let Some(instead) = instead {
                result = Some(instead);
            }

            // fit, finish
            frame.end::<T>(&mut result)
        }
    }

    /// What would become of a call, without running it and without asking anybody.
    ///
    /// Before-hooks are run: they may have a say, or change the arguments.
    ///
    /// # Errors
    ///
    /// Fails like a call whose tool is unknown or whose arguments are invalid.
    pub async fn check(&self, session: &Session, call: Call<'_>) -> Result<Checked, ToolError> {
        let view = self.core.toolset.view_for(session);
        let Some((tool, policy)) = view.find(&call.name).and_then(|at| view.at(at)) else {
            return Err(self.unknown(session, &call.name));
        };
        let id = call.known_as();
        let mut frame = Frame::new(&self.core, session, &call, &id, &**tool, policy, &view);
        frame.admit()?;
        let prepared = frame.prepare()?;
        decide::check(&mut frame, prepared).await
    }
}

/// Polls `future` in a function of its own, so that the way of most calls stays short enough
/// to become part of whoever makes them.
#[inline(never)]
fn apart<F: Future>(future: Pin<&mut F>, task: &mut task::Context<'_>) -> Poll<F::Output> {
    future.poll(task)
}

/// What would become of a call.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// What is decided, and why.
    #[serde(flatten)]
    pub decision: Decision,
    /// The patterns that an approval could grant, where it asks.
    pub suggestions: Vec<String>,
    /// The fingerprint of the call that would run.
    pub fingerprint: Fingerprint,
    /// The rules that miss something, see [`View::unmatched_rules`](crate::View::unmatched_rules).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched_rules: Vec<Rule>,
}
