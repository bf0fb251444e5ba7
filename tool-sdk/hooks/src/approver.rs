//! `PermissionRequest` hooks, which answer approval requests before the user is prompted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tool_sdk_core::{
    Action, ApprovalRequest, ApprovalResponse, Approver, DecisionSource, HookRun, Mode, Session,
    ToolName,
    internal::{CallRewrite, HookVerdict, PolicyOverride},
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
    let witness = ask.internals.observer.as_deref();
    let names = || {
        let others = witness.map(|it| it.forbidden_names()).unwrap_or_default();
        own().map(str::to_owned).chain(others).collect()
    };
    let entries = hooks.matching_entries(HookEvent::PermissionRequest, names);
    if entries.is_empty() {
        return None;
    }
    let wording = witness.map(|it| it.external_arg_names(&ask.arguments)).unwrap_or_default();
    let input = wording.to_external(&ask.arguments);
    let nobody = Session::new(&*ask.session);
    let (session, mode) = match witness {
        Some(witness) => (witness.session(), witness.mode()),
        None => (&nobody, Mode::default()),
    };
    let payload = HookPayload {
        tool_input: Some(&input),
        tool_use_id: ask.call.to_string(),
        agent: ask.agent.as_deref(),
        permission: Some(&ask.permission),
        subjects: Some(PayloadResource::from_request(ask)),
        ..hooks.session_payload(HookEvent::PermissionRequest, session, mode)
    };
    if let Some(witness) = witness {
        entries.iter().for_each(|(entry, _)| witness.hook_started(&entry.name()));
    }
    let watch = |HookRun { hook, outcome, elapsed_ms }| {
        if let Some(witness) = witness {
            witness.hook_finished(hook, outcome, elapsed_ms);
        }
    };
    let answers = hooks.run_entries(entries, &payload, &watch).await;
    let said: Vec<(&HookEntry, HookOutput)> = answers
        .into_iter()
        .map(|(entry, answer)| {
            let answer = answer.and_then(|said| map_patch(entry, said, &wording, &input));
            // An allow only counts if the matcher uses the tool's own name.
            let is_own = entry.matcher.matched_name(own()).is_some();
            let answer = answer.map(|said| if is_own { said } else { said.without_allow() });
            (entry, combine::apply_entry_policy(entry, answer))
        })
        .collect();
    let strictest = said.iter().max_by_key(|(_, said)| said.verdict).map(|(entry, _)| *entry);
    let patch = combine::merged_patch(&said);
    let opinion = combine::combine_outputs(said, &ask.arguments).into_details()?;
    let reply = match opinion.verdict {
        // The arguments of a request are fixed. A change replaces the call by a new one, which is
        // authorized in its place; if that is not possible, the change is ignored.
        HookVerdict::None | HookVerdict::Allow | HookVerdict::Ask
            if opinion.arguments.is_some() =>
        {
            let by = opinion.rewritten_by.unwrap_or_default();
            let thinks = match opinion.verdict {
                HookVerdict::Allow => Some(PolicyOverride::allow_rewrite(&by)),
                HookVerdict::Ask => {
                    let reason = opinion.sentence.unwrap_or(opinion.reason);
                    Some(PolicyOverride {
                        action: Action::Ask,
                        source: DecisionSource::Hook,
                        reason,
                    })
                }
                _ => None,
            };
            let changers = opinion.rewriters;
            return ask.internals.set_rewrite(CallRewrite {
                patch,
                hook: by,
                hook_names: changers,
                policy_override: thinks,
            });
        }
        HookVerdict::Allow if !ask.internals.can_hook_approve => return None,
        HookVerdict::None | HookVerdict::Ask => return None,
        HookVerdict::Allow => ApprovalResponse::Once,
        HookVerdict::Deny | HookVerdict::Halt => {
            if opinion.verdict == HookVerdict::Halt {
                ask.internals.set_halt_reason(&opinion.reason);
            }
            ask.internals.set_refusal(opinion.sentence.as_deref().unwrap_or(&opinion.reason));
            ApprovalResponse::RejectWith { feedback: opinion.reason }
        }
    };
    if let Some(entry) = strictest {
        ask.set_responder(format!("hook {}", entry.name()));
    }
    Some(reply)
}
