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

use super::event::Event;
use crate::hook::Verdict;
use crate::process::{CommandOutput, ExitOutcome, RunError};

/// The limit in bytes of a hook's text for the model.
const MAX_TEXT: usize = 10 << 10;

/// The decision and the texts of one hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) verdict: Verdict,
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

impl Said {
    pub(super) fn deny(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Deny, reason: Some(reason.into()), ..Self::default() }
    }

    /// Drops an allow.
    pub(super) fn without_allow(self) -> Self {
        match self.verdict {
            Verdict::Allow => Self { verdict: Verdict::None, reason: None, ..self },
            _ => self,
        }
    }

    /// Returns the reason for the verdict.
    pub(super) fn why(&self) -> Option<&str> {
        let stop_reason = self.stop_reason.as_deref().filter(|_| self.verdict == Verdict::Halt);
        stop_reason.or(self.reason.as_deref())
    }
}

/// The failure of a hook, which decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The message for the model.
    pub(super) what: String,
    /// The output of the command, for the host only.
    pub(super) detail: String,
}

/// Interprets the exit of the command `label`.
pub(super) fn meaning(
    event: Event,
    label: &str,
    limit: Duration,
    ended: Result<&CommandOutput, &RunError>,
) -> Result<Said, Failure> {
    let failed = |what: String, detail: String| {
        Err(Failure { what: format!("the hook `{label}` {what}"), detail })
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
        ExitOutcome::Code(0) if !is_text(&finished.stdout.head) => {
            failed("gave an answer that cannot be read".to_owned(), "it is not UTF-8".to_owned())
        }
        ExitOutcome::Code(0) => match answer(event, &finished.stdout.to_text()) {
            Ok(said) => Ok(said),
            Err(error) => failed("gave an answer that cannot be read".to_owned(), error),
        },
        ExitOutcome::Code(2) => Ok(Said { reason: worded(complaint), ..Said::deny("") }),
        ExitOutcome::Code(code) => failed(format!("failed with exit code {code}"), complaint),
        ExitOutcome::Signal(signal) => failed(format!("was ended by signal {signal}"), complaint),
        ExitOutcome::TimedOut => {
            failed(format!("timed out after {} s", limit.as_secs_f64()), complaint)
        }
        ExitOutcome::Unknown => failed("ended with an unknown status".to_owned(), complaint),
    }
}

/// Whether the output is UTF-8 without zero bytes. UTF-16 output can be valid UTF-8, but has zero
/// bytes.
fn is_text(printed: &[u8]) -> bool {
    !printed.contains(&0) && std::str::from_utf8(printed).is_ok()
}

/// Parses the output of a command with exit code 0. Fails when it contains an invalid decision.
fn answer(event: Event, stdout: &str) -> Result<Said, String> {
    let stdout = stdout.trim_start_matches('\u{feff}').trim();
    if !stdout.starts_with('{') {
        return match is_plain(stdout) {
            true => Ok(Said::default()),
            false => Err("expected one JSON object and nothing else".to_owned()),
        };
    }
    let answer: Answer = serde_json::from_str(stdout).map_err(|error| error.to_string())?;
    let specific = answer.hook_specific_output.unwrap_or_default();
    if let Some(name) = specific.hook_event_name.filter(|name| name != event.as_str()) {
        return Err(format!("it answers `{name}`, and was asked about `{}`", event.as_str()));
    }
    let request = specific.decision.unwrap_or_default();
    if request.updated_permissions.is_some() {
        return Err("a hook cannot change rules and approvals".to_owned());
    }
    let allows = matches!(request.behavior, Some(Choice::Allow));
    if request.updated_input.is_some() && (event != Event::PermissionRequest || !allows) {
        return Err("`updatedInput` in `decision` goes with the `allow` of a request".to_owned());
    }
    if request.updated_input.is_some() && specific.updated_input.is_some() {
        return Err("`updatedInput` is given twice".to_owned());
    }
    if request.interrupt == Some(true) && !matches!(request.behavior, Some(Choice::Deny)) {
        return Err("`interrupt` goes with `deny` only".to_owned());
    }
    let verdict = [
        answer.decision.map(|decision| match decision {
            Legacy::Approve => Verdict::Allow,
            Legacy::Block => Verdict::Deny,
        }),
        specific.permission_decision.map(Choice::verdict),
        request.behavior.map(Choice::verdict),
        (answer.go_on == Some(false)).then_some(Verdict::Halt),
        (request.interrupt == Some(true)).then_some(Verdict::Halt),
    ];
    Ok(Said {
        // The strictest of several decisions applies.
        verdict: verdict.into_iter().flatten().max().unwrap_or_default(),
        reason: [specific.permission_decision_reason, request.message, answer.reason]
            .into_iter()
            .flatten()
            .find_map(worded),
        is_sentence: false,
        stop_reason: answer.stop_reason.and_then(worded),
        patch: specific.updated_input.or(request.updated_input).unwrap_or_default(),
        context: specific.additional_context.map(|text| text.trim().to_owned()),
        replacement: specific.updated_tool_output,
        message: answer.system_message.and_then(worded),
    })
}

/// Whether a text contains no decision: it is not a JSON array and has none of the deciding keys.
fn is_plain(text: &str) -> bool {
    const KEYS: [&str; 4] =
        ["\"hookSpecificOutput\"", "\"permissionDecision\"", "\"decision\"", "\"continue\""];
    let has = |key: &&str| text.split(*key).skip(1).any(|rest| rest.trim_start().starts_with(':'));
    let is_list = text.starts_with('[') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    !is_list && !KEYS.iter().any(has)
}

/// Truncates context for the model. `keep` stores the whole text and returns its path.
pub(super) fn shortened(text: String, keep: impl FnOnce(&str) -> Option<PathBuf>) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let shown = text.floor_char_boundary(MAX_TEXT);
    let more = text.len() - shown;
    match keep(&text) {
        Some(path) => {
            format!("{}\n[{more} more bytes; all of it is in `{}`]", &text[..shown], path.display())
        }
        None => format!("{}\n[{more} more bytes left out]", &text[..shown]),
    }
}

/// Trims and truncates `text`; `None` if it is empty.
fn worded(text: String) -> Option<String> {
    let text = text.trim();
    if text.len() <= MAX_TEXT {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let kept = text.floor_char_boundary(MAX_TEXT);
    Some(format!("{}\n[{} more bytes left out]", &text[..kept], text.len() - kept))
}

/// The JSON output of a command. Unknown keys are errors, because one may be a misspelled denial.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answer {
    #[serde(rename = "suppressOutput")]
    _suppress_output: Option<IgnoredAny>,
    #[serde(rename = "continue")]
    go_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<Legacy>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Legacy {
    Approve,
    Block,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Specific {
    hook_event_name: Option<String>,
    permission_decision: Option<Choice>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
    /// The alias is an older name, for MCP tools only.
    #[serde(alias = "updatedMCPToolOutput")]
    updated_tool_output: Option<Value>,
    decision: Option<Request>,
}

/// The decision about a permission request.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Request {
    /// Whether a denial ends the turn.
    interrupt: Option<bool>,
    behavior: Option<Choice>,
    message: Option<String>,
    updated_input: Option<Map<String, Value>>,
    updated_permissions: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Allow,
    Ask,
    Deny,
}

impl Choice {
    const fn verdict(self) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Ask => Verdict::Ask,
            Self::Deny => Verdict::Deny,
        }
    }
}
