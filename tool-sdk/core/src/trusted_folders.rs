//! The folders that the user trusts: what a project brings for models, such as agents and
//! skills, counts only in a trusted folder.
//!
//! The file `trusted-folders.json` in the state folder names each folder by its path and its
//! identity, so another checkout that is put in its place is not trusted.
//!
//! **Invariant:** a folder whose trust cannot be read is not trusted, and tools cannot write the
//! file.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::permission::{FolderIdentity, WorkspaceIdentity};
use crate::private_file::location::{PrivateFolder, open_private};
use crate::private_file::{self, LOCK_TIMEOUT, PrivateFileError};
use crate::rfc3339::rfc3339;

const FILE_NAME: &str = "trusted-folders.json";

/// The limit of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The folders that the user trusts, in one file of the state folder.
///
/// What a project brings for models, such as agents and skills, is read only in a trusted
/// folder: a user who clones a repository has not read its files. Trust holds for this folder, not for those
/// below it, and ends when the folder is replaced by another one. It never allows a call: rules,
/// modes and approvals decide about calls in a trusted folder, too.
///
/// All methods read or write files and may block.
///
/// # Examples
///
/// ```
/// use tool_sdk::TrustedFolders;
///
/// # let state = tempfile::tempdir()?;
/// # let project = tempfile::tempdir()?;
/// # let (state, project) = (state.path().join("state"), project.path());
/// let trusted = TrustedFolders::open(state);
/// assert!(!trusted.is_trusted(project)?);
/// trusted.trust(project)?;
/// assert!(trusted.is_trusted(project)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TrustedFolders {
    state_folder: PrivateFolder,
}

/// A folder that the user trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TrustedFolder {
    /// The path, without links.
    pub path: PathBuf,
    /// When the user trusted it, in seconds since 1970.
    pub since: u64,
    identity: FolderIdentity,
}

impl TrustedFolder {
    /// Returns when the user trusted it, as RFC 3339.
    #[must_use]
    pub fn since_text(&self) -> String {
        rfc3339(UNIX_EPOCH + std::time::Duration::from_secs(self.since))
    }

    /// Whether the folder is still there, and not another one in its place.
    #[must_use]
    pub fn is_current(&self) -> bool {
        WorkspaceIdentity::from_path(&self.path).is_some_and(|there| self.is_folder(&there))
    }

    fn is_folder(&self, there: &WorkspaceIdentity) -> bool {
        self.path == there.path && self.identity == there.folder
    }
}

impl TrustedFolders {
    /// Names the state folder. It is created with mode `0700` when a folder is trusted.
    #[must_use]
    pub fn open(state_folder: impl Into<PathBuf>) -> Self {
        Self { state_folder: PrivateFolder::new(state_folder.into()) }
    }

    /// Names folders that tools may write to. A state folder inside of one is refused.
    #[must_use]
    pub fn with_writable_roots(mut self, roots: &[PathBuf]) -> Self {
        self.state_folder.add_writable_roots(roots);
        self
    }

    /// Whether the user trusts exactly this folder.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or another user could have written it. Treat that as not
    /// trusted.
    pub fn is_trusted(&self, folder: &Path) -> Result<bool, PrivateFileError> {
        let Some(there) = WorkspaceIdentity::from_path(folder) else { return Ok(false) };
        Ok(self.list()?.iter().any(|trusted| trusted.is_folder(&there)))
    }

    /// Trusts the folder; returns whether that is new.
    ///
    /// # Errors
    ///
    /// Fails if there is no such folder, or if the file cannot be written.
    pub fn trust(&self, folder: &Path) -> Result<bool, PrivateFileError> {
        let Some(there) = WorkspaceIdentity::from_path(folder).filter(|it| it.path.is_dir()) else {
            let missing = std::io::Error::from(std::io::ErrorKind::NotADirectory);
            return Err(PrivateFileError::io("trust", folder)(missing));
        };
        let since = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        self.change(|folders| {
            let is_new = !folders.iter().any(|trusted| trusted.is_folder(&there));
            if is_new {
                folders.retain(|trusted| trusted.path != there.path);
                folders.push(TrustedFolder { path: there.path, since, identity: there.folder });
            }
            is_new
        })
    }

    /// Trusts the folder no more; returns whether it was trusted.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn revoke(&self, folder: &Path) -> Result<bool, PrivateFileError> {
        let real = folder.canonicalize();
        let path = real.as_deref().unwrap_or(folder);
        self.change(|folders| {
            let before = folders.len();
            folders.retain(|trusted| trusted.path != path);
            folders.len() < before
        })
    }

    /// Returns the trusted folders, the oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or another user could have written it.
    pub fn list(&self) -> Result<Vec<TrustedFolder>, PrivateFileError> {
        match self.state_folder.find_folder()? {
            Some(folder) => read_folders(&folder.join(FILE_NAME)),
            None => Ok(Vec::new()),
        }
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<TrustedFolder>) -> bool,
    ) -> Result<bool, PrivateFileError> {
        let path = self.state_folder.create_folder()?.join(FILE_NAME);
        let _lock = private_file::acquire_lock(&path.with_extension("lock"), LOCK_TIMEOUT)?;
        private_file::remove_unfinished(&path);
        let mut folders = read_folders(&path)?;
        let is_changed = change(&mut folders);
        if is_changed {
            let text = serde_json::to_vec_pretty(&folders).map_err(std::io::Error::other);
            let text = text.map_err(PrivateFileError::io("write", &path))?;
            private_file::replace_file(&path, |file| file.write_all(&text))
                .map_err(PrivateFileError::io("write", &path))?;
        }
        Ok(is_changed)
    }
}

fn read_folders(path: &Path) -> Result<Vec<TrustedFolder>, PrivateFileError> {
    let Some(file) = open_private(path)? else { return Ok(Vec::new()) };
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(PrivateFileError::io("read", path))?;
    serde_json::from_str(&text)
        .map_err(|error| PrivateFileError::io("read", path)(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // Trust holds for one folder, and ends with it.
    #[test]
    fn trust_is_bound_to_the_folder() {
        let temp = tempfile::tempdir().unwrap();
        let (state, project) = (temp.path().join("state"), temp.path().join("project"));
        let nested = project.join("nested");
        fs::create_dir_all(&nested).unwrap();
        let trusted = TrustedFolders::open(&state);
        assert!(trusted.trust(&project).unwrap());
        assert!(!trusted.trust(&project).unwrap(), "not new");
        assert!(trusted.is_trusted(&project).unwrap());
        assert!(!trusted.is_trusted(&nested).unwrap());
        assert!(!trusted.is_trusted(temp.path()).unwrap());

        fs::rename(&project, temp.path().join("moved")).unwrap();
        assert!(!trusted.is_trusted(&project).unwrap());
        fs::create_dir(&project).unwrap();
        assert!(!trusted.is_trusted(&project).unwrap(), "another folder in its place");
        assert!(!trusted.list().unwrap()[0].is_current());
        assert!(trusted.trust(&project).unwrap());
        assert_eq!(trusted.list().unwrap().len(), 1);
        assert!(trusted.revoke(&project).unwrap());
        assert!(!trusted.revoke(&project).unwrap());
        assert!(!trusted.is_trusted(&project).unwrap());
    }

    #[test]
    fn bad_files_and_folders_are_errors() {
        let temp = tempfile::tempdir().unwrap();
        let (state, project) = (temp.path().join("state"), temp.path().join("project"));
        fs::create_dir(&project).unwrap();
        let trusted = TrustedFolders::open(&state);
        assert!(trusted.trust(&temp.path().join("missing")).is_err());
        trusted.trust(&project).unwrap();
        fs::write(state.join(FILE_NAME), "[{").unwrap();
        assert!(trusted.is_trusted(&project).is_err());
        assert!(trusted.trust(temp.path()).is_err(), "the file is kept");
        assert_eq!(fs::read_to_string(state.join(FILE_NAME)).unwrap(), "[{");

        let inside = TrustedFolders::open(project.join("state"))
            .with_writable_roots(std::slice::from_ref(&project));
        assert!(inside.trust(&project).unwrap_err().to_string().contains("tools may write"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_others_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let temp = tempfile::tempdir().unwrap();
        let (state, project) = (temp.path().join("state"), temp.path().join("project"));
        fs::create_dir(&project).unwrap();
        let trusted = TrustedFolders::open(&state);
        trusted.trust(&project).unwrap();
        let shared = fs::Permissions::from_mode(0o666);
        fs::set_permissions(state.join(FILE_NAME), shared).unwrap();
        assert!(trusted.is_trusted(&project).is_err());
    }
}
