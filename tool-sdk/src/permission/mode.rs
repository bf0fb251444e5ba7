//! How much is done without asking: what holds where no rule speaks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Action;
use crate::risk::RiskClass;

/// How much is done without asking.
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
#[non_exhaustive]
pub enum Mode {
    /// Reading is allowed, everything else asks.
    #[default]
    Auto,
    /// Everything asks.
    Strict,
    /// Only what reads is allowed: work is planned and not yet done.
    Plan,
    /// Only what reads is allowed: the agent looks around.
    Explore,
    /// Nothing asks. Denials still hold, and so does a hook that wants somebody asked.
    Bypass,
}

impl Mode {
    /// Every mode, by its name.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Strict, Self::Plan, Self::Explore, Self::Bypass];

    /// `auto`, `strict`, `plan`, `explore` or `bypass`.
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

    /// What holds for something of this class of which no rule speaks.
    pub(crate) const fn default_action(self, class: RiskClass) -> Action {
        match (self, class) {
            (Self::Bypass, _) | (Self::Auto | Self::Plan | Self::Explore, RiskClass::Read) => {
                Action::Allow
            }
            (Self::Auto | Self::Strict | Self::Plan | Self::Explore, _) => Action::Ask,
        }
    }

    /// The one of two modes that does less without asking.
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

    /// Whether the mode forbids what is of this class, whatever a rule allows.
    #[must_use]
    pub const fn forbids(self, class: RiskClass) -> bool {
        matches!(self, Self::Plan | Self::Explore) && !matches!(class, RiskClass::Read)
    }
}

/// Modes that hold at once: nothing is done that one of them asks about or forbids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeSet([Mode; 2]);

impl ModeSet {
    pub(crate) fn new(one: Mode, other: Option<Mode>) -> Self {
        Self([one, other.unwrap_or(one)])
    }

    /// The one that says what becomes of what is of this class and of what nothing else speaks.
    pub(crate) fn strictest_for(self, class: RiskClass) -> Mode {
        let [one, other] = self.0;
        let strictness = |mode: Mode| (mode.forbids(class), mode.default_action(class));
        if strictness(other) > strictness(one) { other } else { one }
    }

    pub(crate) fn contains(self, mode: Mode) -> bool {
        self.0.contains(&mode)
    }

    /// Whether none of them asks anybody.
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

/// A text that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode: auto, strict, plan, explore and bypass are")]
pub struct InvalidMode(String);
