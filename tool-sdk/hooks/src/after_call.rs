//! Applies the outputs of hooks that run after a call to its result.

use std::mem;

use serde_json::Value;
use tool_sdk_core::{HookContext, OnError, Output, ToolError, internal::HookVerdict};

use super::config::HookEntry;
use super::protocol::{HookFailure, HookOutput};

/// Applies the outputs of the hooks, in the order of the configuration.
pub(super) fn apply_outputs(
    answers: Vec<(&HookEntry, Result<HookOutput, HookFailure>)>,
    call: &HookContext<'_>,
    result: &mut Result<Output, ToolError>,
) {
    let ran = result.is_ok();
    let mut added = Vec::new();
    let mut withheld = None;
    for (entry, answer) in answers {
        match answer {
            Ok(said) => {
                if let Some(replacement) = &said.replacement {
                    replace_result(result, replacement);
                }
                added.extend(feedback_text(entry, &said, ran));
                halt_turn(entry, &said, call);
                added.extend(said.context);
            }
            Err(failure) if entry.on_error == OnError::Deny => {
                withheld.get_or_insert(failure);
            }
            Err(_) => {}
        }
    }
    // Every hook has read the result and may repeat it, so its text is withheld, too.
    if let Some(failure) = withheld {
        withhold_result(result, &failure);
    } else if !added.is_empty() {
        append_text(result, &added.join("\n"));
    }
}

/// Returns the text for the model that reports a denial or the end of the turn.
fn feedback_text(entry: &HookEntry, said: &HookOutput, ran: bool) -> Option<String> {
    let label = entry.command.program_label();
    let reason = said.reason.as_deref();
    let words = match said.verdict {
        HookVerdict::None | HookVerdict::Allow | HookVerdict::Ask => return None,
        HookVerdict::Deny => {
            format!("the hook `{label}` objects: {}", reason.unwrap_or("no reason"))
        }
        HookVerdict::Halt => {
            let reason = reason.or(said.stop_reason.as_deref());
            format!("the hook `{label}` ends the turn: {}", reason.unwrap_or("no reason"))
        }
    };
    let undone = if ran { "\nthe tool had run by then; its effect is not undone" } else { "" };
    Some(words + undone)
}

fn halt_turn(entry: &HookEntry, said: &HookOutput, call: &HookContext<'_>) {
    if said.verdict == HookVerdict::Halt {
        let reason = said.stop_reason.clone().or_else(|| said.reason.clone());
        call.halt_turn(reason.unwrap_or_else(|| {
            format!("the hook `{}` ends the turn", entry.command.program_label())
        }));
    }
}

/// Replaces the result by a hook's value. Structured output and metadata of the old result are
/// dropped, because they may repeat it; the title and attachments stay.
fn replace_result(result: &mut Result<Output, ToolError>, replacement: &Value) {
    let text = match replacement {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match result {
        Err(error) => *error = ToolError::new(error.kind(), text).source(take_error(error)),
        Ok(output) => {
            let plain = match replacement {
                Value::String(_) => Output::text(text),
                other => Output::text(text).structured(other.clone()),
            };
            let titled = match output.title_text() {
                Some(title) => plain.title(title),
                None => plain,
            };
            *output = output.attachments().iter().cloned().fold(titled, Output::attach);
        }
    }
}

fn append_text(result: &mut Result<Output, ToolError>, added: &str) {
    match result {
        Ok(output) => {
            let text = output.as_text().trim_end_matches('\n');
            let end = if text.is_empty() { "" } else { "\n" };
            output.replace_text(format!("{text}{end}{added}"));
        }
        Err(error) => {
            let text = format!("{}\n{added}", error.message());
            let reworded = ToolError::new(error.kind(), text);
            let reworded = match error.suggestion() {
                Some(hint) => reworded.hint(hint),
                None => reworded,
            };
            *error = reworded.source(take_error(error));
        }
    }
}

/// Replaces the result by an error, because a hook that must check it failed.
fn withhold_result(result: &mut Result<Output, ToolError>, failure: &HookFailure) {
    let message = format!("{}, so the result is not shown", failure.message);
    let mut error = ToolError::failed(message).hint("the tool has run; its effect is not undone");
    if let Err(cause) = result {
        error = error.source(take_error(cause));
    }
    *result = Err(error);
}

/// Takes the error, to become the source of the one that replaces it.
fn take_error(error: &mut ToolError) -> ToolError {
    mem::replace(error, ToolError::internal(""))
}
