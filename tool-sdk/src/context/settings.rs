//! What a person sets for tools beside rules: read by the tools that it concerns.
//!
//! **Invariant:** nothing here allows a call; that is what rules and modes are for.

use super::Session;

/// What a person has set for tools.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Session, ToolSettings};
///
/// let mut settings = ToolSettings::default();
/// assert!(settings.safe_commands);
///
/// settings.safe_commands = false;
/// let session = Session::new("s1").with_service(settings);
/// assert_eq!(ToolSettings::from_session(&session), settings);
/// assert_eq!(ToolSettings::from_session(&Session::new("s2")), ToolSettings::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSettings {
    /// Whether a command that is known to do nothing but read may count as reading, so
    /// that nobody is asked about it.
    pub safe_commands: bool,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self { safe_commands: true }
    }
}

impl ToolSettings {
    /// What was lent to `session`, or the defaults.
    #[must_use]
    pub fn from_session(session: &Session) -> Self {
        session.services().get().map_or_else(Self::default, |settings| *settings)
    }
}
