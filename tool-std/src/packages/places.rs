//! The folders of a session in which skills and plugins lie.

use std::path::{Path, PathBuf};

use tool_sdk::{PluginManager, ProgramFolders, Session, TrustedFolders, Workspace};

/// The roots of the workspace, and the folders of the user and of the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackagePlaces {
    /// The roots of the workspace.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) folders: ProgramFolders,
    /// The folders with skills of loaded plugins.
    pub(crate) plugin_skills: Vec<PathBuf>,
}

impl PackagePlaces {
    /// Returns the places of a session.
    pub(crate) fn for_session(session: &Session) -> Self {
        let workspace = session.service::<Workspace>();
        let roots = workspace.iter().flat_map(|workspace| workspace.roots());
        let plugins = session.service::<PluginManager>();
        let loaded = plugins.map(|plugins| plugins.loaded()).unwrap_or_default();
        Self {
            plugin_skills: loaded.iter().flat_map(|it| it.skill_folders().to_owned()).collect(),
            roots: roots.map(Path::to_owned).collect(),
            folders: ProgramFolders::from_session(session),
        }
    }

    /// Whether the user trusts the folder. What cannot be read is no trust.
    pub(crate) fn is_trusted(&self, root: &Path) -> bool {
        self.check_trust(root).unwrap_or(false)
    }

    /// Whether the user trusts the folder.
    ///
    /// # Errors
    ///
    /// Fails with the reason when that cannot be read.
    pub(crate) fn check_trust(&self, root: &Path) -> Result<bool, String> {
        let Some(state) = &self.folders.state else { return Ok(false) };
        let trusted = TrustedFolders::open(state).with_writable_roots(&self.roots);
        trusted.is_trusted(root).map_err(|error| error.to_string())
    }
}
