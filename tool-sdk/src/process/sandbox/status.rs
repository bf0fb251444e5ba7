//! How far a sandbox holds, as data for people and programs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far something is enforced by the kernel.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Enforced {
    /// Not at all.
    #[default]
    None,
    /// With gaps; the reasons name them.
    Partial,
    /// As the policy says.
    Full,
}

impl Enforced {
    /// `none`, `partial` or `full`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a child is confined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// Whether only the writable folders can be written, and what is protected in them not.
    pub filesystem: Enforced,
    /// Whether networks are out of reach.
    pub network: Enforced,
    /// Whether whatever it starts ends with it, and it sees and reaches no other process.
    pub processes: Enforced,
    /// What is missing, and why.
    pub reasons: Vec<String>,
}

impl Status {
    /// Nothing is enforced.
    pub(super) fn none(reason: impl fmt::Display) -> Self {
        Self { reasons: vec![reason.to_string()], ..Self::default() }
    }

    /// Whether a call may count as sandboxed when it is judged.
    ///
    /// Where files are not confined it never does, whatever else is enforced.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        self.filesystem != Enforced::None
    }

    /// Whether this holds at least as much as `floor`.
    #[cfg_attr(
        not(all(feature = "sandbox", target_os = "linux")),
        expect(dead_code, reason = "only a helper compares")
    )]
    pub(super) fn reaches(&self, floor: &Self) -> bool {
        self.filesystem >= floor.filesystem
            && self.network >= floor.network
            && self.processes >= floor.processes
    }
}

/// `filesystem full, network none, processes full (why)`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filesystem, network, processes, .. } = self;
        write!(f, "filesystem {filesystem}, network {network}, processes {processes}")?;
        match self.reasons.as_slice() {
            [] => Ok(()),
            reasons => write!(f, " ({})", reasons.join("; ")),
        }
    }
}

/// What a machine offers for a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Support {
    /// How far a child would be confined.
    pub status: Status,
    /// The version of Landlock's interface, where there is Landlock.
    pub landlock: Option<i32>,
    /// Whether a child can have a user namespace with mounts of its own.
    pub namespaces: bool,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
}

/// What became of one attempt to leave the sandbox, or to work inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attempt {
    /// What was tried.
    pub name: String,
    /// Whether it should succeed.
    pub allowed: bool,
    /// Whether it went as it should; nothing when it was not tried.
    pub passed: Option<bool>,
    /// What happened, or why it was not tried.
    pub detail: String,
}

/// What came of a self-test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SelfTest {
    /// How far the child was confined.
    pub status: Status,
    /// What it tried.
    pub attempts: Vec<Attempt>,
}

impl SelfTest {
    /// Whether nothing went otherwise than it should.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.attempts.iter().all(|attempt| attempt.passed != Some(false))
    }

    /// How many attempts were made.
    #[must_use]
    pub fn tried(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.passed.is_some()).count()
    }
}
