//! One opinion from what several hooks said, in the order of their configuration.

use serde_json::{Map, Value};

use super::config::Entry;
use super::protocol::{Failure, Said};
use crate::hook::{OnError, Opinion, Spoken, Verdict};

/// What counts of a hook's answer: nothing of an allow that it may not give, a denial where
/// it failed and its entry says so.
pub(super) fn weighed(entry: &Entry, answer: Result<Said, Failure>) -> Said {
    match answer {
        Ok(said) if said.verdict == Verdict::Allow && !entry.may_allow => said.without_allow(),
        Ok(said) if said.reason.is_some() => said,
        Ok(said) => {
            Said { is_sentence: said.why().is_none(), reason: reason(entry, said.verdict), ..said }
        }
        Err(failure) if entry.on_error == OnError::Deny => {
            let reason = format!("{}; what it could not judge does not run", failure.what);
            Said { is_sentence: true, ..Said::deny(reason) }
        }
        Err(_) => Said::default(),
    }
}

/// What is said for a hook that gave no reason.
fn reason(entry: &Entry, verdict: Verdict) -> Option<String> {
    let what = match verdict {
        Verdict::None | Verdict::Allow => return None,
        Verdict::Ask => "wants somebody asked",
        Verdict::Deny => "says no",
        Verdict::Halt => "ends the turn",
    };
    Some(format!("the hook `{}` {what}", entry.command.label()))
}

/// The opinion of all: the strictest verdict with the reasons of those that gave it, every
/// context, and the changes to `arguments` one after the other where the call may still run.
pub(super) fn opinion(said: Vec<(&Entry, Said)>, arguments: &Value) -> Opinion {
    let mut verdict = said.iter().map(|(_, said)| said.verdict).max().unwrap_or_default();
    // What one of them allowed is not what another of them made of it.
    let made = |said: &[(&Entry, Said)]| patched(said, arguments);
    let allows = |one: &(&Entry, Said)| one.1.verdict == Verdict::Allow;
    let allows_all = |one| allows(one) && made(std::slice::from_ref(one)) == made(&said);
    if verdict == Verdict::Allow && !said.iter().any(allows_all) {
        verdict = Verdict::None;
    }
    let changes = (verdict < Verdict::Deny).then(|| patched(&said, arguments)).flatten();
    let changed_by = said.iter().filter(|(_, said)| changes.is_some() && !said.patch.is_empty());
    let (changed_by, changers): (Vec<_>, Vec<_>) =
        changed_by.map(|(entry, _)| (entry.command.label(), entry.name())).unzip();
    let speakers = || said.iter().filter(|(_, said)| gave(said, verdict));
    let reasons: Vec<_> = speakers().filter_map(|(_, said)| said.why()).collect();
    let sentences: Vec<_> = speakers().filter_map(|(entry, said)| sentence(entry, said)).collect();
    Opinion::saying(Spoken {
        verdict,
        reason: reasons.join("\n"),
        sentence: (!sentences.is_empty()).then(|| sentences.join("\n")),
        arguments: changes,
        changed_by: (!changed_by.is_empty()).then(|| changed_by.join("` and `")),
        changers,
        context: said.into_iter().filter_map(|(_, said)| said.context).collect(),
    })
}

/// Whether this is one of those that led to `verdict`.
fn gave(said: &Said, verdict: Verdict) -> bool {
    said.verdict == verdict || said.verdict >= Verdict::Deny
}

/// Why it is so, and who says it.
fn sentence(entry: &Entry, said: &Said) -> Option<String> {
    let name = entry.command.label();
    match said.why() {
        Some(why) if said.is_sentence => Some(why.to_owned()),
        Some(why) => Some(format!("the hook `{name}` says: {why}")),
        None => (said.verdict == Verdict::Allow).then(|| format!("the hook `{name}` allows it")),
    }
}

/// The patches of all, where a later one goes before.
pub(super) fn patch(said: &[(&Entry, Said)]) -> Map<String, Value> {
    let all = said.iter().flat_map(|(_, said)| &said.patch);
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The arguments with every patch on them; nothing when that changes nothing.
fn patched(said: &[(&Entry, Said)], arguments: &Value) -> Option<String> {
    let patch = patch(said);
    let mut patched = arguments.as_object().cloned().unwrap_or_else(Map::new);
    let is_empty = patch.is_empty();
    patched.extend(patch);
    let patched = Value::Object(patched);
    (!is_empty && patched != *arguments).then(|| patched.to_string())
}
