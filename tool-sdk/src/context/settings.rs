//! What a person sets for tools beside rules: read by the tools that it concerns.
//!
//! **Invariant:** nothing here allows a call; that is what rules and modes are for.

use super::Session;

/// What a person has set for tools.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Session, Settings};
///
/// let mut settings = Settings::default();
/// assert!(settings.safe_commands);
///
/// settings.safe_commands = false;
/// let session = Session::new("s1").lend(settings);
/// assert_eq!(Settings::of(&session), settings);
/// assert_eq!(Settings::of(&Session::new("s2")), Settings::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Whether a command that is known to do nothing but read may count as reading, so
    /// that nobody is asked about it.
    pub safe_commands: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { safe_commands: true }
    }
}

impl Settings {
    /// What was lent to `session`, or the defaults.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        session.lent().get().map_or_else(Self::default, |settings| *settings)
    }
}
