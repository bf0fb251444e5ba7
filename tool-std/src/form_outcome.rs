//! How a form that a tool showed to the user ended, in the results of tools that ask.

use schemars::JsonSchema;
use serde::Serialize;

/// How a form ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[non_exhaustive]
pub enum FormOutcome {
    /// The user filled it in.
    Answered,
    /// The user does not want to.
    Declined,
    /// The user closed it.
    Cancelled,
    /// The user was not there in time.
    TimedOut,
}

impl FormOutcome {
    /// Returns the outcome as results show it, such as `timed_out`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }
}
