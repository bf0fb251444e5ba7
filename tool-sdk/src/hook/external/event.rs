//! The events at which external hooks run, and the recognition of mistyped and foreign event names.
//!
//! **Invariant:** a name that may mean a deciding event is never ignored.

use std::time::Duration;

use crate::hook::OnError;

/// When a configured hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Before a call is authorized.
    PreToolUse,
    /// After a call succeeded.
    PostToolUse,
    /// After a call failed.
    PostToolUseFailure,
    /// Before the user is prompted for approval.
    PermissionRequest,
}

impl Event {
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
    pub(super) const fn decides(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// Returns the event of which `name` is most likely a misspelling.
    pub(super) fn close_to(name: &str) -> Option<Self> {
        let mut all: Vec<_> =
            Self::ALL.into_iter().map(|it| (distance(name, it.as_str()), it)).collect();
        all.sort_by_key(|(distance, _)| *distance);
        all.first().filter(|(distance, _)| *distance <= CLOSE).map(|(_, event)| *event)
    }

    /// Whether `name` may mean a deciding event: misspelled, or the name in another program.
    pub(super) fn is_meant(name: &str) -> bool {
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
        let letters = letters(name);
        let is_late = ["post", "after"].iter().any(|it| letters.starts_with(it));
        Self::ALL.iter().any(|event| event.decides() && is_like(name, event.as_str()))
            || !is_late && WORDS.iter().any(|word| letters.contains(word))
    }

    pub(super) const fn timeout(self) -> Duration {
        Duration::from_secs(if self.decides() { 10 } else { 60 })
    }

    pub(super) const fn on_error(self) -> OnError {
        if self.decides() { OnError::Deny } else { OnError::Ignore }
    }
}

/// Events of Claude Code that are not about tool calls.
pub(super) const ELSEWHERE: &[&str] = &[
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
pub(super) fn is_like(name: &str, known: &str) -> bool {
    distance(name, known) <= CLOSE
}

/// The edit distance up to which a name counts as a misspelling.
const CLOSE: usize = 2;

/// Returns the edit distance of two names, without case and punctuation.
fn distance(name: &str, known: &str) -> usize {
    strsim::damerau_levenshtein(&letters(name), &letters(known))
}

fn letters(text: &str) -> String {
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}
