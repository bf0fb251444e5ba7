//! Modes: the default behaviour when no rule matches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Action;
use crate::risk::RiskClass;

/// How much a session does without an approval.
///
/// # Examples
///
/// ```
/// use tool_sdk::Mode;
///
/// assert_eq!("plan".parse(), Ok(Mode::Plan));
/// assert!("careless".parse::<Mode>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum Mode {
    /// Reading is allowed; everything else needs an approval.
    #[default]
    Auto,
    /// Everything needs an approval.
    Strict,
    /// Only reading is allowed: the model plans work and does not do it yet.
    Plan,
    /// Only reading is allowed: the model explores.
    Explore,
    /// Nothing needs an approval. Denials still hold, and so does a hook that asks for an approval.
    Bypass,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Strict, Self::Plan, Self::Explore, Self::Bypass];

    /// Returns `auto`, `strict`, `plan`, `explore` or `bypass`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Strict => "strict",
            Self::Plan => "plan",
            Self::Explore => "explore",
            Self::Bypass => "bypass",
        }
    }

    /// Returns the action for a resource of this class when no rule matches.
    pub(crate) const fn default_action(self, class: RiskClass) -> Action {
        match (self, class) {
            (Self::Bypass, _) | (Self::Auto | Self::Plan | Self::Explore, RiskClass::Read) => {
                Action::Allow
            }
            (Self::Auto | Self::Strict | Self::Plan | Self::Explore, _) => Action::Ask,
        }
    }

    /// Returns the stricter of two modes.
    pub(crate) const fn stricter(self, other: Self) -> Self {
        if other.strictness() > self.strictness() { other } else { self }
    }

    const fn strictness(self) -> u8 {
        match self {
            Self::Bypass => 0,
            Self::Auto => 1,
            Self::Strict => 2,
            Self::Plan | Self::Explore => 3,
        }
    }

    /// Whether the mode only lets tools read: `plan` or `explore`.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Plan | Self::Explore)
    }

    /// Whether the mode forbids this class, even when a rule allows it.
    #[must_use]
    pub const fn forbids(self, class: RiskClass) -> bool {
        self.is_read_only() && !matches!(class, RiskClass::Read)
    }
}

/// Several modes that hold at once; the strictest decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeSet([Mode; 2]);

impl ModeSet {
    pub(crate) fn new(one: Mode, other: Option<Mode>) -> Self {
        Self([one, other.unwrap_or(one)])
    }

    /// Returns the mode that decides about this class when nothing else does.
    pub(crate) fn strictest_for(self, class: RiskClass) -> Mode {
        let [one, other] = self.0;
        let strictness = |mode: Mode| (mode.forbids(class), mode.default_action(class));
        if strictness(other) > strictness(one) { other } else { one }
    }

    pub(crate) fn contains(self, mode: Mode) -> bool {
        self.0.contains(&mode)
    }

    /// Whether none of the modes asks for an approval.
    pub(crate) fn is_bypass(self) -> bool {
        self.0 == [Mode::Bypass; 2]
    }
}

impl From<Mode> for ModeSet {
    fn from(mode: Mode) -> Self {
        Self::new(mode, None)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = InvalidMode;

    fn from_str(text: &str) -> Result<Self, InvalidMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| InvalidMode(text.to_owned()))
    }
}

/// A text that is not a mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode: auto, strict, plan, explore and bypass are")]
pub struct InvalidMode(String);
