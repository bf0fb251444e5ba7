//! The events at which external hooks run, and the recognition of mistyped and foreign event names.
//!
//! **Invariant:** a name that may mean a deciding event is never ignored.

use std::time::Duration;

use tool_sdk_core::OnError;

/// When a configured hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookEvent {
    /// Before a call is authorized.
    PreToolUse,
    /// After a call succeeded.
    PostToolUse,
    /// After a call failed.
    PostToolUseFailure,
    /// Before the user is prompted for approval.
    PermissionRequest,
}

impl HookEvent {
    pub(super) const ALL: [Self; 4] =
        [Self::PreToolUse, Self::PostToolUse, Self::PostToolUseFailure, Self::PermissionRequest];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
        }
    }

    /// Whether its hooks decide whether a call runs.
    pub(super) const fn is_deciding(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// Returns the event of which `name` is most likely a misspelling.
    pub(super) fn closest_to(name: &str) -> Option<Self> {
        let mut all: Vec<_> =
            Self::ALL.into_iter().map(|it| (edit_distance(name, it.as_str()), it)).collect();
        all.sort_by_key(|(distance, _)| *distance);
        all.first().filter(|(distance, _)| *distance <= MAX_DISTANCE).map(|(_, event)| *event)
    }

    /// Whether `name` may mean a deciding event: misspelled, or the name in another program.
    pub(super) fn may_be_deciding(name: &str) -> bool {
        /// Words that occur in the names of deciding events.
        const WORDS: &[&str] = &[
            "allow",
            "approv",
            "ask",
            "before",
            "block",
            "call",
            "can",
            "check",
            "command",
            "deny",
            "edit",
            "exec",
            "gate",
            "guard",
            "may",
            "permission",
            "pre",
            "read",
            "run",
            "shell",
            "should",
            "tool",
            "use",
            "valid",
            "write",
        ];
        let letters = normalize_name(name);
        let is_late = ["post", "after"].iter().any(|it| letters.starts_with(it));
        Self::ALL.iter().any(|event| event.is_deciding() && is_similar(name, event.as_str()))
            || !is_late && WORDS.iter().any(|word| letters.contains(word))
    }

    pub(super) const fn default_timeout(self) -> Duration {
        Duration::from_secs(if self.is_deciding() { 10 } else { 60 })
    }

    pub(super) const fn default_on_error(self) -> OnError {
        if self.is_deciding() { OnError::Deny } else { OnError::Ignore }
    }
}

/// Events of Claude Code that are not about tool calls.
pub(super) const FOREIGN_EVENTS: &[&str] = &[
    "ConfigChange",
    "CwdChanged",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "Notification",
    "PostCompact",
    "PreCompact",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
];

/// Whether `name` is a misspelling of `known`.
pub(super) fn is_similar(name: &str, known: &str) -> bool {
    edit_distance(name, known) <= MAX_DISTANCE
}

/// The edit distance up to which a name counts as a misspelling.
const MAX_DISTANCE: usize = 2;

/// Returns the edit distance of two names, without case and punctuation.
fn edit_distance(name: &str, known: &str) -> usize {
    strsim::damerau_levenshtein(&normalize_name(name), &normalize_name(known))
}

fn normalize_name(text: &str) -> String {
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}
