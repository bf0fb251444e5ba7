//! What a command reads on standard input.

use serde::Serialize;
use serde_json::Value;

use crate::permission::{Ask, Mode};
use crate::tool::Subject;

/// What a command reads.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Payload<'a> {
    pub(super) session_id: &'a str,
    /// There is no transcript; the field is there for commands that look for it.
    pub(super) transcript_path: Option<&'a str>,
    pub(super) cwd: String,
    pub(super) permission_mode: &'static str,
    pub(super) hook_event_name: &'static str,
    /// The tool, as the matcher of the command calls it.
    pub(super) tool_name: &'a str,
    /// The arguments under all their names, with absolute paths.
    pub(super) tool_input: Option<&'a Value>,
    pub(super) tool_use_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<&'a str>,
    /// How many agents stand above the one that calls, where the host says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) depth: Option<u64>,
    /// What somebody is about to be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permission: Option<&'a str>,
    /// What the ask is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subjects: Option<Vec<Touched<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_response: Option<&'a Value>,
    /// What went wrong, where the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<u64>,
}

/// One thing that an ask is about. Some are judged under another permission than the call.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Touched<'a> {
    permission: &'a str,
    text: &'a str,
}

impl<'a> Touched<'a> {
    pub(super) fn all_of(ask: &'a Ask) -> Vec<Self> {
        let permission = |subject: &'a Subject| subject.permission().unwrap_or(&ask.permission);
        let touched = |it| Self { permission: permission(it), text: it.text() };
        ask.subjects.iter().map(touched).collect()
    }
}

/// The mode by the name that commands know it under.
pub(super) const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto | Mode::Strict => "default",
        Mode::Plan | Mode::Explore => "plan",
        Mode::Bypass => "bypassPermissions",
    }
}
