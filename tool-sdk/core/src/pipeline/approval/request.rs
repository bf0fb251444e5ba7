//! Makes an approval request from the value that will run.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::context::Context;
use crate::error::ToolError;
use crate::permission::{
    Action, ApprovalId, ApprovalInternals, ApprovalRequest, Decision, DecisionSource, EditableCall,
};
use crate::pipeline::authorize::{can_hook_allow, grantees};
use crate::pipeline::hook_observer::EventHookObserver;
use crate::pipeline::invocation::{DecodedCall, Invocation};
use crate::pipeline::secret_masking::mask_request;
use crate::pipeline::suggestions::suggested_patterns;
use crate::risk::RiskClass;
use crate::tool::PreparedCall;

/// Makes the request for a call whose decision is `ask`. A panic of the tool is left to the caller:
/// what cannot be shown cannot be approved.
pub(super) fn make_request(
    invocation: &Invocation<'_>,
    call: &DecodedCall,
    decision: &Decision,
    cx: &Context,
) -> Result<ApprovalRequest, ToolError> {
    let definition = invocation.definition();
    let prepared = &*call.prepared;
    let display = &invocation.label.display;
    let original = call.original.is_some();
    let grantees = grantees(definition, &decision.subjects);
    let witness = EventHookObserver::for_call(
        invocation.inner,
        invocation.session,
        &definition.name,
        &invocation.origin,
    );
    let arguments = display.mask_arguments(invocation.arguments());
    let editable = EditableCall::new(&invocation.tool, invocation.raw_args(), &arguments);
    let mut ask = ApprovalRequest {
        id: new_request_id()?,
        call: invocation.origin.id.clone(),
        session: invocation.session.id().into(),
        agent: invocation.session.agent_path_text(),
        tool: definition.name.clone(),
        display: Arc::clone(display),
        source: definition.source.clone(),
        risk: definition.risk,
        permission: match grantees.as_slice() {
            [one] => one.permission.clone(),
            _ => definition.permission().to_owned(),
        },
        arguments,
        original: original.then(|| display.mask_arguments(invocation.call.arguments.text())),
        summary: invocation.summarize(prepared),
        subjects: decision.subjects.clone(),
        grantees,
        internals: ApprovalInternals::new(&definition.aliases, witness)
            .with_origin(&invocation.origin)
            .with_hook_approval(can_hook_allow(invocation, call, cx))
            .with_hook_rewrite(!call.is_rewrite_used)
            .with_editable(editable),
        suggestions: suggested_patterns(invocation, call, decision, cx, &[]),
        by: decision.by,
        reason: decision.reason.clone().into_owned(),
        rules: decision.rules.clone(),
        preview: preview(invocation, prepared, decision, cx)?,
        dangerous: prepared.is_dangerous(),
        fingerprint: invocation.fingerprint(prepared).into(),
        expires_in: invocation.inner.approval_timeout,
    };
    if !ask.offers_always() {
        ask.suggestions.clear();
    }
    mask_request(invocation.session, &mut ask);
    Ok(ask)
}

/// Returns the preview of what the call would do.
///
/// An error of the preview ends the call, as it would after an approval. When the request is about
/// a loop, or the mode asks about reads as well, the request shows the error instead.
fn preview(
    invocation: &Invocation<'_>,
    prepared: &dyn PreparedCall,
    decision: &Decision,
    cx: &Context,
) -> Result<Option<Value>, ToolError> {
    match prepared.preview(cx) {
        Err(error) if decision.by == DecisionSource::Loop || asks_about_reads(invocation) => {
            Ok(Some(json!({ "error": error.to_string() })))
        }
        shown => shown,
    }
}

/// Whether the session's mode asks about calls that only read.
fn asks_about_reads(invocation: &Invocation<'_>) -> bool {
    let mode = invocation.inner.mode(invocation.session);
    mode.default_action(RiskClass::Read) == Action::Ask
}

/// Returns an id of 128 random bits, because a client that knows the id can answer the request.
pub(crate) fn new_request_id() -> Result<ApprovalId, ToolError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        ToolError::internal("cannot make an approval request: the system has no random numbers")
            .source(error)
    })?;
    Ok(ApprovalId::new(&format!("{:032x}", u128::from_be_bytes(bits))))
}
