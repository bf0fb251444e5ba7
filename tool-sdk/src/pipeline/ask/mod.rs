//! Asking about a call: what is shown ([`shown`]), to whom ([`front`]), who waits ([`vigil`]), and what the
//! decision is once somebody has answered. How an answer counts for others is in [`answer`].

mod answer;
mod front;
mod shown;
mod vigil;

use std::borrow::Cow;
use std::sync::Arc;

pub(super) use self::answer::answer;
pub(super) use self::shown::new_id;
pub(super) use self::vigil::Vigil;
use super::decide::{decide, quietly, unknown};
use super::frame::Frame;
use super::hooks::Heard;
use super::turn::{Stop, Turn};
use crate::audit::Answer;
use crate::context::Context;
use crate::error::ToolError;
use crate::event::EventKind;
use crate::permission::{Action, Ask, Change, Decision, Reply, Settled};

/// What became of an ask.
pub(super) struct Answered {
    /// What is decided now.
    pub(super) decision: Decision,
    pub(super) reply: Option<Replied>,
    /// The call that was shown.
    pub(super) heard: Heard,
    /// What a hook makes of it instead, which nobody has decided about.
    pub(super) change: Option<Change>,
    /// Why the model's turn ends, where a hook that answered said so.
    pub(super) halted: Option<String>,
}

impl Answered {
    /// What was decided without anybody.
    pub(super) fn by_nobody(decision: Decision, heard: Heard) -> Self {
        Self { decision, reply: None, heard, change: None, halted: None }
    }
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
    let unasked = |decision, heard| Ok(Answered::by_nobody(decision, heard));
    let Some(approver) = frame.core.approver_of(frame.session) else {
        return unasked(decision.unanswered(), heard);
    };
    if let Some(stop) = turn.and_then(Turn::stopped) {
        return unasked(decision.stopped(stop.by(), stop.as_str()), heard);
    }
    // Nobody says yes to what cannot be shown as it is.
    let Some(made) = quietly(|| shown::make(frame, &heard, &decision, cx)) else {
        return unasked(unknown(), heard);
    };
    let ask = made?;
    if frame.core.kept(frame.session).was_rejected(frame.call, &ask.fingerprint) {
        let no = decision.replied(Action::Deny, "the user rejected this very call a moment ago");
        return unasked(no, heard);
    }
    let line = turn.map(Turn::line);
    let mut vigil =
        Vigil::begin(frame.shared, ask, frame.session, frame.definition, &approver, line);
    if let Some(turn) = turn {
        turn.asks();
    }
    frame.event(|| EventKind::PermissionAsked(Arc::clone(vigil.ask())));
    let end = wait(&mut vigil, frame, &mut heard, cx, turn).await;
    let (id, reply) = (vigil.ask().id.clone(), end.as_str());
    frame.event(|| EventKind::PermissionReplied { ask: id, reply: reply.into() });
    let backstage = &vigil.ask().backstage;
    let is_changed = matches!(end, End::Settled(Settled::Changed)) && !heard.was_changed();
    let change = backstage.changed().filter(|_| is_changed).cloned();
    let (decision, reply) = match end {
        End::Settled(settled) => heed(frame, &heard, decision, cx, turn, vigil.ask(), settled),
        End::Stopped(stop) => (decision.stopped(stop.by(), stop.as_str()), None),
        End::Decided(now) => (now, None),
    };
    let halted = backstage.halted().map(str::to_owned);
    Ok(Answered { decision, reply, heard, change, halted })
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
    if now.action == Action::Ask && replied.reply.names_patterns() {
        // Most likely they are not what somebody meant.
        let message =
            "the patterns that were approved do not cover this call, which is allowed once";
        frame.core.warn(frame.session, &ask.tool, &ask.call, message.to_owned());
    }
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
