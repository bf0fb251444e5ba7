//! What running a tool can do to the world: one truth for rules, hints and concurrency.

use serde::{Deserialize, Serialize};

/// The class of risk; exactly one per tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a new class would change what every rule means")]
pub enum RiskClass {
    /// Looks, and changes nothing.
    Read,
    /// Changes data.
    Write,
    /// Runs code, or anything that was not classified.
    Execute,
}

impl RiskClass {
    /// `read`, `write` or `execute`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
        }
    }
}

/// What running a tool can do.
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
    /// May destroy something that cannot be brought back.
    #[serde(default, skip_serializing_if = "is_false")]
    pub destructive: bool,
    /// A second identical call changes nothing more.
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
    /// A risk of `class` and nothing more.
    #[must_use]
    pub const fn new(class: RiskClass) -> Self {
        Self { class, destructive: false, idempotent: false, open_world: false }
    }

    /// Marks the tool as one that may destroy something.
    #[must_use]
    pub const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Marks the tool as one whose repetition changes nothing more.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Marks the tool as one that reaches outside the host's control.
    #[must_use]
    pub const fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// Whether the tool only looks.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        matches!(self.class, RiskClass::Read)
    }
}

/// An unclassified tool may do anything.
impl Default for Risk {
    fn default() -> Self {
        Self::new(RiskClass::Execute)
    }
}
