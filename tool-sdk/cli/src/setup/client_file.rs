//! A client's configuration file, locked for one edit.
//!
//! **Invariant:** the old text is on the disk, under its own name or that of its copy, at any time.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tool_sdk_core::{
    ToolError,
    internal::private_file::{self, FileLock, LOCK_TIMEOUT},
};

use crate::exit::{CommandError, FAILED, Result, with_cause};
use crate::mcp::config_edit::{file_error, replace_file, resolve_links};

/// How many copies of a file are kept.
const MAX_COPIES: usize = 1000;

/// A locked file and its text.
pub(crate) struct ClientFile {
    path: PathBuf,
    /// The text; `None` if there is no file.
    text: Option<String>,
    _lock: Option<FileLock>,
}

impl ClientFile {
    /// Creates the folder of the file, waits for the lock, and reads the file if there is one.
    pub(crate) fn lock(path: &Path) -> Result<Self> {
        let path = resolve_links(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| file_error("write", &path, error))?;
        }
        let lock = private_file::lock_parent_folder(&path, LOCK_TIMEOUT).map_err(|error| {
            CommandError::new(FAILED, ToolError::unavailable(with_cause(&error)))
        })?;
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|error| file_error("read", &path, error))?),
        };
        Ok(Self { path, text, _lock: lock })
    }

    /// Returns the text; a missing file is empty.
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Copies the old file, replaces it atomically, and returns the path of the copy.
    pub(crate) fn replace_text(&self, text: &str) -> Result<Option<PathBuf>> {
        let copy = self.text.as_deref().map(|old| self.write_copy(old)).transpose();
        let copy = copy.map_err(|error| file_error("copy", &self.path, error))?;
        replace_file(&self.path, text).map_err(|error| file_error("write", &self.path, error))?;
        Ok(copy)
    }

    /// Writes the old text under the first free name, such as `mcp.json.bak`.
    fn write_copy(&self, old: &str) -> io::Result<PathBuf> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        for nth in 0..MAX_COPIES {
            let end = if nth == 0 { String::new() } else { format!("-{nth}") };
            let copy = self.path.with_file_name(format!("{name}.bak{end}"));
            match create_private(&copy) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(mut file) => {
                    file.write_all(old.as_bytes())?;
                    file.set_permissions(fs::metadata(&self.path)?.permissions())?;
                    file.sync_all()?;
                    return Ok(copy);
                }
            }
        }
        Err(io::Error::other(format!("there are {MAX_COPIES} copies already; delete some")))
    }
}

/// Creates a file that did not exist and that only the user can read.
fn create_private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
