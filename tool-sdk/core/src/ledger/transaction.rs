//! The phases of a mutation, and which may follow which.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LedgerEntry;
use crate::error::ToolError;

/// The phase of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MutationPhase {
    /// It is planned.
    Plan,
    /// It was tried without an effect.
    DryRun,
    /// It was made.
    Applied,
    /// Its effect was checked.
    Verified,
    /// It failed.
    Failed,
    /// The loop guard blocked it; set by the ledger.
    Blocked,
    /// It was undone after it had failed; set by the ledger.
    RolledBack,
    /// It could not be undone; set by the ledger.
    RollbackFailed,
}

impl MutationPhase {
    const ALL: [Self; 8] = [
        Self::Plan,
        Self::DryRun,
        Self::Applied,
        Self::Verified,
        Self::Failed,
        Self::Blocked,
        Self::RolledBack,
        Self::RollbackFailed,
    ];

    /// Returns the name in the ledger, such as `dry_run`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::DryRun => "dry_run",
            Self::Applied => "applied",
            Self::Verified => "verified",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::RolledBack => "rolled_back",
            Self::RollbackFailed => "rollback_failed",
        }
    }

    /// Returns the phases that may follow.
    #[must_use]
    pub const fn next_phases(self) -> &'static [Self] {
        match self {
            Self::Plan => &[Self::DryRun, Self::Applied, Self::Failed],
            Self::DryRun => &[Self::DryRun, Self::Applied, Self::Failed],
            Self::Applied => &[Self::Verified, Self::Failed],
            Self::Failed => &[Self::RolledBack, Self::RollbackFailed],
            Self::Verified | Self::Blocked | Self::RolledBack | Self::RollbackFailed => &[],
        }
    }

    /// Whether callers set the phase; the others are set by the ledger.
    pub(super) const fn is_for_callers(self) -> bool {
        matches!(self, Self::DryRun | Self::Applied | Self::Verified | Self::Failed)
    }
}

impl fmt::Display for MutationPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MutationPhase {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        let found = Self::ALL.into_iter().find(|phase| phase.as_str() == text);
        found.ok_or_else(|| {
            ToolError::invalid_args(format_args!("`{}` is not a phase", text.escape_debug()))
        })
    }
}

/// One mutation from its plan to its end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MutationTransaction {
    /// The id.
    pub id: String,
    /// The session that makes it.
    pub session: String,
    /// What is changed and how.
    pub fingerprint: String,
    /// The phases so far, the oldest first; there is at least one.
    pub timeline: Vec<TimelineEntry>,
}

/// When a phase began.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TimelineEntry {
    /// The phase.
    pub phase: MutationPhase,
    /// When it was recorded, in milliseconds since 1970.
    pub time_ms: u64,
    /// Facts about the phase.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl MutationTransaction {
    /// Collects the entries of a transaction.
    pub(super) fn from_entries(entries: &[LedgerEntry], id: &str) -> Result<Self, ToolError> {
        let mut own = entries.iter().filter(|entry| entry.transaction == id).peekable();
        let Some(first) = own.peek() else {
            return Err(ToolError::not_found(format_args!(
                "there is no transaction `{}`",
                id.escape_debug()
            )));
        };
        Ok(Self {
            id: id.to_owned(),
            session: first.session.clone(),
            fingerprint: first.fingerprint.clone(),
            timeline: own
                .map(|entry| TimelineEntry {
                    phase: entry.phase,
                    time_ms: entry.time_ms,
                    details: entry.details.clone(),
                })
                .collect(),
        })
    }

    /// Returns the current phase.
    #[must_use]
    pub fn phase(&self) -> MutationPhase {
        self.timeline.last().map_or(MutationPhase::Plan, |entry| entry.phase)
    }

    /// Returns whether the mutation was made.
    #[must_use]
    pub fn was_applied(&self) -> bool {
        self.timeline.iter().any(|entry| entry.phase == MutationPhase::Applied)
    }

    /// Fails when `next` cannot follow the current phase.
    pub(super) fn check_next(&self, next: MutationPhase) -> Result<(), ToolError> {
        let (phase, allowed) = (self.phase(), self.phase().next_phases());
        if allowed.contains(&next) {
            return Ok(());
        }
        let error = ToolError::conflict(format_args!("`{next}` cannot follow the phase `{phase}`"));
        let allowed = allowed.iter().filter(|phase| phase.is_for_callers());
        let allowed: Vec<String> = allowed.map(|phase| format!("`{phase}`")).collect();
        Err(match &*allowed {
            [] => error.hint("the transaction has ended; begin another one"),
            allowed => error.hint(format_args!("what can follow is {}", allowed.join(" or "))),
        })
    }
}
