//! The events at which commands may run, and the names that others have for theirs.
//!
//! **Invariant:** a name that may be one of an event that decides is never passed over.

use std::time::Duration;

use crate::hook::OnError;

/// When a configured hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A call is about to be judged.
    PreToolUse,
    /// A call succeeded.
    PostToolUse,
    /// A call failed.
    PostToolUseFailure,
    /// Somebody is about to be asked.
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

    /// Whether its hooks decide if a call runs.
    pub(super) const fn decides(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// The event that `name` most likely is, mistyped.
    pub(super) fn close_to(name: &str) -> Option<Self> {
        let mut all: Vec<_> =
            Self::ALL.into_iter().map(|it| (distance(name, it.as_str()), it)).collect();
        all.sort_by_key(|(distance, _)| *distance);
        all.first().filter(|(distance, _)| *distance <= CLOSE).map(|(_, event)| *event)
    }

    /// Whether `name` may be one that decides, mistyped or as others call it.
    pub(super) fn is_meant(name: &str) -> bool {
        /// What is decided about, when, and how.
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

/// Events that others have, and that are about no call.
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

/// Whether `name` is `known` in another spelling, or mistyped.
pub(super) fn is_like(name: &str, known: &str) -> bool {
    distance(name, known) <= CLOSE
}

/// So many letters may be wrong in a name that is mistyped.
const CLOSE: usize = 2;

/// How many letters of two names differ.
fn distance(name: &str, known: &str) -> usize {
    strsim::damerau_levenshtein(&letters(name), &letters(known))
}

fn letters(text: &str) -> String {
    let letters = text.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}
