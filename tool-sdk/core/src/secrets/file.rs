//! The file with the variables of a project: JSON, readable by its owner only.
//!
//! Every change replaces the file while a lock file keeps other processes out.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{SecretValue, StoredSecret};
use crate::error::ToolError;
use crate::private_file::location::{self, PrivateFolder};
use crate::private_file::{self, LOCK_TIMEOUT, PrivateFileError};
use crate::sha256::sha256_hex;

/// How large the file may be.
const MAX_BYTES: u64 = 1 << 20;

/// The variables of one project.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::{SecretFile, SecretStore};
///
/// let file = SecretFile::open("/home/ada/.local/state/agent/secrets", "/home/ada/project");
/// let store = SecretStore::default().with_file(file);
/// ```
#[derive(Debug)]
pub struct SecretFile {
    folder: PathBuf,
    writable_roots: Vec<PathBuf>,
    name: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileContent {
    version: u32,
    variables: BTreeMap<String, FileEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    value: String,
    is_secret: bool,
}

impl SecretFile {
    /// Names the file of `project` in `folder`. Neither needs to exist; the folder is created with
    /// mode `0700` and the file with mode `0600` when a variable is set.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, project: impl AsRef<Path>) -> Self {
        let project = project.as_ref();
        let real = project.canonicalize();
        let real = real.as_deref().unwrap_or(project).as_os_str().as_encoded_bytes();
        let name = format!("{:.32}.json", sha256_hex(real));
        Self { folder: folder.into(), writable_roots: Vec::new(), name }
    }

    /// Names the folders that tools may write to. A file inside of one is refused.
    #[must_use]
    pub fn with_writable_roots(mut self, roots: &[PathBuf]) -> Self {
        self.writable_roots.extend_from_slice(roots);
        self
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    pub(super) fn describe(&self) -> String {
        format!("the file {}", self.path().display())
    }

    /// Returns the names of the variables, and whether each is a secret.
    ///
    /// # Errors
    ///
    /// Fails with kind `config` when the file cannot be read or is not private.
    pub async fn list(&self) -> Result<Vec<(String, bool)>, ToolError> {
        let content = self.load().await?;
        Ok(content.variables.into_iter().map(|(name, entry)| (name, entry.is_secret)).collect())
    }

    /// Removes a variable; returns whether it was set.
    ///
    /// # Errors
    ///
    /// Fails with kind `config` when the file cannot be written.
    pub async fn remove(&self, name: &str) -> Result<bool, ToolError> {
        self.set(name, None).await
    }

    pub(super) async fn find(&self, name: &str) -> Result<Option<StoredSecret>, ToolError> {
        let FileEntry { value, is_secret } = match self.load().await?.variables.remove(name) {
            Some(entry) => entry,
            None => return Ok(None),
        };
        let origin = self.describe();
        Ok(Some(StoredSecret { value: SecretValue::new(value), is_secret, origin }))
    }

    /// Sets or removes a variable; returns whether it was set before.
    pub(super) async fn set(
        &self,
        name: &str,
        stored: Option<StoredSecret>,
    ) -> Result<bool, ToolError> {
        let (place, file, name) = (self.place(), self.name.clone(), name.to_owned());
        let change = move || {
            let folder = place.create_folder()?;
            let path = folder.join(file);
            let _lock = private_file::acquire_lock(&path.with_extension("lock"), LOCK_TIMEOUT)?;
            private_file::remove_unfinished(&path);
            let mut content = read_content(&path)?;
            let before = match stored {
                Some(StoredSecret { value, is_secret, .. }) => {
                    content.variables.insert(name, FileEntry { value: value.0, is_secret })
                }
                None => content.variables.remove(&name),
            };
            content.version = 1;
            let text = serde_json::to_vec_pretty(&content).map_err(std::io::Error::other);
            let text = text.map_err(PrivateFileError::io("write", &path))?;
            private_file::replace_file(&path, |file| file.write_all(&text))
                .map_err(PrivateFileError::io("write", &path))?;
            Ok(before.is_some())
        };
        run_blocking(change).await
    }

    async fn load(&self) -> Result<FileContent, ToolError> {
        let (place, file) = (self.place(), self.name.clone());
        run_blocking(move || match place.find_folder()? {
            Some(folder) => read_content(&folder.join(file)),
            None => Ok(FileContent::default()),
        })
        .await
    }

    fn place(&self) -> PrivateFolder {
        let mut place = PrivateFolder::new(self.folder.clone());
        place.add_writable_roots(&self.writable_roots);
        place
    }
}

fn read_content(path: &Path) -> Result<FileContent, PrivateFileError> {
    let Some(file) = location::open_private(path)? else { return Ok(FileContent::default()) };
    let metadata = file.metadata().map_err(PrivateFileError::io("look at", path))?;
    if is_readable_by_others(&metadata) {
        return Err(PrivateFileError::untrusted(path, "others may read it"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(PrivateFileError::io("read", path))?;
    // The error of the parser would quote a value.
    serde_json::from_str(&text)
        .map_err(|_| PrivateFileError::untrusted(path, "it is not a file of variables"))
}

#[cfg(unix)]
fn is_readable_by_others(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &Metadata) -> bool {
    false
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PrivateFileError> + Send + 'static,
) -> Result<T, ToolError> {
    let failed = |error: &dyn std::fmt::Display| {
        ToolError::config(format_args!("the variables of the project: {error}"))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| failed(&error)),
        Err(_) => Err(failed(&"the thread ended")),
    }
}
