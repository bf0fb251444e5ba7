//! The JSON input of a hook command.
//!
//! Field names are those of Claude Code and part of the protocol.

use serde::Serialize;
use serde_json::Value;
use tool_sdk_core::{ApprovalRequest, Mode, Resource};

/// The input of a command.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct HookPayload<'a> {
    pub(super) session_id: &'a str,
    /// Always null, for commands that expect the field.
    pub(super) transcript_path: Option<&'a str>,
    pub(super) cwd: String,
    pub(super) permission_mode: &'static str,
    pub(super) hook_event_name: &'static str,
    /// The tool's name as the matcher spells it.
    pub(super) tool_name: &'a str,
    /// The arguments under all their aliases, with absolute paths.
    pub(super) tool_input: Option<&'a Value>,
    pub(super) tool_use_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<&'a str>,
    /// The nesting depth of the calling agent, if the host provides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) depth: Option<u64>,
    /// The requested permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permission: Option<&'a str>,
    /// The resources of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subjects: Option<Vec<PayloadResource<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_response: Option<&'a Value>,
    /// The error message of a failed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<u64>,
}

/// A resource of an approval request, with the permission that applies to it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct PayloadResource<'a> {
    permission: &'a str,
    text: &'a str,
}

impl<'a> PayloadResource<'a> {
    pub(super) fn from_request(ask: &'a ApprovalRequest) -> Vec<Self> {
        let permission = |subject: &'a Resource| subject.permission().unwrap_or(&ask.permission);
        let touched = |it| Self { permission: permission(it), text: it.text() };
        ask.subjects.iter().map(touched).collect()
    }
}

/// Returns the name of the mode in the protocol.
pub(super) const fn permission_mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto | Mode::Strict => "default",
        Mode::Plan | Mode::Explore => "plan",
        Mode::Bypass => "bypassPermissions",
    }
}
