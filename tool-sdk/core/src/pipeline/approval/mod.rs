//! Asks a person whether a call may run.
//!
//! [`request`] makes the request, [`approver`] puts hooks and the prompt order of a batch in front
//! of the approver, [`pending`] waits, and [`response`] applies the answer.
//!
//! **Invariant:** no answer, a panic of the approver and an expired request are denials.

mod approver;
mod edit;
mod pending;
mod request;
mod response;

use std::borrow::Cow;
use std::sync::Arc;

pub(super) use self::edit::ApprovedEdit;
pub(super) use self::pending::PendingApproval;
pub(super) use self::request::new_request_id;
pub(super) use self::response::apply_response;
use super::authorize::{decide, unknown_call_decision};
use super::execute::catch_panic;
use super::invocation::{DecodedCall, Invocation};
use crate::audit::AuditAnswer;
use crate::context::Context;
use crate::error::ToolError;
use crate::event::EventKind;
use crate::permission::{
    Action, ApprovalOutcome, ApprovalRequest, ApprovalResponse, CallRewrite, Decision,
};
use crate::scheduler::{BatchStopReason, Scheduler};

/// How an approval request ended, and the decision that follows from it.
pub(super) struct ApprovalResult {
    pub(super) decision: Decision,
    pub(super) answer: Option<ApprovalAnswer>,
    /// The arguments of the call that takes its place, which is not decided yet.
    pub(super) change: Option<CallChange>,
    /// Why the model's turn ends, when a hook that answered said so.
    pub(super) halt_reason: Option<String>,
}

impl ApprovalResult {
    /// Returns the result when no request is needed.
    pub(super) fn without_prompt(decision: Decision) -> Self {
        Self { decision, answer: None, change: None, halt_reason: None }
    }
}

/// Why a call is judged again.
pub(super) enum CallChange {
    /// A hook rewrote the call instead of answering.
    Rewrite(CallRewrite),
    /// A person approved the call with other arguments.
    Edit(ApprovedEdit),
}

/// The answer to a request, and who gave it, where that is known.
pub(super) struct ApprovalAnswer {
    response: ApprovalResponse,
    responder: Option<String>,
    /// Whether a person read the request.
    is_read: bool,
}

impl ApprovalAnswer {
    pub(super) fn new(request: &ApprovalRequest, response: ApprovalResponse) -> Self {
        let responder = request.responder().map(str::to_owned);
        Self { response, responder, is_read: request.is_read() }
    }

    /// Whether a person read the request and approved it.
    pub(super) fn is_read_approval(&self) -> bool {
        self.is_read && self.is_approval()
    }

    pub(super) fn is_approval(&self) -> bool {
        self.response.is_approval()
    }

    /// Returns the reason of the decision when the answer is an approval.
    pub(super) fn reason(&self) -> Cow<'static, str> {
        match &self.responder {
            Some(who) => format!("`{who}` approved it").into(),
            None => "the user approved it".into(),
        }
    }

    pub(super) fn for_audit(&self) -> AuditAnswer<'_> {
        AuditAnswer::new(&self.response, self.responder.as_deref())
    }
}

/// Asks the approver about a call, and waits until the request has ended.
///
/// # Errors
///
/// Fails when the tool's preview says that the call cannot run.
pub(super) async fn request_approval(
    invocation: &Invocation<'_>,
    call: &mut DecodedCall,
    decision: Decision,
    context: &Context,
) -> Result<ApprovalResult, ToolError> {
    let (inner, session) = (invocation.inner, invocation.session);
    let scheduler = invocation.scheduler;
    let edited = call.edit.as_ref().and_then(|edit| edit.approver(invocation, call));
    let Some(approver) = edited.or_else(|| inner.approver_of(session)) else {
        return Ok(ApprovalResult::without_prompt(decision.without_approver()));
    };
    if let Some(reason) = scheduler.and_then(Scheduler::stop_reason) {
        return Ok(ApprovalResult::without_prompt(stopped(decision, reason)));
    }
    // A call that cannot be shown exactly cannot be approved.
    let Ok(made) = catch_panic(|| request::make_request(invocation, call, &decision, context))
    else {
        return Ok(ApprovalResult::without_prompt(unknown_call_decision()));
    };
    let request = made?;
    if inner.session_state(session).was_rejected(invocation.call, &request.fingerprint) {
        let reason = "the user rejected this very call a moment ago";
        return Ok(ApprovalResult::without_prompt(decision.with_response(Action::Deny, reason)));
    }
    let order = scheduler.map(Scheduler::prompt_order);
    let definition = invocation.definition();
    let mut pending = PendingApproval::open(inner, request, session, definition, &approver, order);
    if let Some(scheduler) = scheduler {
        scheduler.mark_waiting_for_approval();
    }
    let clock = &inner.session_state(session).prompt_clock;
    let _paused = clock.pause_ancestors(&invocation.origin);
    invocation.emit(|| EventKind::PermissionAsked(Arc::clone(pending.request())));
    let end = wait_for_end(&mut pending, invocation, call, context).await;
    let request = Arc::clone(pending.request());
    invocation.emit(|| EventKind::PermissionReplied {
        ask: request.id.clone(),
        reply: end.as_str().into(),
    });
    let is_rewrite =
        matches!(end, RequestEnd::Ended(ApprovalOutcome::Superseded)) && !call.is_rewrite_used;
    let rewrite = request.internals.rewrite().filter(|_| is_rewrite).cloned();
    let halted = request.internals.halt_reason().map(str::to_owned);
    let (decision, answer) = match end {
        RequestEnd::Ended(settled) => {
            apply_end(invocation, call, decision, context, &request, settled)
        }
        RequestEnd::Stopped(reason) => (stopped(decision, reason), None),
        RequestEnd::Decided(now) => (now, None),
    };
    let change = match (rewrite, &answer) {
        (Some(rewrite), _) => Some(CallChange::Rewrite(rewrite)),
        (None, Some(ApprovalAnswer { response: ApprovalResponse::Edited { arguments }, .. }))
            if decision.action == Action::Allow =>
        {
            let edit = ApprovedEdit::new(invocation, &request, arguments);
            Some(CallChange::Edit(edit.map_err(ToolError::from)?))
        }
        _ => None,
    };
    Ok(ApprovalResult { decision, answer, change, halt_reason: halted })
}

fn stopped(decision: Decision, reason: BatchStopReason) -> Decision {
    decision.into_stopped(reason.decided_by(), reason.as_str())
}

/// Turns the end of a request into a decision.
fn apply_end(
    invocation: &Invocation<'_>,
    call: &DecodedCall,
    decision: Decision,
    context: &Context,
    request: &ApprovalRequest,
    settled: ApprovalOutcome,
) -> (Decision, Option<ApprovalAnswer>) {
    let (inner, session) = (invocation.inner, invocation.session);
    let refusal = settled.denial_reason();
    let ApprovalOutcome::Response(reply) = settled else {
        return (decision.with_response(Action::Deny, refusal), None);
    };
    let answer = ApprovalAnswer::new(request, reply);
    if !answer.is_approval() {
        let state = inner.session_state(session);
        state.note_rejection(invocation.call, request.fingerprint.clone());
        if let (ApprovalResponse::Reject, Some(scheduler)) =
            (&answer.response, invocation.scheduler)
        {
            scheduler.stop(BatchStopReason::Rejected);
        }
        return (decision.with_response(Action::Deny, refusal), Some(answer));
    }
    // The rules may deny the call by now, and it must still be the call that was shown.
    let now = decide(invocation, call, context);
    if now.action == Action::Ask && answer.response.has_patterns() {
        let message =
            "the patterns that were approved do not cover this call, which is allowed once";
        inner.warn(session, &request.tool, &request.origin(), message.to_owned());
    }
    let decision = if now.action == Action::Deny {
        now
    } else if String::from(invocation.fingerprint(&*call.prepared)) == request.fingerprint {
        decision.with_response(Action::Allow, answer.reason())
    } else {
        let changed = "what the call touches changed while it waited for approval";
        decision.with_response(Action::Deny, changed)
    };
    (decision, Some(answer))
}

/// How an approval request ended.
enum RequestEnd {
    /// It was answered, or cannot be answered any more.
    Ended(ApprovalOutcome),
    /// The batch was stopped.
    Stopped(BatchStopReason),
    /// A new rule, grant or mode decides the call by now.
    Decided(Decision),
}

impl RequestEnd {
    /// Returns the name of the end in events.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Ended(settled) => settled.as_str(),
            Self::Stopped(_) => "aborted",
            Self::Decided(_) => "covered",
        }
    }
}

/// Waits for the end of a request. The call is borrowed exclusively, because a
/// [`PreparedCall`](crate::PreparedCall) may be used by one thread at a time only.
async fn wait_for_end(
    pending: &mut PendingApproval<'_>,
    invocation: &Invocation<'_>,
    call: &mut DecodedCall,
    context: &Context,
) -> RequestEnd {
    loop {
        if let Some(settled) = pending.wait().await {
            return RequestEnd::Ended(settled);
        }
        if let Some(reason) = invocation.scheduler.and_then(Scheduler::stop_reason) {
            return RequestEnd::Stopped(reason);
        }
        let now = decide(invocation, call, context);
        if now.action != Action::Ask {
            return RequestEnd::Decided(now);
        }
    }
}
