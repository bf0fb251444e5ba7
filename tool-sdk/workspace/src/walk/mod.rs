//! Open folders and their entries, for tools that walk a directory tree.
//!
//! Each entry is opened relative to the handle of its parent folder. So a walk stays inside the
//! workspace even when folders are moved or replaced meanwhile, and never resolves a long path.
//!
//! **Invariant:** this module knows handles and names, no paths.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod handle;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "portable.rs"]
mod handle;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::time::SystemTime;

use self::handle::{FolderHandle, ParentFolder};
use super::{FileKind, ResolvedPath};
use crate::error::WorkspaceError;

/// An open folder of a [`Workspace`](super::Workspace).
///
/// # Examples
///
/// ```
/// use tool_sdk::Workspace;
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let workspace = Workspace::open([folder.path()])?;
/// for entry in workspace.resolve(".")?.open_folder()?.entries()? {
///     assert_eq!(entry.name(), "notes.txt");
///     let (_file, metadata) = entry.open_file()?;
///     assert_eq!(metadata.len(), 5);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OpenFolder(FolderHandle);

/// An entry of an [`OpenFolder`]. The folder stays open as long as one of its entries exists.
pub struct FolderEntry {
    name: OsString,
    kind: FileKind,
    parent: ParentFolder,
}

impl ResolvedPath {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when it does not exist, with `failed` when it is not a folder, and
    /// with `denied` when it may not be read or a link leads outside of the workspace.
    pub fn open_folder(&self) -> Result<OpenFolder, WorkspaceError> {
        // The handle of a removed folder still opens, and reads as empty.
        if self.root().is_removed() {
            return Err(self.root_removed_error());
        }
        let one_device = self.workspace.0.same_file_system;
        let opened = self.open_dir().and_then(|dir| FolderHandle::from_dir(dir, one_device));
        opened.map(OpenFolder).map_err(|error| self.open_folder_error(error))
    }
}

impl ResolvedPath {
    /// Opens a folder as a handle, for a child process that enters it.
    ///
    /// # Errors
    ///
    /// Fails like [`open_folder`](Self::open_folder), except that the folder need not be readable.
    #[doc(hidden)]
    pub fn open_dir_handle(&self) -> Result<File, WorkspaceError> {
        if self.root().is_removed() {
            return Err(self.root_removed_error());
        }
        let opened = self.open_dir().map_err(|error| self.open_folder_error(error))?;
        Ok(opened.into_std_file())
    }
}

impl OpenFolder {
    /// Reads the entries of the folder, in no particular order.
    ///
    /// # Errors
    ///
    /// Fails when the folder cannot be read.
    pub fn entries(self) -> io::Result<Vec<FolderEntry>> {
        self.0.entries()
    }
}

impl FolderEntry {
    /// Returns the file name.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the type of the entry. Symbolic links are not followed.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Returns the time of the last modification. Symbolic links are not followed.
    #[must_use]
    pub fn modified(&self) -> Option<SystemTime> {
        self.parent.modified(&self.name)
    }

    /// Opens the entry as a regular file for reading, and returns the metadata of the open file.
    ///
    /// # Errors
    ///
    /// Fails when it is not a regular file any more, and when it may not be read.
    pub fn open_file(&self) -> io::Result<(File, Metadata)> {
        let file = self.parent.open_file(&self.name)?;
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok((file, metadata)),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Opens the entry as a folder.
    ///
    /// # Errors
    ///
    /// Fails when it is not a folder, and when it may not be read. Fails with
    /// [`CrossesDevices`](io::ErrorKind::CrossesDevices) when it is on another file system than
    /// the start of the walk, and the workspace stays on the
    /// [same file system](super::Workspace::same_file_system).
    pub fn open_folder(&self) -> io::Result<OpenFolder> {
        self.parent.open_folder(&self.name).map(OpenFolder)
    }
}

impl fmt::Debug for OpenFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFolder").finish_non_exhaustive()
    }
}

impl fmt::Debug for FolderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderEntry")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
