//! A folder as a handle, and what is in it: for tools that go through a whole tree.
//!
//! Each thing is opened relative to the handle of the folder that holds it, so that a walk
//! stays inside whatever is moved or swapped meanwhile, and never resolves a long path.
//!
//! **Invariant:** nothing here knows a path, only handles and names.

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

use self::handle::{Handle, Holder};
use super::{FileKind, Located};
use crate::error::ToolError;

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
pub struct Folder(Handle);

/// One thing in a [`Folder`], which stays open as long as this is kept.
pub struct FolderEntry {
    name: OsString,
    kind: FileKind,
    holder: Holder,
}

impl Located {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when nothing is there, with `failed` when it is no folder, and
    /// with `denied` when it may not be read or a link leads out of the workspace.
    pub fn open_folder(&self) -> Result<Folder, ToolError> {
        // What was removed can be opened all the same, and is empty.
        if self.root().is_gone() {
            return Err(self.gone());
        }
        let one_device = self.workspace.0.one_device;
        let opened = self.open_dir().and_then(|dir| Handle::of(dir, one_device));
        opened.map(Folder).map_err(|error| self.no_folder(error))
    }
}

impl Folder {
    /// What is in the folder, in no particular order.
    ///
    /// # Errors
    ///
    /// Fails when the system does not let the folder be read.
    pub fn entries(self) -> io::Result<Vec<FolderEntry>> {
        self.0.entries()
    }
}

impl FolderEntry {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// What it is; a link is not followed for the answer.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// When it was last written; a link is not followed for the answer.
    #[must_use]
    pub fn modified(&self) -> Option<SystemTime> {
        self.holder.modified(&self.name)
    }

    /// Opens it as a regular file for reading, with the facts about what was opened.
    ///
    /// # Errors
    ///
    /// Fails when it is no regular file any more, and when it may not be read.
    pub fn open_file(&self) -> io::Result<(File, Metadata)> {
        let file = self.holder.open_file(&self.name)?;
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok((file, metadata)),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Opens it as a folder.
    ///
    /// # Errors
    ///
    /// Fails when it is no folder, and when it may not be read; with
    /// [`CrossesDevices`](io::ErrorKind::CrossesDevices) when it is on another device than where
    /// the walk began, and the workspace [stays on one](super::Workspace::one_device).
    pub fn open_folder(&self) -> io::Result<Folder> {
        self.holder.open_folder(&self.name).map(Folder)
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder").finish_non_exhaustive()
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
