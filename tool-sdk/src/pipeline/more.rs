//! What a running tool asks for beyond what its arguments said, such as reaching a host: it is
//! judged by the same rules, asked in the same way and written down like a call.
//!
//! While somebody thinks about that, or about a form that the tool shows, its time stands still.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;

use super::ask::{Replied, Vigil, new_id};
use super::core::Core;
use super::decide::grantee;
use super::witness::Subscribers;
use crate::audit::{self, AuditRecord, Audited};
use crate::context::{Context, Inquiring};
use crate::effect::RiskClass;
use crate::error::ToolError;
use crate::event::EventKind;
use crate::permission::{
    Action, Ask, Backstage, Case, Decision, Fingerprint, Floor, Modes, Pattern, Settled,
};
use crate::tool::{Subject, Tool};

/// Whether the running call may do `what` under `permission`.
pub(super) async fn may(core: Arc<Core>, cx: Context, permission: String, what: String) -> bool {
    // A tool that was taken away meanwhile gets nothing more.
    let view = core.toolset.view_for(cx.session());
    let Some(tool) = view.get(cx.tool().as_str()).cloned() else { return false };
    let wish = Wish { core, cx, tool, subject: Subject::new(what).under(permission) };
    let (decision, reply) = wish.answered().await;
    wish.is_written_down(&decision, reply.as_ref()) && decision.action == Action::Allow
}

/// What a person answers to the running call; nobody is waited for without end.
pub(super) async fn answers(
    core: Arc<Core>,
    cx: Context,
    mut answers: Inquiring,
) -> Result<Vec<Value>, ToolError> {
    // An answer that is there already took nobody any time, and is not written down.
    if let Poll::Ready(given) = poll_fn(|task| Poll::Ready(answers.as_mut().poll(task))).await {
        return given;
    }
    let _thinking = core.kept(cx.session()).thoughts.begin(cx.call());
    match tokio::time::timeout(core.ask_timeout, answers).await {
        Ok(answers) => answers,
        Err(_) => Err(ToolError::unavailable("nobody has answered in time")),
    }
}

struct Wish {
    core: Arc<Core>,
    cx: Context,
    tool: Arc<dyn Tool>,
    subject: Subject,
}

impl Wish {
    async fn answered(&self) -> (Decision, Option<Replied>) {
        let Self { core, cx, tool, .. } = self;
        let decision = self.decide(&[]);
        if decision.action != Action::Ask {
            return (decision, None);
        }
        let Some(approver) = core.approver_of(cx.session()) else {
            return (decision.unanswered(), None);
        };
        let Some(ask) = self.ask(&decision) else {
            return (decision.replied(Action::Deny, "nobody could be asked safely"), None);
        };
        let mut vigil = Vigil::begin(core, ask, cx.session(), tool.definition(), &approver, None);
        let _thinking = core.kept(cx.session()).thoughts.begin(cx.call());
        let id = vigil.ask().id.clone();
        let tell = |kind| core.tell(cx.session(), cx.tool(), cx.call(), kind);
        let told = |reply: &'static str| {
            let ask = id.clone();
            tell(EventKind::PermissionReplied { ask, reply: reply.into() });
        };
        tell(EventKind::PermissionAsked(Arc::clone(vigil.ask())));
        let settled = loop {
            if let Some(settled) = vigil.next().await {
                break settled;
            }
            let now = self.decide(&[]);
            if now.action != Action::Ask {
                told("covered");
                return (now, None);
            }
        };
        told(settled.as_str());
        let reply = match settled {
            Settled::Reply(reply) => Some(Replied::to(vigil.ask(), reply)),
            _ => None,
        };
        // Something may have forbidden it meanwhile.
        let now = self.decide(&[]);
        let decision = match reply.as_ref().filter(|reply| reply.is_yes()) {
            Some(_) if now.action == Action::Deny => now,
            Some(yes) => now.replied(Action::Allow, yes.reason()),
            None => now.replied(Action::Deny, "nobody said yes"),
        };
        (decision, reply)
    }

    /// What the rules, the approvals and the mode say now, and `opinions`.
    fn decide(&self, opinions: &[Floor]) -> Decision {
        let Self { core, cx, tool, subject } = self;
        let view = core.toolset.view_for(cx.session());
        let policy = cx.session().policy();
        let rules = match &policy {
            Some(policy) => view.rules().with(&policy.rules),
            None => view.rules().clone(),
        };
        let mode = policy.and_then(|policy| policy.mode);
        let to = grantee(tool.definition(), subject);
        Case {
            own: &rules.about(view.names(tool.definition())),
            elsewhere: &|permission| rules.about(view.names_of(permission)),
            modes: Modes::new(view.mode(), mode),
            trusting: false,
            class: RiskClass::Execute,
            subjects: Some(std::slice::from_ref(subject)),
            arguments: &|_: &str| None,
            required: None,
            approved: &|subject| {
                core.kept(cx.session()).approvals.covers(&to, subject)
                    || core.stored(cx.session()).is_some_and(|stored| stored.covers(&to, subject))
            },
            writable: None,
            kept: &|_| false,
            opinions,
        }
        .decide()
    }

    fn ask(&self, decision: &Decision) -> Option<Ask> {
        let Self { core, cx, tool, subject } = self;
        let definition = tool.definition();
        let witness = Subscribers::of(core, cx.session(), cx.tool(), cx.call());
        let is_liftable = self.decide(&[Floor::allow("")]).action == Action::Allow;
        Some(Ask {
            id: new_id().ok()?,
            call: cx.call().clone(),
            session: cx.session().id().into(),
            agent: cx.session().agent().map(str::to_owned),
            tool: definition.name.clone(),
            display: Arc::clone(&definition.display),
            source: definition.source.clone(),
            risk: definition.risk,
            permission: subject.permission().unwrap_or_default().to_owned(),
            arguments: Value::Null,
            original: None,
            summary: None,
            subjects: vec![subject.clone()],
            suggestions: Pattern::exactly(subject.text()).map(String::from).into_iter().collect(),
            grantees: vec![grantee(definition, subject)],
            backstage: Backstage::new(&definition.aliases, witness).liftable(is_liftable),
            by: decision.by,
            reason: format!("the running tool asks for it; {}", decision.reason),
            rules: decision.rules.clone(),
            preview: None,
            dangerous: false,
            fingerprint: self.fingerprint().into(),
            expires_in: core.ask_timeout,
        })
    }

    fn fingerprint(&self) -> Fingerprint {
        let call = self.cx.call().to_string();
        let permission = self.subject.permission().unwrap_or_default();
        let facts =
            [("call", &*call), ("permission", permission), ("subject", self.subject.text())];
        Fingerprint::of(self.tool.definition(), "null", &facts)
    }

    /// What cannot be written down does not happen.
    fn is_written_down(&self, decision: &Decision, reply: Option<&Replied>) -> bool {
        let Some(audit) = &self.core.audit else { return true };
        let (fingerprint, definition) = (self.fingerprint(), self.tool.definition());
        let answer = reply.map(Replied::as_answer);
        let what = Audited::decided(decision, answer);
        let (session, call) = (self.cx.session(), self.cx.call());
        let record = AuditRecord::new(session, definition, call, &fingerprint, what);
        audit::keep(&**audit, &record).is_ok()
    }
}
