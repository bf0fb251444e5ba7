//! Interprets the exit code and the output of a hook command.
//!
//! [`ExternalHooks`](super::ExternalHooks) documents the exit codes.
//!
//! **Invariant:** a hook that failed decides nothing; `on_error` of its entry applies.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use tool_sdk_core::internal::HookVerdict;
use tool_sdk_process::{CommandOutput, ExitOutcome, RunError};

use super::event::HookEvent;

/// The limit in bytes of a hook's text for the model.
const MAX_TEXT_BYTES: usize = 10 << 10;

/// The decision and the texts of one hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HookOutput {
    pub(super) verdict: HookVerdict,
    pub(super) reason: Option<String>,
    /// Whether the reason already names the hook.
    pub(super) is_sentence: bool,
    /// Why the turn ends, for a halt.
    pub(super) stop_reason: Option<String>,
    pub(super) patch: Map<String, Value>,
    pub(super) context: Option<String>,
    pub(super) replacement: Option<Value>,
    /// A message for the user.
    pub(super) message: Option<String>,
}

impl HookOutput {
    pub(super) fn deny(reason: impl Into<String>) -> Self {
        Self { verdict: HookVerdict::Deny, reason: Some(reason.into()), ..Self::default() }
    }

    /// Drops an allow.
    pub(super) fn without_allow(self) -> Self {
        match self.verdict {
            HookVerdict::Allow => Self { verdict: HookVerdict::None, reason: None, ..self },
            _ => self,
        }
    }

    /// Returns the reason for the verdict.
    pub(super) fn stated_reason(&self) -> Option<&str> {
        let stop_reason = self.stop_reason.as_deref().filter(|_| self.verdict == HookVerdict::Halt);
        stop_reason.or(self.reason.as_deref())
    }
}

/// The failure of a hook, which decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HookFailure {
    /// The message for the model.
    pub(super) message: String,
    /// The output of the command, for the host only.
    pub(super) detail: String,
}

/// Interprets the exit of the command `label`.
pub(super) fn interpret_exit(
    event: HookEvent,
    label: &str,
    limit: Duration,
    ended: Result<&CommandOutput, &RunError>,
) -> Result<HookOutput, HookFailure> {
    let failed = |what: String, detail: String| {
        Err(HookFailure { message: format!("the hook `{label}` {what}"), detail })
    };
    let finished = match ended {
        Ok(finished) => finished,
        Err(error) => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            return failed("could not be run".to_owned(), cause.unwrap_or_default());
        }
    };
    let complaint = finished.stderr.to_text();
    match finished.exit {
        // The decision may be in the part of the output that was dropped.
        ExitOutcome::Code(0) if !finished.stdout.is_whole() => {
            let error = "it is longer than 64 KiB".to_owned();
            failed("gave an answer that cannot be read".to_owned(), error)
        }
        ExitOutcome::Code(0) if !is_utf8_text(&finished.stdout.head) => {
            failed("gave an answer that cannot be read".to_owned(), "it is not UTF-8".to_owned())
        }
        ExitOutcome::Code(0) => match parse_output(event, &finished.stdout.to_text()) {
            Ok(said) => Ok(said),
            Err(error) => failed("gave an answer that cannot be read".to_owned(), error),
        },
        ExitOutcome::Code(2) => {
            Ok(HookOutput { reason: trim_and_limit(complaint), ..HookOutput::deny("") })
        }
        ExitOutcome::Code(code) => failed(format!("failed with exit code {code}"), complaint),
        ExitOutcome::Signal(signal) => failed(format!("was ended by signal {signal}"), complaint),
        ExitOutcome::TimedOut => {
            failed(format!("timed out after {} s", limit.as_secs_f64()), complaint)
        }
        _ => failed("ended with an unknown status".to_owned(), complaint),
    }
}

/// Whether the output is UTF-8 without zero bytes. UTF-16 output can be valid UTF-8, but has zero
/// bytes.
fn is_utf8_text(printed: &[u8]) -> bool {
    !printed.contains(&0) && std::str::from_utf8(printed).is_ok()
}

/// Parses the output of a command with exit code 0. Fails when it contains an invalid decision.
fn parse_output(event: HookEvent, stdout: &str) -> Result<HookOutput, String> {
    let stdout = stdout.trim_start_matches('\u{feff}').trim();
    if !stdout.starts_with('{') {
        return match is_plain_text(stdout) {
            true => Ok(HookOutput::default()),
            false => Err("expected one JSON object and nothing else".to_owned()),
        };
    }
    let answer: RawOutput = serde_json::from_str(stdout).map_err(|error| error.to_string())?;
    let specific = answer.hook_specific_output.unwrap_or_default();
    if let Some(name) = specific.hook_event_name.filter(|name| name != event.as_str()) {
        return Err(format!("it answers `{name}`, and was asked about `{}`", event.as_str()));
    }
    let request = specific.decision.unwrap_or_default();
    if request.updated_permissions.is_some() {
        return Err("a hook cannot change rules and approvals".to_owned());
    }
    let allows = matches!(request.behavior, Some(PermissionChoice::Allow));
    if request.updated_input.is_some() && (event != HookEvent::PermissionRequest || !allows) {
        return Err("`updatedInput` in `decision` goes with the `allow` of a request".to_owned());
    }
    if request.updated_input.is_some() && specific.updated_input.is_some() {
        return Err("`updatedInput` is given twice".to_owned());
    }
    if request.interrupt == Some(true) && !matches!(request.behavior, Some(PermissionChoice::Deny))
    {
        return Err("`interrupt` goes with `deny` only".to_owned());
    }
    let verdict = [
        answer.decision.map(|decision| match decision {
            LegacyDecision::Approve => HookVerdict::Allow,
            LegacyDecision::Block => HookVerdict::Deny,
        }),
        specific.permission_decision.map(PermissionChoice::to_verdict),
        request.behavior.map(PermissionChoice::to_verdict),
        (answer.should_continue == Some(false)).then_some(HookVerdict::Halt),
        (request.interrupt == Some(true)).then_some(HookVerdict::Halt),
    ];
    Ok(HookOutput {
        // The strictest of several decisions applies.
        verdict: verdict.into_iter().flatten().max().unwrap_or_default(),
        reason: [specific.permission_decision_reason, request.message, answer.reason]
            .into_iter()
            .flatten()
            .find_map(trim_and_limit),
        is_sentence: false,
        stop_reason: answer.stop_reason.and_then(trim_and_limit),
        patch: specific.updated_input.or(request.updated_input).unwrap_or_default(),
        context: specific.additional_context.map(|text| text.trim().to_owned()),
        replacement: specific.updated_tool_output,
        message: answer.system_message.and_then(trim_and_limit),
    })
}

/// Whether a text contains no decision: it is not a JSON array and has none of the deciding keys.
fn is_plain_text(text: &str) -> bool {
    const KEYS: [&str; 4] =
        ["\"hookSpecificOutput\"", "\"permissionDecision\"", "\"decision\"", "\"continue\""];
    let has = |key: &&str| text.split(*key).skip(1).any(|rest| rest.trim_start().starts_with(':'));
    let is_list = text.starts_with('[') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    !is_list && !KEYS.iter().any(has)
}

/// Truncates context for the model. `keep` stores the whole text and returns its path.
pub(super) fn truncate_context(text: String, keep: impl FnOnce(&str) -> Option<PathBuf>) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let shown = text.floor_char_boundary(MAX_TEXT_BYTES);
    let more = text.len() - shown;
    match keep(&text) {
        Some(path) => {
            format!("{}\n[{more} more bytes; all of it is in `{}`]", &text[..shown], path.display())
        }
        None => format!("{}\n[{more} more bytes left out]", &text[..shown]),
    }
}

/// Trims and truncates `text`; `None` if it is empty.
fn trim_and_limit(text: String) -> Option<String> {
    let text = text.trim();
    if text.len() <= MAX_TEXT_BYTES {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let kept = text.floor_char_boundary(MAX_TEXT_BYTES);
    Some(format!("{}\n[{} more bytes left out]", &text[..kept], text.len() - kept))
}

/// The JSON output of a command. Unknown keys are errors, because one may be a misspelled denial.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawOutput {
    #[serde(rename = "suppressOutput")]
    _suppress_output: Option<IgnoredAny>,
    #[serde(rename = "continue")]
    should_continue: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<LegacyDecision>,
    reason: Option<String>,
    hook_specific_output: Option<EventOutput>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LegacyDecision {
    Approve,
    Block,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct EventOutput {
    hook_event_name: Option<String>,
    permission_decision: Option<PermissionChoice>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
    /// The alias is an older name, for MCP tools only.
    #[serde(alias = "updatedMCPToolOutput")]
    updated_tool_output: Option<Value>,
    decision: Option<RequestDecision>,
}

/// The decision about a permission request.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct RequestDecision {
    /// Whether a denial ends the turn.
    interrupt: Option<bool>,
    behavior: Option<PermissionChoice>,
    message: Option<String>,
    updated_input: Option<Map<String, Value>>,
    updated_permissions: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PermissionChoice {
    Allow,
    Ask,
    Deny,
}

impl PermissionChoice {
    const fn to_verdict(self) -> HookVerdict {
        match self {
            Self::Allow => HookVerdict::Allow,
            Self::Ask => HookVerdict::Ask,
            Self::Deny => HookVerdict::Deny,
        }
    }
}
