//! What all calls of a pipeline share: its settings, its asks, and what it keeps for a
//! session.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::files;
use super::thoughts::Thoughts;
use super::works::Works;
use crate::audit::{self, Audit};
use crate::call::{Call, CallId};
use crate::context::{Asking, Context, Inquiring, Session, Sight, Signal, Sink, Stop, ToolFacts};
use crate::event::{About, EventKind, Held, Hub};
use crate::hook::Registered;
use crate::loop_guard::{History, LoopGuard};
use crate::name::ToolName;
use crate::permission::{ApprovalStore, Approvals, Approver, Desk, Loaded, Mode};
use crate::redact::{Redactor, Spotted};
use crate::tool::{Definition, Label};
use crate::toolset::Toolset;
use crate::truncate::Budget;

/// What all calls of a pipeline share.
#[derive(Clone)]
pub(super) struct Core {
    /// Tells this pipeline's sessions from those of others.
    pub(super) number: usize,
    pub(super) toolset: Arc<Toolset>,
    pub(super) hub: Arc<Hub>,
    pub(super) desk: Arc<Desk>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) store: Option<Arc<ApprovalStore>>,
    pub(super) ask_timeout: Duration,
    pub(super) writable: Option<Arc<[PathBuf]>>,
    pub(super) hooks: Arc<[Registered]>,
    /// Whether one of the hooks wants to know how long tools ran.
    pub(super) wants_elapsed: bool,
    pub(super) guard: Option<LoopGuard>,
    pub(super) audit: Option<Arc<dyn Audit>>,
    /// What takes secrets out of events.
    pub(super) redactor: Option<Arc<Redactor>>,
    /// The output that waits for what comes behind it.
    held: Arc<Held>,
    pub(super) timeout: Duration,
    pub(super) budget: Budget,
    pub(super) output_dir: Option<PathBuf>,
    pub(super) closed: CancellationToken,
}

impl Core {
    pub(super) fn new(toolset: Toolset, hub: Arc<Hub>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            toolset: Arc::new(toolset),
            hub,
            desk: Arc::default(),
            approver: None,
            store: None,
            ask_timeout: Duration::from_mins(10),
            writable: None,
            hooks: Arc::default(),
            wants_elapsed: false,
            guard: None,
            audit: None,
            redactor: None,
            held: Arc::default(),
            timeout: Duration::from_mins(2),
            budget: Budget::default(),
            output_dir: None,
            closed: CancellationToken::new(),
        }
    }

    /// Sends an event to whoever listens.
    pub(super) fn tell(&self, session: &Session, tool: &ToolName, call: &CallId, kind: EventKind) {
        let tool = &self.label(session, tool);
        self.tell_of(0, About { session, tool, call }, kind, &[]);
    }

    /// Tells whoever listens, and whoever made the call, what they should know.
    #[cold]
    pub(super) fn warn(&self, session: &Session, tool: &ToolName, call: &CallId, message: String) {
        if let Some(listener) = session.listener() {
            match &self.redactor {
                None => listener.warn(tool, &message),
                Some(redactor) => {
                    let mut message = message.clone();
                    redactor.scrub_told(&mut message, &Spotted::default());
                    listener.warn(tool, &message);
                }
            }
        }
        self.tell(session, tool, call, EventKind::Warned { message });
    }

    /// What is told of a tool that is known by its name.
    fn label(&self, session: &Session, name: &ToolName) -> Arc<Label> {
        let view = self.toolset.view_for(session);
        match view.find(name.as_str()).and_then(|at| view.at(at)) {
            Some((tool, policy)) => Arc::clone(policy.label(tool.definition())),
            None => Arc::new(Label::named(name.clone())),
        }
    }

    /// The same of a call whose beginning has the number `begun`, and whose `arguments` were these
    /// at any time; gives the number of this.
    pub(super) fn tell_of(
        &self,
        begun: u64,
        about: About<'_>,
        mut kind: EventKind,
        arguments: &[&str],
    ) -> u64 {
        if let Some(redactor) = &self.redactor {
            kind.redact(redactor, arguments);
        }
        self.hub.send(begun, about, kind)
    }

    /// Tells what waits of the output of a call that ends.
    pub(super) fn release(&self, session: &Session, tool: &ToolName, call: &CallId) {
        if let Some(redactor) = &self.redactor
            && let Some(text) = self.held.rest(redactor, session, call)
        {
            self.say(session, tool, call, Signal::Output { text });
        }
    }

    /// Tells what a tool says, in which there are no secrets any more.
    fn say(&self, session: &Session, tool: &ToolName, call: &CallId, signal: Signal) {
        if let Some(listener) = session.listener() {
            listener.hear(tool, &signal);
        }
        if self.hub.is_near() {
            let tool = &self.label(session, tool);
            self.hub.send(0, About { session, tool, call }, signal.into());
        }
    }

    /// How much the session does without asking.
    pub(super) fn mode(&self, session: &Session) -> Mode {
        let of_view = self.toolset.view_for(session).mode();
        let of_session = session.policy().and_then(|policy| policy.mode);
        of_session.map_or(of_view, |mode| mode.stricter(of_view))
    }

    /// Who is asked about the calls of a session.
    pub(super) fn approver_of(&self, session: &Session) -> Option<Arc<dyn Approver>> {
        session.approver().or_else(|| self.approver.clone())
    }

    /// The approvals of the store that hold for a session: none where its tools could have
    /// written them.
    pub(super) fn stored(&self, session: &Session) -> Option<Loaded> {
        self.store.as_ref().map(|store| store.grants_beside(&files::roots(session)))
    }

    /// Whether it is at or below `path` that this pipeline keeps what was approved or decided:
    /// who writes there approves of their own calls.
    pub(super) fn keeps(&self, path: &Path) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_around(path))
            || self.audit.as_ref().is_some_and(|log| audit::is_file(&**log, path))
    }

    /// What this pipeline keeps for a session.
    #[inline]
    pub(super) fn kept<'s>(&self, session: &'s Session) -> &'s Kept {
        session.kept(self.number)
    }
}

/// What a pipeline keeps for one session.
#[derive(Default)]
pub(super) struct Kept {
    /// What the session did lately.
    pub(super) history: History,
    /// What was approved until the session ends.
    pub(super) approvals: Approvals,
    /// For how long somebody thought about its running calls.
    pub(super) thoughts: Thoughts,
    /// What they do on other threads.
    pub(super) works: Works,
    /// What was rejected in the message that the model wrote last.
    rejected: Mutex<(Option<Arc<str>>, HashSet<String>)>,
}

impl Kept {
    /// Whether somebody said no to this very call of the same message.
    pub(super) fn was_rejected(&self, call: &Call<'_>, fingerprint: &str) -> bool {
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        call.message.is_some() && rejected.0 == call.message && rejected.1.contains(fingerprint)
    }

    /// Remembers that somebody said no, so that they are not asked again at once.
    pub(super) fn reject(&self, call: &Call<'_>, fingerprint: String) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        if rejected.0 != call.message {
            *rejected = (call.message.clone(), HashSet::new());
        }
        rejected.1.insert(fingerprint);
    }
}

impl Sink for Core {
    #[inline]
    fn is_open(&self) -> bool {
        self.hub.is_near()
    }

    fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    fn thought(&self, cx: &Context) -> Duration {
        self.kept(cx.session()).thoughts.so_far(cx.call())
    }

    fn works(&self, cx: &Context, stop: &Stop) {
        self.kept(cx.session()).works.begin(cx.call(), cx.started(), stop);
    }

    fn worked(&self, cx: &Context, stop: &Stop) {
        self.kept(cx.session()).works.end(stop);
    }

    fn signal(&self, cx: &Context, signal: Signal) {
        let (session, call) = (cx.session(), cx.call());
        let signal = match (&self.redactor, signal) {
            (None, signal) => signal,
            (Some(redactor), Signal::Output { text }) => {
                let Some(text) = self.held.next(redactor, session, call, text) else { return };
                Signal::Output { text }
            }
            (Some(redactor), signal) => signal.redacted(redactor),
        };
        self.say(session, cx.tool(), call, signal);
    }

    fn ask(self: Arc<Self>, cx: Context, permission: String, what: String) -> Asking {
        Box::pin(super::more::may(self, cx, permission, what))
    }

    fn think(self: Arc<Self>, cx: Context, answers: Inquiring) -> Inquiring {
        Box::pin(super::more::answers(self, cx, answers))
    }

    fn search_tools(&self, cx: &Context, query: &str, limit: usize) -> Vec<ToolFacts> {
        self.toolset.view_for(cx.session()).search(query, limit).into_iter().map(facts).collect()
    }

    fn sight(self: Arc<Self>, cx: &Context, permission: &str) -> Sight {
        super::sight::sight(&self, cx, permission)
    }
}

/// What a tool may learn of another.
fn facts(definition: &Definition) -> ToolFacts {
    let text = |text: &Cow<'static, str>| text.clone().into_owned();
    let mut facts = ToolFacts::new(
        definition.name.clone(),
        text(&definition.description),
        definition.parameters.to_value(),
    );
    facts.title = definition.title.as_ref().map(text);
    facts.category = definition.category.as_ref().map(text);
    facts
}
