//! Combines the outputs of several hooks to one decision, in the order of the configuration.

use serde_json::{Map, Value};
use tool_sdk_core::{
    HookDecision, OnError,
    internal::{DecisionDetails, HookVerdict},
};

use super::config::HookEntry;
use super::protocol::{HookFailure, HookOutput};

/// Applies the entry's policy to an output: drops an allow without `may_allow`, and turns a
/// failure into a denial with `on_error = "deny"`.
pub(super) fn apply_entry_policy(
    entry: &HookEntry,
    answer: Result<HookOutput, HookFailure>,
) -> HookOutput {
    match answer {
        Ok(said) if said.verdict == HookVerdict::Allow && !entry.may_allow => said.without_allow(),
        Ok(said) if said.reason.is_some() => said,
        Ok(said) => HookOutput {
            is_sentence: said.stated_reason().is_none(),
            reason: default_reason(entry, said.verdict),
            ..said
        },
        Err(failure) if entry.on_error == OnError::Deny => {
            let reason = format!("{}, so the call is denied", failure.message);
            HookOutput { is_sentence: true, ..HookOutput::deny(reason) }
        }
        Err(_) => HookOutput::default(),
    }
}

/// Returns the reason for a hook that gave none.
fn default_reason(entry: &HookEntry, verdict: HookVerdict) -> Option<String> {
    let what = match verdict {
        HookVerdict::None | HookVerdict::Allow => return None,
        HookVerdict::Ask => "asks for approval",
        HookVerdict::Deny => "denies it",
        HookVerdict::Halt => "ends the turn",
    };
    Some(format!("the hook `{}` {what}", entry.command.program_label()))
}

/// Combines all outputs: the strictest verdict with the reasons for it, every context, and, unless
/// the call is denied, the changes to `arguments` in order.
pub(super) fn combine_outputs(
    said: Vec<(&HookEntry, HookOutput)>,
    arguments: &Value,
) -> HookDecision {
    let mut verdict = said.iter().map(|(_, said)| said.verdict).max().unwrap_or_default();
    // An allow only counts for the arguments that its hook knew, not for another hook's changes.
    let made = |said: &[(&HookEntry, HookOutput)]| patched_arguments(said, arguments);
    let allows = |one: &(&HookEntry, HookOutput)| one.1.verdict == HookVerdict::Allow;
    let allows_all = |one| allows(one) && made(std::slice::from_ref(one)) == made(&said);
    if verdict == HookVerdict::Allow && !said.iter().any(allows_all) {
        verdict = HookVerdict::None;
    }
    let changes =
        (verdict < HookVerdict::Deny).then(|| patched_arguments(&said, arguments)).flatten();
    let changed_by = said.iter().filter(|(_, said)| changes.is_some() && !said.patch.is_empty());
    let (changed_by, changers): (Vec<_>, Vec<_>) =
        changed_by.map(|(entry, _)| (entry.command.program_label(), entry.name())).unzip();
    let speakers = || said.iter().filter(|(_, said)| contributed_to(said, verdict));
    let reasons: Vec<_> = speakers().filter_map(|(_, said)| said.stated_reason()).collect();
    let sentences: Vec<_> =
        speakers().filter_map(|(entry, said)| attributed_reason(entry, said)).collect();
    HookDecision::from_details(DecisionDetails {
        verdict,
        reason: reasons.join("\n"),
        sentence: (!sentences.is_empty()).then(|| sentences.join("\n")),
        arguments: changes,
        rewritten_by: (!changed_by.is_empty()).then(|| changed_by.join("` and `")),
        rewriters: changers,
        context: said.into_iter().filter_map(|(_, said)| said.context).collect(),
    })
}

/// Whether this output contributed to `verdict`.
fn contributed_to(said: &HookOutput, verdict: HookVerdict) -> bool {
    said.verdict == verdict || said.verdict >= HookVerdict::Deny
}

/// Returns the reason with the name of the hook.
fn attributed_reason(entry: &HookEntry, said: &HookOutput) -> Option<String> {
    let name = entry.command.program_label();
    match said.stated_reason() {
        Some(why) if said.is_sentence => Some(why.to_owned()),
        Some(why) => Some(format!("the hook `{name}` says: {why}")),
        None => {
            (said.verdict == HookVerdict::Allow).then(|| format!("the hook `{name}` allows it"))
        }
    }
}

/// Merges the patches; a later one overrides an earlier one.
pub(super) fn merged_patch(said: &[(&HookEntry, HookOutput)]) -> Map<String, Value> {
    let all = said.iter().flat_map(|(_, said)| &said.patch);
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the patched arguments; `None` if nothing changes.
fn patched_arguments(said: &[(&HookEntry, HookOutput)], arguments: &Value) -> Option<String> {
    let patch = merged_patch(said);
    let mut patched = arguments.as_object().cloned().unwrap_or_else(Map::new);
    let is_empty = patch.is_empty();
    patched.extend(patch);
    let patched = Value::Object(patched);
    (!is_empty && patched != *arguments).then(|| patched.to_string())
}
