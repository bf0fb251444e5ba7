//! `PermissionRequest` hooks, which answer approval requests before the user is prompted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tool_sdk_core::{
    Action, ApprovalRequest, ApprovalResponse, Approver, DecisionSource, HookRun, Mode, Session,
    ToolName,
    internal::{CallRewrite, DecisionDetails, HookVerdict, PolicyOverride},
};

use super::config::HookEntry;
use super::event::HookEvent;
use super::payload::{HookPayload, PayloadResource};
use super::protocol::HookOutput;
use super::{ExternalHooks, combine, map_patch};

/// An approver that first runs the hooks, and then asks the inner approver.
pub(super) struct ExternalHookApprover {
    pub(super) hooks: Arc<ExternalHooks>,
    pub(super) inner: Arc<dyn Approver>,
}

impl Approver for ExternalHookApprover {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let (hooks, inner) = (Arc::clone(&self.hooks), Arc::clone(&self.inner));
        Box::pin(async move {
            match ask_hooks(&hooks, &ask).await {
                Some(reply) => Some(reply),
                None => inner.request_approval(ask).await,
            }
        })
    }
}

/// Runs the hooks for a request; `None` when the inner approver must answer.
async fn ask_hooks(hooks: &ExternalHooks, ask: &ApprovalRequest) -> Option<ApprovalResponse> {
    let own = || std::iter::once(&ask.tool).chain(&ask.internals.aliases).map(ToolName::as_str);
    let observer = ask.internals.observer.as_deref();
    let names = || {
        let others = observer.map(|it| it.forbidden_names()).unwrap_or_default();
        own().map(str::to_owned).chain(others).collect()
    };
    let entries = hooks.matching_entries(HookEvent::PermissionRequest, names);
    if entries.is_empty() {
        return None;
    }
    let arg_names = observer.map(|it| it.external_arg_names(&ask.arguments)).unwrap_or_default();
    let input = arg_names.to_external(&ask.arguments);
    let unobserved = Session::new(&*ask.session);
    let (session, mode) = match observer {
        Some(observer) => (observer.session(), observer.mode()),
        None => (&unobserved, Mode::default()),
    };
    let payload = HookPayload {
        tool_input: Some(&input),
        tool_use_id: ask.call.to_string(),
        agent: ask.agent.as_deref(),
        permission: Some(&ask.permission),
        subjects: Some(PayloadResource::from_request(ask)),
        ..hooks.session_payload(HookEvent::PermissionRequest, session, mode)
    };
    if let Some(observer) = observer {
        entries.iter().for_each(|(entry, _)| observer.hook_started(&entry.name()));
    }
    let watch = |HookRun { hook, outcome, elapsed_ms }| {
        if let Some(observer) = observer {
            observer.hook_finished(hook, outcome, elapsed_ms);
        }
    };
    let answers = hooks.run_entries(entries, &payload, &watch).await;
    let outputs: Vec<(&HookEntry, HookOutput)> = answers
        .into_iter()
        .map(|(entry, answer)| {
            let answer = answer.and_then(|output| map_patch(entry, output, &arg_names, &input));
            // An allow only counts if the matcher uses the tool's own name.
            let is_own = entry.matcher.matched_name(own()).is_some();
            let answer = answer.map(|output| if is_own { output } else { output.without_allow() });
            (entry, combine::apply_entry_policy(entry, answer))
        })
        .collect();
    let strictest =
        outputs.iter().max_by_key(|(_, output)| output.verdict).map(|(entry, _)| *entry);
    let patch = combine::merged_patch(&outputs);
    let decision = *combine::combine_outputs(outputs, &ask.arguments).into_details()?;
    if decision.arguments.is_some() && decision.verdict < HookVerdict::Deny {
        return rewrite_call(ask, decision, patch);
    }
    let response = respond(ask, decision)?;
    if let Some(entry) = strictest {
        ask.set_responder(format!("hook {}", entry.name()));
    }
    Some(response)
}

/// Replaces the call by one with the arguments of the hooks, because those of a request are fixed.
/// The new call is authorized in its place; if that is not possible, the change is ignored.
fn rewrite_call(
    ask: &ApprovalRequest,
    decision: DecisionDetails,
    patch: Map<String, Value>,
) -> Option<ApprovalResponse> {
    let hook = decision.rewritten_by.unwrap_or_default();
    let policy_override = match decision.verdict {
        HookVerdict::Allow => Some(PolicyOverride::allow_rewrite(&hook)),
        HookVerdict::Ask => Some(PolicyOverride {
            action: Action::Ask,
            source: DecisionSource::Hook,
            reason: decision.sentence.unwrap_or(decision.reason),
        }),
        _ => None,
    };
    ask.internals.set_rewrite(CallRewrite {
        patch,
        hook,
        hook_names: decision.rewriters,
        policy_override,
    })
}

/// Returns the response that the hooks decided on; `None` when the inner approver must answer.
fn respond(ask: &ApprovalRequest, decision: DecisionDetails) -> Option<ApprovalResponse> {
    match decision.verdict {
        HookVerdict::None | HookVerdict::Ask => None,
        HookVerdict::Allow if !ask.internals.can_hook_approve => None,
        HookVerdict::Allow => {
            ask.mark_unread();
            Some(ApprovalResponse::Once)
        }
        HookVerdict::Deny | HookVerdict::Halt => {
            if decision.verdict == HookVerdict::Halt {
                ask.internals.set_halt_reason(&decision.reason);
            }
            let refusal = decision.sentence.as_deref().unwrap_or(&decision.reason);
            ask.internals.set_refusal(refusal);
            Some(ApprovalResponse::RejectWith { feedback: decision.reason })
        }
    }
}
