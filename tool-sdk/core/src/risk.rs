//! The risk of a tool: the effects that it can have. Permission rules, MCP hints and the scheduler
//! all use it.

use serde::{Deserialize, Serialize};

/// The risk class of a tool; every tool has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a new class would change what every rule means")]
pub enum RiskClass {
    /// Reads, and changes nothing.
    Read,
    /// Changes data.
    Write,
    /// Runs code, or is not classified.
    Execute,
}

impl RiskClass {
    /// Returns `read`, `write` or `execute`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
        }
    }
}

/// The effects that running a tool can have.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Risk, RiskClass};
///
/// let delete = Risk::new(RiskClass::Write).destructive().idempotent();
/// assert!(!delete.is_read_only());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// The class.
    pub class: RiskClass,
    /// May destroy data irreversibly.
    #[serde(default, skip_serializing_if = "is_false")]
    pub destructive: bool,
    /// A repeated identical call has no further effect.
    #[serde(default, skip_serializing_if = "is_false")]
    pub idempotent: bool,
    /// Reaches things outside the host's control, such as the web.
    #[serde(default, skip_serializing_if = "is_false")]
    pub open_world: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Risk {
    /// Creates a risk of `class` without further flags.
    #[must_use]
    pub const fn new(class: RiskClass) -> Self {
        Self { class, destructive: false, idempotent: false, open_world: false }
    }

    /// Marks the tool as destructive.
    #[must_use]
    pub const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Marks the tool as idempotent: a repeated identical call has no further effect.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Marks the tool as reaching systems outside of the host's control.
    #[must_use]
    pub const fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// Returns whether the tool only reads.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        matches!(self.class, RiskClass::Read)
    }
}

/// The default is [`RiskClass::Execute`]: an unclassified tool may do anything.
impl Default for Risk {
    fn default() -> Self {
        Self::new(RiskClass::Execute)
    }
}
