//! What a sandbox enforces, as data for users and programs.
//!
//! **Invariant:** every level below full has a reason.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far the kernel enforces a restriction.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EnforcementLevel {
    /// Not at all.
    #[default]
    None,
    /// With gaps, which the reasons name.
    Partial,
    /// As the policy requires.
    Full,
}

impl EnforcementLevel {
    /// Returns `none`, `partial` or `full`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for EnforcementLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is enforced for a child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SandboxStatus {
    /// Whether only writable folders can be written, without the protected files in them.
    pub filesystem: EnforcementLevel,
    /// Whether networks are blocked.
    pub network: EnforcementLevel,
    /// Whether all descendants end with the child, and other processes are hidden from it.
    pub processes: EnforcementLevel,
    /// Whether the files that the child [must not read](super::SandboxPolicy::with_unreadable) are
    /// covered; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<EnforcementLevel>,
    /// The gaps and their causes.
    pub reasons: Vec<String>,
}

impl SandboxStatus {
    /// Returns a status in which nothing is enforced, for `reason`.
    pub(super) fn unenforced(reason: impl fmt::Display) -> Self {
        Self { reasons: vec![reason.to_string()], ..Self::default() }
    }

    /// Returns whether a call counts as sandboxed when it is authorized.
    ///
    /// It never does when writes to files are not restricted, even if other restrictions are.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        self.filesystem != EnforcementLevel::None
    }

    /// Returns whether this enforces at least as much as `floor`.
    #[cfg_attr(
        not(all(feature = "sandbox", target_os = "linux")),
        expect(dead_code, reason = "only a helper compares")
    )]
    pub(super) fn is_at_least(&self, floor: &Self) -> bool {
        self.filesystem >= floor.filesystem
            && self.network >= floor.network
            && self.processes >= floor.processes
            && self.reads >= floor.reads
    }
}

/// `filesystem full, network none, processes full (why)`, with `reads` when there is a level for it.
impl fmt::Display for SandboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filesystem, network, processes, .. } = self;
        write!(f, "filesystem {filesystem}, network {network}, processes {processes}")?;
        if let Some(reads) = self.reads {
            write!(f, ", reads {reads}")?;
        }
        match self.reasons.as_slice() {
            [] => Ok(()),
            reasons => write!(f, " ({})", reasons.join("; ")),
        }
    }
}

/// What a machine supports for a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SandboxSupport {
    /// What would be enforced for a child.
    pub status: SandboxStatus,
    /// The Landlock ABI version, if the kernel has Landlock.
    pub landlock: Option<i32>,
    /// Whether user and mount namespaces are available.
    pub namespaces: bool,
    /// Whether system calls can be filtered with seccomp.
    pub seccomp: bool,
}

/// The result of one attempt of the self-test to escape the sandbox, or to work inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SelfTestAttempt {
    /// What was attempted.
    pub name: String,
    /// Whether it is expected to succeed.
    pub allowed: bool,
    /// Whether the result was as expected; `None` when it was skipped.
    pub passed: Option<bool>,
    /// What happened, or why it was skipped.
    pub detail: String,
}

/// The result of the self-test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SelfTestReport {
    /// What was enforced for the child.
    pub status: SandboxStatus,
    /// The attempts.
    pub attempts: Vec<SelfTestAttempt>,
}

impl SelfTestReport {
    /// Returns whether no attempt had an unexpected result.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.attempts.iter().all(|attempt| attempt.passed != Some(false))
    }

    /// Returns the number of attempts that were not skipped.
    #[must_use]
    pub fn attempted_count(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.passed.is_some()).count()
    }
}
