//! Asking about a call, and what becomes of the answer.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::before::Heard;
use super::core::Core;
use super::decide::{decide, grantees, quietly, suggestions};
use super::files;
use super::frame::Frame;
use super::turn::{Stop, Turn};
use super::witness::Subscribers;
use crate::audit::Answer;
use crate::context::{Context, Session};
use crate::error::ToolError;
use crate::event::EventKind;
use crate::permission::{
    Action, Answering, Approver, Ask, AskId, Backstage, Decision, Grant, GrantSource, Reply,
    ReplyError, Settled, Taken, Waiting,
};
use crate::tool::Prepared;

/// What became of an ask: the decision now, and the value that was shown.
pub(super) struct Answered {
    pub(super) decision: Decision,
    pub(super) reply: Option<Replied>,
    pub(super) shown: Box<dyn Prepared>,
}

/// What somebody said, and who it was where that is known.
pub(super) struct Replied {
    reply: Reply,
    who: Option<String>,
}

impl Replied {
    /// The answer to `ask`.
    pub(super) fn to(ask: &Ask, reply: Reply) -> Self {
        Self { reply, who: ask.who_answered().map(str::to_owned) }
    }

    /// Whether the call may run.
    pub(super) fn is_yes(&self) -> bool {
        self.reply.is_yes()
    }

    /// Why a call runs to which this is the answer.
    pub(super) fn reason(&self) -> Cow<'static, str> {
        match &self.who {
            Some(who) => format!("`{who}` was asked and said yes").into(),
            None => "somebody was asked and said yes".into(),
        }
    }

    /// For the record.
    pub(super) fn as_answer(&self) -> Answer<'_> {
        Answer::new(&self.reply, self.who.as_deref())
    }
}

/// Asks whoever can be asked.
pub(super) async fn ask(
    frame: &Frame<'_>,
    mut heard: Heard,
    decision: Decision,
    cx: &Context,
    turn: Option<&dyn Turn>,
) -> Result<Answered, ToolError> {
    let answered =
        |decision, reply, heard: Heard| Ok(Answered { decision, reply, shown: heard.prepared });
    let Some(approver) = frame.session.approver().or_else(|| frame.core.approver.clone()) else {
        return answered(decision.unanswered(), None, heard);
    };
    if let Some(stop) = turn.and_then(Turn::stopped) {
        return answered(decision.stopped(stop.by(), stop.as_str()), None, heard);
    }
    let ask = make(frame, &heard, &decision, cx)?;
    if frame.core.kept(frame.session).was_rejected(frame.call, &ask.fingerprint) {
        let no = decision.replied(Action::Deny, "the user rejected this very call a moment ago");
        return answered(no, None, heard);
    }
    let mut vigil = Vigil::begin(frame.core, ask, frame.session, &approver);
    frame.event(|| EventKind::PermissionAsked(Arc::clone(vigil.ask())));
    let end = wait(&mut vigil, frame, &mut heard, cx, turn).await;
    let (id, reply) = (vigil.ask().id.clone(), end.as_str());
    frame.event(|| EventKind::PermissionReplied { ask: id, reply: reply.into() });
    let (decision, reply) = match end {
        End::Settled(settled) => heed(frame, &heard, decision, cx, turn, vigil.ask(), settled),
        End::Stopped(stop) => (decision.stopped(stop.by(), stop.as_str()), None),
        End::Decided(now) => (now, None),
    };
    answered(decision, reply, heard)
}

/// What a settled ask makes of the decision.
fn heed(
    frame: &Frame<'_>,
    heard: &Heard,
    decision: Decision,
    cx: &Context,
    turn: Option<&dyn Turn>,
    ask: &Ask,
    settled: Settled,
) -> (Decision, Option<Replied>) {
    let refusal = settled.refusal();
    let Settled::Reply(reply) = settled else {
        return (decision.replied(Action::Deny, refusal), None);
    };
    let replied = Replied::to(ask, reply);
    if !replied.is_yes() {
        frame.core.kept(frame.session).reject(frame.call, ask.fingerprint.clone());
        if let (Reply::Reject, Some(turn)) = (&replied.reply, turn) {
            turn.stop(Stop::Rejected);
        }
        return (decision.replied(Action::Deny, refusal), Some(replied));
    }
    // What was shown is what runs, and only when nothing forbids it by now.
    let now = decide(frame, heard, cx);
    let decision = if now.action == Action::Deny {
        now
    } else if String::from(frame.fingerprint(&*heard.prepared)) == ask.fingerprint {
        decision.replied(Action::Allow, replied.reason())
    } else {
        let changed = "what the call touches changed while somebody was asked";
        decision.replied(Action::Deny, changed)
    };
    (decision, Some(replied))
}

/// How an ask came to its end.
enum End {
    /// It has its answer, or will have none.
    Settled(Settled),
    /// The turn ended.
    Stopped(Stop),
    /// Something else decides the call by now.
    Decided(Decision),
}

impl End {
    /// For subscribers.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Settled(settled) => settled.as_str(),
            Self::Stopped(_) => "aborted",
            Self::Decided(_) => "covered",
        }
    }
}

/// Waits until nobody needs to answer any more. The call is borrowed for this alone, because
/// what is prepared can be looked at by one thread only.
async fn wait(
    vigil: &mut Vigil<'_>,
    frame: &Frame<'_>,
    heard: &mut Heard,
    cx: &Context,
    turn: Option<&dyn Turn>,
) -> End {
    loop {
        if let Some(settled) = vigil.next().await {
            return End::Settled(settled);
        }
        if let Some(stop) = turn.and_then(Turn::stopped) {
            return End::Stopped(stop);
        }
        let now = decide(frame, heard, cx);
        if now.action != Action::Ask {
            return End::Decided(now);
        }
    }
}

/// Waits for the answer to one ask.
pub(super) struct Vigil<'a> {
    core: &'a Core,
    waiting: Waiting,
    epoch: watch::Receiver<u64>,
    expires: Instant,
}

impl<'a> Vigil<'a> {
    /// Puts the ask up.
    pub(super) fn begin(
        core: &'a Arc<Core>,
        ask: Ask,
        session: &Session,
        approver: &Arc<dyn Approver>,
    ) -> Self {
        let waiting = core.desk.put_up(ask, session, approver, answering(core, session));
        let expires = Instant::now() + core.ask_timeout;
        Self { core, waiting, epoch: core.desk.epoch(), expires }
    }

    /// What is asked.
    pub(super) fn ask(&self) -> &Arc<Ask> {
        self.waiting.ask()
    }

    /// How the ask was settled; `None` when another approval, rule or mode may have settled
    /// the matter, so that it must be looked at again.
    pub(super) async fn next(&mut self) -> Option<Settled> {
        tokio::select! {
            biased;
            settled = self.waiting.settled() => Some(settled),
            Ok(()) = self.epoch.changed() => None,
            () = tokio::time::sleep_until(self.expires) => {
                self.core.desk.settle(&self.waiting.ask().id, Settled::Expired);
                Some(Settled::Expired)
            }
        }
    }
}

/// What is shown: made from the value that will run.
fn make(
    frame: &Frame<'_>,
    heard: &Heard,
    decision: &Decision,
    cx: &Context,
) -> Result<Ask, ToolError> {
    let definition = frame.definition;
    let prepared = &*heard.prepared;
    let display = &definition.display;
    let original = heard.original().is_some();
    let witness = Subscribers::of(frame.core, frame.session, &definition.name, &frame.id);
    let mut ask = Ask {
        id: new_id()?,
        call: frame.id.clone(),
        session: frame.session.id().into(),
        agent: frame.session.agent().map(str::to_owned),
        tool: definition.name.clone(),
        display: Arc::clone(display),
        source: definition.source.clone(),
        risk: definition.risk,
        permission: definition.permission().to_owned(),
        arguments: display.masked(frame.arguments()),
        original: original.then(|| display.masked(frame.call.arguments.text())),
        summary: quietly(|| prepared.summary()).flatten(),
        subjects: decision.subjects.clone(),
        grantees: grantees(frame.definition, &decision.subjects),
        backstage: Backstage::new(&definition.aliases, witness),
        suggestions: quietly(|| suggestions(frame, prepared, decision)).unwrap_or_default(),
        by: decision.by,
        reason: decision.reason.clone().into_owned(),
        rules: decision.rules.clone(),
        preview: quietly(|| prepared.preview(cx)).flatten(),
        dangerous: quietly(|| prepared.is_dangerous()).unwrap_or(true),
        fingerprint: frame.fingerprint(prepared).into(),
        expires_in: frame.core.ask_timeout,
    };
    if !ask.offers_always() {
        ask.suggestions.clear();
    }
    Ok(ask)
}

/// 128 random bits; without them nobody could be asked safely.
pub(super) fn new_id() -> Result<AskId, ToolError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        ToolError::internal("nobody can be asked: the system has no random numbers").source(error)
    })?;
    Ok(AskId::new(&format!("{:032x}", u128::from_be_bytes(bits))))
}

/// What an approver's answer leads to.
pub(super) fn answering(
    core: &Arc<Core>,
    session: &Session,
) -> impl FnOnce(Arc<Ask>, Option<Reply>) -> Answering + Send + use<> {
    let (core, session) = (Arc::clone(core), session.clone());
    move |ask, reply| {
        Box::pin(async move {
            let counted = match reply {
                Some(reply) => answer(&core, &ask.id, &ask.fingerprint, reply).await,
                // An approver that panics has said no.
                None => return core.desk.settle(&ask.id, Settled::Gone),
            };
            match counted {
                Ok(()) => {}
                Err(error @ ReplyError::NotOffered { .. }) => {
                    let message = format!("an answer does not count: {error}");
                    core.warn(&session, &ask.tool, &ask.call, message);
                    core.desk.settle(&ask.id, Settled::NotOffered);
                }
                Err(_) => core.desk.settle(&ask.id, Settled::Gone),
            }
        })
    }
}

/// Makes an answer count: approvals are kept and siblings looked at before anybody hears.
pub(super) async fn answer(
    core: &Arc<Core>,
    id: &AskId,
    shown: &str,
    reply: Reply,
) -> Result<(), ReplyError> {
    let taken = core.desk.take(id, shown, &reply)?;
    let grants = |patterns: &[String]| {
        let to = &taken.ask().grantees;
        patterns
            .iter()
            .flat_map(|pattern| to.iter().map(|to| Grant::new(to.clone(), pattern.clone())))
            .collect::<Vec<_>>()
    };
    match &reply {
        Reply::Session { patterns } | Reply::Always { patterns } if is_blank(patterns) => {
            let message = "the approval names no pattern, so it holds for this call only";
            let ask = taken.ask();
            core.warn(taken.session(), &ask.tool, &ask.call, message.to_owned());
        }
        Reply::Session { patterns } => keep(core, &taken, grants(patterns)),
        Reply::Always { patterns } => store(core, &taken, grants(patterns)).await,
        Reply::Reject => core.desk.reject_beside(taken.session()),
        Reply::Once | Reply::RejectWith { .. } => {}
    }
    taken.settle(Settled::Reply(reply));
    Ok(())
}

/// Whether none of the patterns grants anything.
fn is_blank(patterns: &[String]) -> bool {
    patterns.iter().all(|pattern| pattern.trim().is_empty())
}

/// Keeps approvals until the session ends.
fn keep(core: &Core, taken: &Taken, grants: Vec<Grant>) {
    let approvals = &core.kept(taken.session()).approvals;
    for grant in grants {
        approvals.add(grant);
    }
    core.desk.reconsider();
}

/// Keeps approvals for always; what cannot be stored holds for the session.
async fn store(core: &Core, taken: &Taken, grants: Vec<Grant>) {
    let ask = taken.ask();
    let error = match core.store.clone() {
        None => "nothing is stored here".to_owned(),
        Some(store) => {
            let wanted = grants.clone();
            let mut source = GrantSource::new(&*ask.session, ask.call.to_string());
            if let Some(user) = taken.session().user() {
                source = source.who(user);
            }
            let roots = files::roots(taken.session());
            let stored = move || store.grant_beside(&roots, wanted, source);
            match tokio::task::spawn_blocking(stored).await {
                Ok(Ok(_)) => return core.desk.reconsider(),
                Ok(Err(error)) => error.to_string(),
                Err(defect) => defect.to_string(),
            }
        }
    };
    let message = format!("the approval holds for this session only: {error}");
    core.warn(taken.session(), &ask.tool, &ask.call, message);
    keep(core, taken, grants);
}
