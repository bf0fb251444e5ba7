//! Permissions that a tool asks for while it runs, such as reaching a host.
//!
//! They are judged by the same rules, shown to the same approver and recorded in the audit log like
//! calls. While a prompt or an elicitation is open, the time limit of the call stops.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;

use super::approval::{ApprovalAnswer, PendingApproval, new_request_id};
use super::authorize::grantee;
use super::authorize::unknown_call_decision;
use super::hook_observer::EventHookObserver;
use super::inner::PipelineInner;
use super::session_policy::{CallPolicy, PolicyQuestion, deciding_sessions, is_granted};
use crate::audit::{self, AuditEvent, AuditRecord};
use crate::context::{AccessDecision, Context, InquiryFuture, RequestedAccess};
use crate::error::ToolError;
use crate::event::EventKind;
use crate::permission::{
    Action, ApprovalInternals, ApprovalOutcome, ApprovalRequest, Decision, Fingerprint, Pattern,
    PolicyOverride,
};
use crate::risk::RiskClass;
use crate::tool::{Resource, Tool, ToolDisplay};

/// Returns whether the running call may do `what` under `permission`.
pub(super) async fn request_permission(
    inner: Arc<PipelineInner>,
    cx: Context,
    permission: String,
    what: RequestedAccess,
) -> bool {
    let Some(request) = PermissionRequest::new(inner, cx, permission, what) else { return false };
    let (decision, reply) = request.decide_and_ask().await;
    request.is_recorded(&decision, reply.as_ref()) && decision.action == Action::Allow
}

/// Returns what rules, grants and the mode decide about `what`, without a prompt.
pub(super) fn evaluate_permission(
    inner: Arc<PipelineInner>,
    cx: Context,
    permission: String,
    what: RequestedAccess,
) -> AccessDecision {
    let request = PermissionRequest::new(inner, cx, permission, what);
    let Some(decision) = request.map(|request| request.decide(&[])) else {
        return AccessDecision::Denied;
    };
    match decision.action {
        Action::Allow => AccessDecision::Allowed,
        Action::Ask if decision.rules.is_empty() => AccessDecision::NeedsApproval,
        Action::Ask => AccessDecision::AskedByRule,
        Action::Deny => AccessDecision::Denied,
    }
}

/// Returns the resource that rules and grants are matched against.
fn to_resource(what: &RequestedAccess) -> Resource {
    let resource = Resource::new(what.text()).with_suggestions(what.names());
    let resource = what.names().iter().fold(resource, Resource::with_name);
    match what.is_read_only() {
        true => resource.with_class(RiskClass::Read).asks_by_default(),
        false => resource,
    }
}

/// Returns the patterns for "always": those of the resource, or else its text.
fn suggested_patterns(resource: &Resource) -> Vec<String> {
    match resource.suggestions() {
        [] => Pattern::exact(resource.text()).map(String::from).into_iter().collect(),
        given => given.to_vec(),
    }
}

/// Waits for the answers to an elicitation of the running call, at most for the approval timeout.
pub(super) async fn wait_for_answers(
    inner: Arc<PipelineInner>,
    cx: Context,
    mut answers: InquiryFuture,
) -> Result<Vec<Value>, ToolError> {
    // An answer that is available at once pauses no clock.
    if let Poll::Ready(given) = poll_fn(|task| Poll::Ready(answers.as_mut().poll(task))).await {
        return given;
    }
    let _paused = inner.session_state(cx.session()).prompt_clock.pause_call(cx.origin());
    match tokio::time::timeout(inner.approval_timeout, answers).await {
        Ok(answers) => answers,
        Err(_) => Err(ToolError::timeout("the request was not answered in time")),
    }
}

struct PermissionRequest {
    inner: Arc<PipelineInner>,
    cx: Context,
    tool: Arc<dyn Tool>,
    resource: Resource,
    /// The same under the permission of which only rules that deny or ask count.
    denied: Option<Resource>,
}

impl PermissionRequest {
    /// Returns `None` when the tool was removed in the meantime: it gets no further permission.
    fn new(
        inner: Arc<PipelineInner>,
        cx: Context,
        permission: String,
        mut what: RequestedAccess,
    ) -> Option<Self> {
        let tool = inner.toolset.view_for(cx.session()).get(cx.tool().as_str()).cloned()?;
        if let Some(redactor) = cx.session().secret_redactor() {
            redactor.mask_learned(what.text_mut());
        }
        let resource = to_resource(&what);
        let denied = what
            .denying_permission()
            .map(|denying| resource.clone().with_permission(denying.to_owned()).deny_rules_only());
        Some(Self { inner, cx, tool, resource: resource.with_permission(permission), denied })
    }

    async fn decide_and_ask(&self) -> (Decision, Option<ApprovalAnswer>) {
        let Self { inner, cx, tool, .. } = self;
        let decision = self.decide(&[]);
        if decision.action != Action::Ask {
            return (decision, None);
        }
        let Some(approver) = inner.approver_of(cx.session()) else {
            return (decision.without_approver(), None);
        };
        let Some(ask) = self.make_request(&decision) else {
            return (
                decision.with_response(Action::Deny, "the approval request could not be made"),
                None,
            );
        };
        let mut pending =
            PendingApproval::open(inner, ask, cx.session(), tool.definition(), &approver, None);
        let _paused = inner.session_state(cx.session()).prompt_clock.pause_call(cx.origin());
        let id = pending.request().id.clone();
        let emit = |kind| inner.emit_for(cx.session(), cx.tool(), cx.origin(), kind);
        let emit_reply = |reply: &'static str| {
            let ask = id.clone();
            emit(EventKind::PermissionReplied { ask, reply: reply.into() });
        };
        emit(EventKind::PermissionAsked(Arc::clone(pending.request())));
        let settled = loop {
            if let Some(settled) = pending.wait().await {
                break settled;
            }
            let now = self.decide(&[]);
            if now.action != Action::Ask {
                emit_reply("covered");
                return (now, None);
            }
        };
        emit_reply(settled.as_str());
        let reply = match settled {
            ApprovalOutcome::Response(reply) => Some(ApprovalAnswer::new(pending.request(), reply)),
            _ => None,
        };
        // A rule may deny it by now.
        let now = self.decide(&[]);
        let decision = match reply.as_ref().filter(|reply| reply.is_approval()) {
            Some(_) if now.action == Action::Deny => now,
            Some(yes) => now.with_response(Action::Allow, yes.reason()),
            None => now.with_response(Action::Deny, "the user did not approve it"),
        };
        (decision, reply)
    }

    /// Evaluates the current rules, grants and mode.
    fn decide(&self, overrides: &[PolicyOverride]) -> Decision {
        let Self { inner, cx, tool, resource, denied } = self;
        let to = grantee(tool.definition(), resource);
        let resources: Vec<Resource> = [resource].into_iter().chain(denied).cloned().collect();
        let stored = inner.stored_grants(cx.session());
        let decisions = deciding_sessions(inner, cx.session()).map(|session| {
            let view = inner.toolset.view_for(&session);
            let policy = match CallPolicy::new(inner, &view, &session, tool) {
                Ok(policy) => policy,
                Err(denied) => return denied,
            };
            policy.decide(PolicyQuestion {
                class: RiskClass::Execute,
                resources: Some(&resources),
                arguments: &|_: &str| None,
                approval_required: None,
                is_granted: &|resource| {
                    is_granted(inner, cx.session(), stored.as_ref(), &to, resource)
                },
                checks_places: false,
                overrides,
            })
        });
        decisions.reduce(Decision::strictest).unwrap_or_else(unknown_call_decision)
    }

    /// Returns the display metadata of the tool, with those that the host set.
    fn display(&self) -> Arc<ToolDisplay> {
        let view = self.inner.toolset.view_for(self.cx.session());
        let definition = self.tool.definition();
        let entry = view.find(definition.name.as_str()).and_then(|at| view.entry_at(at));
        match entry {
            Some((tool, policy)) => Arc::clone(&policy.label(tool.definition()).display),
            None => Arc::clone(&definition.display),
        }
    }

    fn make_request(&self, decision: &Decision) -> Option<ApprovalRequest> {
        let Self { inner, cx, tool, resource, .. } = self;
        let definition = tool.definition();
        let witness = EventHookObserver::for_call(inner, cx.session(), cx.tool(), cx.origin());
        let is_liftable = self.decide(&[PolicyOverride::allow("")]).action == Action::Allow;
        Some(ApprovalRequest {
            id: new_request_id().ok()?,
            call: cx.call_id().clone(),
            session: cx.session().id().into(),
            agent: cx.session().agent_path_text(),
            tool: definition.name.clone(),
            display: self.display(),
            source: definition.source.clone(),
            risk: definition.risk,
            permission: resource.permission().unwrap_or_default().to_owned(),
            arguments: Value::Null,
            original: None,
            summary: None,
            subjects: vec![resource.clone()],
            suggestions: suggested_patterns(resource),
            grantees: vec![grantee(definition, resource)],
            internals: ApprovalInternals::new(&definition.aliases, witness)
                .with_origin(cx.origin())
                .with_hook_approval(is_liftable),
            by: decision.by,
            reason: format!("the running tool asks for it; {}", decision.reason),
            rules: decision.rules.clone(),
            preview: None,
            dangerous: false,
            fingerprint: self.fingerprint().into(),
            expires_in: inner.approval_timeout,
        })
    }

    fn fingerprint(&self) -> Fingerprint {
        let call = self.cx.call_id().to_string();
        let permission = self.resource.permission().unwrap_or_default();
        let facts =
            [("call", &*call), ("permission", permission), ("subject", self.resource.text())];
        Fingerprint::compute(self.tool.definition(), "null", &facts)
    }

    /// Records the decision; a permission that cannot be recorded is denied.
    fn is_recorded(&self, decision: &Decision, reply: Option<&ApprovalAnswer>) -> bool {
        let Some(audit) = &self.inner.audit else { return true };
        let (fingerprint, definition) = (self.fingerprint(), self.tool.definition());
        let answer = reply.map(ApprovalAnswer::for_audit);
        let what = AuditEvent::from_decision(decision, answer);
        let (session, call) = (self.cx.session(), self.cx.call_id());
        let record = AuditRecord::new(session, definition, call, &fingerprint, what)
            .with_origin(self.cx.origin());
        audit::write_record(&**audit, &record).is_ok()
    }
}
