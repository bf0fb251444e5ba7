//! One opinion from what several hooks said, in the order of their configuration.

use serde_json::{Map, Value};

use super::config::Entry;
use super::protocol::{Failure, Said};
use crate::hook::{OnError, Opinion, Spoken, Verdict};

/// What counts of a hook's answer: nothing of an allow that it may not give, a denial where
/// it failed and its entry says so.
pub(super) fn weighed(entry: &Entry, answer: Result<Said, Failure>) -> Said {
    match answer {
        Ok(said) if said.verdict == Verdict::Allow && !entry.may_allow => {
            Said { verdict: Verdict::None, reason: None, ..said }
        }
        Ok(said) => Said { reason: said.reason.or_else(|| reason(entry, said.verdict)), ..said },
        Err(failure) if entry.on_error == OnError::Deny => {
            Said::deny(format!("{}; what it could not judge does not run", failure.what))
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
pub(super) fn opinion(said: Vec<Said>, arguments: &Value) -> Opinion {
    let mut verdict = said.iter().map(|said| said.verdict).max().unwrap_or_default();
    // What one of them allowed is not what another of them made of it.
    let changed = |said: &Said| !said.patch.is_empty() && said.verdict != Verdict::Allow;
    if verdict == Verdict::Allow && said.iter().any(changed) {
        verdict = Verdict::None;
    }
    let changes = (verdict < Verdict::Deny).then(|| patched(&said, arguments)).flatten();
    Opinion::saying(Spoken {
        verdict,
        reason: reasons(&said, verdict),
        arguments: changes,
        context: said.into_iter().filter_map(|said| said.context).collect(),
    })
}

fn reasons(said: &[Said], verdict: Verdict) -> String {
    let gave = |said: &&Said| said.verdict == verdict || said.verdict >= Verdict::Deny;
    let reasons = said.iter().filter(gave).filter_map(|said| match said.verdict {
        Verdict::Halt => said.stop_reason.as_deref().or(said.reason.as_deref()),
        _ => said.reason.as_deref(),
    });
    reasons.collect::<Vec<_>>().join("\n")
}

/// The arguments with every patch on them; nothing when that changes nothing.
fn patched(said: &[Said], arguments: &Value) -> Option<String> {
    let mut patched = arguments.as_object().cloned().unwrap_or_else(Map::new);
    for (name, value) in said.iter().flat_map(|said| &said.patch) {
        patched.insert(name.clone(), value.clone());
    }
    let patched = Value::Object(patched);
    let changes = said.iter().any(|said| !said.patch.is_empty()) && patched != *arguments;
    changes.then(|| patched.to_string())
}
