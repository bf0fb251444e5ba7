//! Settings of the user for tools, beside the permission rules.
//!
//! **Invariant:** no setting allows a call; rules and modes do that.

use std::path::PathBuf;

use super::Session;

/// The user's settings for tools.
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
    /// Whether a process may run on after the call that started it; `true` by default, and always `false`
    /// for an [ephemeral session](Session::with_ephemeral_state). Set it to `false` for a program that
    /// ends after its calls: a command then runs until it exits or the time of its call is up, so that no
    /// result speaks of a process that ends with the program.
    pub background_processes: bool,
    /// How many bytes of the output of a command are held between two reads, half of them from the
    /// start; 1 MiB by default.
    pub capture_bytes: usize,
    /// Whether commands that are known to be read-only count as reading, so that they run without
    /// a prompt.
    pub safe_commands: bool,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self { background_processes: true, capture_bytes: 1 << 20, safe_commands: true }
    }
}

impl ToolSettings {
    /// Returns the settings of `session`, or the defaults.
    #[must_use]
    pub fn from_session(session: &Session) -> Self {
        let mut settings = session.services().get::<Self>().map_or_else(Self::default, |it| *it);
        settings.background_processes &= !session.is_ephemeral();
        settings
    }
}

/// The folders of the program and of its user, for tools that keep files there, as a service of the
/// session.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ProgramFolders, Session};
///
/// let mut folders = ProgramFolders::default();
/// folders.state = Some("/home/ada/.local/state/tools".into());
/// let session = Session::new("s1").with_service(folders);
/// assert!(ProgramFolders::from_session(&session).state.is_some());
/// assert!(ProgramFolders::from_session(&session).home.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramFolders {
    /// Where the program keeps its state; tools of the model cannot write there.
    pub state: Option<PathBuf>,
    /// The home folder of the user.
    pub home: Option<PathBuf>,
    /// Where the user keeps the configuration of the program.
    pub config: Option<PathBuf>,
}

impl ProgramFolders {
    /// Returns the folders of `session`; none if the host named none.
    #[must_use]
    pub fn from_session(session: &Session) -> Self {
        session.services().get().map_or_else(Self::default, |folders| Self::clone(&folders))
    }
}
