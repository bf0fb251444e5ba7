//! `PermissionRequest` hooks, which answer approval requests before the user is prompted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::config::HookEntry;
use super::event::HookEvent;
use super::payload::{HookPayload, PayloadResource};
use super::protocol::HookOutput;
use super::{ExternalHooks, compose, map_patch};
use crate::context::Session;
use crate::hook::{HookRun, Verdict};
use crate::name::ToolName;
use crate::permission::{Action, Approver, Ask, By, Change, Floor, Mode, Reply};

/// An approver that first runs the hooks, and then asks the inner approver.
pub(super) struct ExternalHookApprover {
    pub(super) hooks: Arc<ExternalHooks>,
    pub(super) inner: Arc<dyn Approver>,
}

impl Approver for ExternalHookApprover {
    fn ask(&self, ask: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        let (hooks, inner) = (Arc::clone(&self.hooks), Arc::clone(&self.inner));
        Box::pin(async move {
            match ask_hooks(&hooks, &ask).await {
                Some(reply) => Some(reply),
                None => inner.ask(ask).await,
            }
        })
    }
}

/// Runs the hooks for a request; `None` when the inner approver must answer.
async fn ask_hooks(hooks: &ExternalHooks, ask: &Ask) -> Option<Reply> {
    let own = || std::iter::once(&ask.tool).chain(&ask.backstage.aliases).map(ToolName::as_str);
    let witness = ask.backstage.witness.as_deref();
    let names = || {
        let others = witness.map(|it| it.forbidden_names()).unwrap_or_default();
        own().map(str::to_owned).chain(others).collect()
    };
    let entries = hooks.matching_entries(HookEvent::PermissionRequest, names);
    if entries.is_empty() {
        return None;
    }
    let wording = witness.map(|it| it.wording(&ask.arguments)).unwrap_or_default();
    let input = wording.shown(&ask.arguments);
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
        entries.iter().for_each(|(entry, _)| witness.began(&entry.name()));
    }
    let watch = |HookRun { hook, outcome, elapsed_ms }| {
        if let Some(witness) = witness {
            witness.ended(hook, outcome, elapsed_ms);
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
            (entry, compose::apply_entry_policy(entry, answer))
        })
        .collect();
    let strictest = said.iter().max_by_key(|(_, said)| said.verdict).map(|(entry, _)| *entry);
    let patch = compose::merged_patch(&said);
    let opinion = compose::combine_outputs(said, &ask.arguments).spoken()?;
    let reply = match opinion.verdict {
        // The arguments of a request are fixed. A change replaces the call by a new one, which is
        // authorized in its place; if that is not possible, the change is ignored.
        Verdict::None | Verdict::Allow | Verdict::Ask if opinion.arguments.is_some() => {
            let by = opinion.changed_by.unwrap_or_default();
            let thinks = match opinion.verdict {
                Verdict::Allow => Some(Floor::allow_made_by(&by)),
                Verdict::Ask => {
                    let reason = opinion.sentence.unwrap_or(opinion.reason);
                    Some(Floor { action: Action::Ask, by: By::Hook, reason })
                }
                _ => None,
            };
            let changers = opinion.changers;
            return ask.backstage.change(Change { patch, by, changers, thinks });
        }
        Verdict::Allow if !ask.backstage.is_liftable => return None,
        Verdict::None | Verdict::Ask => return None,
        Verdict::Allow => Reply::Once,
        Verdict::Deny | Verdict::Halt => {
            if opinion.verdict == Verdict::Halt {
                ask.backstage.halt(&opinion.reason);
            }
            ask.backstage.refuse(opinion.sentence.as_deref().unwrap_or(&opinion.reason));
            Reply::RejectWith { feedback: opinion.reason }
        }
    };
    if let Some(entry) = strictest {
        ask.answered_by(format!("hook {}", entry.name()));
    }
    Some(reply)
}
