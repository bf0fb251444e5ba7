//! A path that was resolved in a workspace: metadata, opening, reading of folders, and the
//! errors that a model gets for them.
//!
//! **Invariant:** every access goes through the handle of the path's root. Behind a canonical
//! path no symbolic link is followed.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use cap_fs_ext::{DirExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};

use super::display_escape::escape_for_display;
use super::open::open_entry;
use super::openat2::is_link_free;
use super::protected::{is_at_or_below_any, is_protected};
use super::realpath::{canonicalize, canonicalize_existing};
use super::{Durability, Root, RootAccess, Workspace};
use crate::error::{WorkspaceError, WorkspaceErrorKind};

/// A path in a [`Workspace`]; the file need not exist.
///
/// # Examples
///
/// ```
/// use tool_sdk::{WorkspaceErrorKind, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::create_dir(folder.path().join("src"))?;
/// let workspace = Workspace::open([folder.path()])?;
/// let source = workspace.resolve("./src/")?;
///
/// assert_eq!(source.display(), "src");
/// assert_eq!(source.join("main.rs").display(), "src/main.rs");
/// assert_eq!(source.open_file().unwrap_err().kind(), WorkspaceErrorKind::Failed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ResolvedPath {
    pub(super) workspace: Workspace,
    pub(super) root: usize,
    pub(super) relative: PathBuf,
    /// Whether the path has no symbolic links, so that none is followed when it is opened.
    pub(super) is_canonical: bool,
}

/// The type of a file system entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link, also a dangling one.
    Symlink,
    /// A pipe, a socket or a device.
    Other,
}

impl FileKind {
    /// Returns whether this is a regular file.
    #[must_use]
    pub fn is_file(self) -> bool {
        self == Self::File
    }

    /// Returns whether this is a folder.
    #[must_use]
    pub fn is_dir(self) -> bool {
        self == Self::Directory
    }

    /// Returns whether this is a symbolic link.
    #[must_use]
    pub fn is_symlink(self) -> bool {
        self == Self::Symlink
    }
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// The file name.
    pub name: OsString,
    /// The type of the entry. Symbolic links are not followed.
    pub kind: FileKind,
}

/// Metadata of an existing file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileMetadata {
    /// The type. Symbolic links are followed.
    pub kind: FileKind,
    /// The size in bytes.
    pub len: u64,
    /// The time of the last modification, where the system has one.
    pub modified: Option<SystemTime>,
}

impl ResolvedPath {
    /// Returns the path for users and models: the [rule path](Self::rule_path),
    /// [escaped](escape_for_display) to fit on one line.
    #[must_use]
    pub fn display(&self) -> String {
        escape_for_display(&self.rule_path()).into_owned()
    }

    /// Returns the path that permission rules and programs use: relative to the first root,
    /// with `/` as separator.
    ///
    /// Outside of the first root it is the absolute path, so that it always resolves to the
    /// same file. A file below the first root has this one path, even when it was reached
    /// through another root or a search.
    #[must_use]
    pub fn rule_path(&self) -> String {
        if self.root == 0 {
            return join_with_slashes(self.path_below_root());
        }
        let absolute = self.absolute_path();
        match absolute.strip_prefix(&self.workspace.0.roots[0].canonical) {
            Ok(below) => join_with_slashes(or_current_dir(below)),
            Err(_) => absolute.display().to_string(),
        }
    }

    /// Returns the absolute path, for display or for other programs. This module never opens it.
    #[must_use]
    pub fn absolute_path(&self) -> PathBuf {
        // Joining an empty path would append a separator.
        match self.relative.as_os_str().is_empty() {
            true => self.root().canonical.clone(),
            false => self.root().canonical.join(&self.relative),
        }
    }

    /// Returns whether the path lies in a read-only folder.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.root().access == RootAccess::ReadOnly
    }

    /// Returns whether the path is outside of the workspace, so that the user is asked about it.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.root().access == RootAccess::Outside
    }

    /// Returns whether this is a protected file: one that another program executes or reads as
    /// its configuration, such as a git hook, a shell start-up file or the settings of an agent.
    /// It is recognized by name and need not exist. Paths that the host
    /// [protects](Workspace::protect) count too.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        let absolute = self.absolute_path();
        is_protected(&self.relative, &absolute)
            || is_at_or_below_any(&absolute, &self.workspace.0.protected)
    }

    /// Returns whether another path of the same workspace is equal to this one.
    #[doc(hidden)]
    pub fn is_same_path(&self, other: &Self) -> bool {
        self.root == other.root && self.relative.as_os_str() == other.relative.as_os_str()
    }

    /// Resolves the symbolic links of the path, as they are now (`realpath`).
    ///
    /// The result is opened without following links: when a component becomes a link later,
    /// opening fails. Components that do not exist yet are kept as they are.
    ///
    /// # Errors
    ///
    /// Fails with `denied` when a link leads outside of the workspace, and with `failed` when
    /// the path is a pipe or a device.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Workspace;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::create_dir(folder.path().join("src"))?;
    /// let workspace = Workspace::open([folder.path()])?;
    /// let new = workspace.resolve("src/../src/new/file.rs")?.canonicalize()?;
    /// assert_eq!(new.display(), "src/new/file.rs");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn canonicalize(&self) -> Result<Self, WorkspaceError> {
        if self.is_canonical {
            return Ok(self.clone());
        }
        let dir = &self.root().dir;
        if is_link_free(dir, self.path_below_root()) {
            return Ok(Self { is_canonical: true, ..self.clone() });
        }
        let there = dir
            .metadata(self.path_below_root())
            .map(|found| FileKind::from_file_type(found.file_type()));
        if matches!(there, Ok(FileKind::Other)) {
            // The portable fallback opens the file to find its name, and that would block on a
            // pipe.
            return Err(self.not_a_file_error("a pipe or a device"));
        }
        let real = canonicalize_existing(self.path_below_root(), |path| canonicalize(dir, path));
        let real = real.map_err(|error| self.io_error("open", error))?;
        let relative = real.components().filter(|part| *part != Component::CurDir).collect();
        Ok(Self { relative, is_canonical: true, ..self.clone() })
    }

    /// Like [`canonicalize`](Self::canonicalize), but consumes the path and avoids a clone.
    pub(super) fn into_canonical(self) -> Result<Self, WorkspaceError> {
        if self.is_canonical { Ok(self) } else { self.canonicalize() }
    }

    /// Returns the last component of the path, or `None` for a root.
    #[must_use]
    pub fn file_name(&self) -> Option<&OsStr> {
        self.relative.file_name()
    }

    /// Appends a relative path.
    ///
    /// A path that escapes the root is refused when it is opened. Below a
    /// [canonical](Self::canonicalize) path symbolic links are not followed.
    #[must_use]
    pub fn join(&self, below: impl AsRef<Path>) -> Self {
        Self { relative: self.relative.join(below), ..self.clone() }
    }

    /// Returns the parent folder. A root has none, and neither has a path outside of the
    /// workspace, because the user was asked about that path only.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.file_name().filter(|_| !self.is_outside())?;
        Some(Self { relative: self.relative.parent()?.to_owned(), ..self.clone() })
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when the file does not exist, with `denied` when it may not be
    /// read or a link leads outside of the workspace, and with `failed` when it is a folder, a
    /// pipe or a device.
    pub fn open_file(&self) -> Result<File, WorkspaceError> {
        self.open_regular().map(|(file, _)| file)
    }

    /// Opens a regular file for reading and returns its metadata.
    pub(super) fn open_regular(&self) -> Result<(File, Metadata), WorkspaceError> {
        let opened = if self.is_canonical {
            self.with_parent_dir(|dir| open_entry(dir, self.entry_name()))
        } else {
            let mut options = OpenOptions::new();
            // Do not block on a pipe without a writer.
            options.read(true).nonblock(true);
            self.root()
                .dir
                .open_with(self.path_below_root(), &options)
                .map(cap_std::fs::File::into_std)
        };
        let file = opened.map_err(|error| self.io_error("read", error))?;
        let metadata = file.metadata().map_err(|error| self.io_error("read", error))?;
        let kind = metadata.file_type();
        if kind.is_file() {
            return Ok((file, metadata));
        }
        let what = if kind.is_dir() { "a folder" } else { "a pipe or a device" };
        Err(self.not_a_file_error(what))
    }

    /// Returns the metadata of the file or folder.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when it does not exist, and with `denied` when a link leads
    /// outside of the workspace.
    pub fn metadata(&self) -> Result<FileMetadata, WorkspaceError> {
        let found = if self.is_canonical {
            self.with_parent_dir(|dir| dir.symlink_metadata(self.entry_name()))
        } else {
            self.root().dir.metadata(self.path_below_root())
        };
        let found = found.map_err(|error| self.io_error("read", error))?;
        Ok(FileMetadata {
            kind: FileKind::from_file_type(found.file_type()),
            len: found.len(),
            modified: found.modified().ok().map(cap_std::time::SystemTime::into_std),
        })
    }

    /// Returns whether the path itself is a symbolic link, also a dangling one.
    #[doc(hidden)]
    pub fn is_symlink(&self) -> bool {
        let found = self.root().dir.symlink_metadata(self.path_below_root());
        found.is_ok_and(|found| found.is_symlink())
    }

    /// Returns the entries of a folder, in no particular order.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when it does not exist, with `denied` when it may not be read
    /// or a link leads outside of the workspace, and with `failed` when it is not a folder. An
    /// entry is an error when the system cannot continue reading.
    pub fn read_dir(
        &self,
    ) -> Result<impl Iterator<Item = Result<DirEntry, WorkspaceError>> + use<>, WorkspaceError>
    {
        let entries = self.open_dir().and_then(|dir| dir.entries());
        let entries = entries.map_err(|error| self.open_folder_error(error))?;
        let folder = self.clone();
        Ok(entries.map(move |entry| {
            let entry = entry.map_err(|error| folder.io_error("read", error))?;
            let kind = entry.file_type().map_or(FileKind::Other, FileKind::from_file_type);
            Ok(DirEntry { name: entry.file_name(), kind })
        }))
    }

    /// Returns when changes of files in this workspace are flushed to disk.
    pub(super) fn durability(&self) -> Durability {
        self.workspace.0.durability
    }

    /// Returns the folder for journals.
    pub(super) fn journal(&self) -> Option<&Path> {
        self.workspace.0.journal.as_deref()
    }

    pub(super) fn root(&self) -> &Root {
        &self.workspace.0.roots[self.root]
    }

    /// Opens the path as a folder.
    pub(super) fn open_dir(&self) -> io::Result<Dir> {
        match self.is_canonical {
            true => self.with_parent_dir(|dir| dir.open_dir_nofollow(self.entry_name())),
            false => self.root().dir.open_dir(self.path_below_root()),
        }
    }

    /// Calls `act` with the parent folder of a canonical path, opened without following links.
    pub(super) fn with_parent_dir<T>(
        &self,
        act: impl FnOnce(&Dir) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut holder = None;
        for name in self.relative.parent().into_iter().flatten() {
            let above = holder.as_ref().unwrap_or(&self.root().dir);
            holder = Some(above.open_dir_nofollow(name)?);
        }
        act(holder.as_ref().unwrap_or(&self.root().dir))
    }

    /// Returns the name of the entry in its parent folder; `.` for a root.
    pub(super) fn entry_name(&self) -> &Path {
        self.file_name().map_or(Path::new("."), Path::new)
    }

    /// Returns the path relative to the root's handle; `.` for the root itself.
    pub(super) fn path_below_root(&self) -> &Path {
        or_current_dir(&self.relative)
    }

    /// The error for a path with a component that is not a folder.
    pub(super) fn parent_not_folder_error(&self, kind: WorkspaceErrorKind) -> WorkspaceError {
        let path = self.display();
        WorkspaceError::new(kind, format_args!("a part of the path to `{path}` is not a folder"))
    }

    pub(super) fn not_a_file_error(&self, what: &str) -> WorkspaceError {
        WorkspaceError::failed(format_args!("`{}` is {what}, not a file", self.display()))
    }

    /// The error for a path that could not be opened as a folder.
    pub(super) fn open_folder_error(&self, error: io::Error) -> WorkspaceError {
        let kind = match error.kind() {
            io::ErrorKind::NotADirectory => self.metadata().ok().map(|there| there.kind),
            _ => None,
        };
        match kind {
            None => self.io_error("open", error),
            Some(FileKind::Symlink) => self.unexpected_link_error().with_source(error),
            Some(_) => WorkspaceError::failed(format_args!("`{}` is not a folder", self.display()))
                .with_source(error),
        }
    }

    /// The error for a dangling symbolic link, or one that appeared after canonicalization.
    fn unexpected_link_error(&self) -> WorkspaceError {
        WorkspaceError::conflict(format_args!(
            "`{}` is a symbolic link that leads nowhere, or that was just made",
            self.display()
        ))
    }

    /// The error for a root that was removed.
    pub(super) fn root_removed_error(&self) -> WorkspaceError {
        let root = self.root().canonical.display();
        WorkspaceError::failed(format_args!("the folder `{root}` was removed since it was opened")).with_hint(
            "a folder that has the same path now is a different one; restart the program to use it",
        )
    }

    /// Returns the first parent folder that the process may not enter, or, if `is_written`, the
    /// last one when it may not be written. Used for the error message only; the system call
    /// itself decides about access.
    #[cfg(unix)]
    fn find_closed_folder(&self, is_written: bool) -> Option<String> {
        use rustix::fs::{Access, AtFlags, accessat};

        let dir = &self.root().dir;
        let mut above: Vec<&Path> = self.relative.ancestors().skip(1).collect();
        above.reverse();
        let may = |folder: &Path, what| {
            accessat(dir, or_current_dir(folder), what, AtFlags::empty()).is_ok()
        };
        let show =
            |folder: &Path| Self { relative: folder.to_path_buf(), ..self.clone() }.display();
        let mut last = None;
        for folder in above {
            match dir.symlink_metadata(or_current_dir(folder)) {
                Ok(found) if found.is_dir() => {}
                // The missing folder would be created in the previous one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                // Do not reveal anything about the target of a link.
                _ => return None,
            }
            if !may(folder, Access::EXEC_OK) {
                return Some(show(folder));
            }
            last = Some(folder);
        }
        last.filter(|folder| is_written && !may(folder, Access::WRITE_OK)).map(show)
    }

    #[cfg(not(unix))]
    fn find_closed_folder(&self, _: bool) -> Option<String> {
        None
    }

    /// Converts an I/O error to the error that the model reads; `verb` is the failed operation.
    pub(super) fn io_error(&self, verb: &str, error: io::Error) -> WorkspaceError {
        let path = self.display();
        let tool_error = match error.kind() {
            io::ErrorKind::NotFound if self.root().is_removed() => self.root_removed_error(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                WorkspaceError::not_found(format_args!("there is no `{path}`"))
            }
            // cap-std reports an escape from the root without an OS error code.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                WorkspaceError::denied(format_args!("`{path}` leads outside the workspace"))
                    .with_hint(format_args!(
                        "{}, also through links; instead of an absolute link name its target",
                        self.workspace.roots_hint()
                    ))
            }
            io::ErrorKind::PermissionDenied => match self.find_closed_folder(verb == "write") {
                Some(folder) => WorkspaceError::denied(format_args!(
                    "the system denies access to `{path}`: the folder `{folder}` is closed to this \
                     user"
                )),
                None => {
                    WorkspaceError::denied(format_args!("the system denies access to `{path}`"))
                }
            },
            _ if is_symlink_refusal(&error) => self.unexpected_link_error(),
            _ if is_open_file_limit(&error) => {
                WorkspaceError::failed(format_args!("cannot {verb} `{path}`: {error}")).with_hint(
                    "the limit of open files is reached; change fewer files at once, or raise the \
                     limit (`ulimit -n`)",
                )
            }
            _ => WorkspaceError::failed(format_args!("cannot {verb} `{path}`: {error}")),
        };
        tool_error.with_source(error)
    }
}

/// Returns whether the limit of open files of the process or the system was reached.
#[cfg(unix)]
fn is_open_file_limit(error: &io::Error) -> bool {
    use rustix::io::Errno;

    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|it| number == Some(it.raw_os_error()))
}

#[cfg(not(unix))]
fn is_open_file_limit(_: &io::Error) -> bool {
    false
}

/// Returns the path, or `.` if it is empty.
fn or_current_dir(below: &Path) -> &Path {
    if below.as_os_str().is_empty() { Path::new(".") } else { below }
}

/// Joins the components of a path with `/`.
fn join_with_slashes(below: &Path) -> String {
    let mut path = String::with_capacity(below.as_os_str().len());
    for name in below {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(&name.to_string_lossy());
    }
    path
}

/// Returns whether the system refused to follow a symbolic link (`ELOOP`).
#[cfg(unix)]
fn is_symlink_refusal(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_symlink_refusal(_: &io::Error) -> bool {
    false
}

impl fmt::Debug for ResolvedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResolvedPath").field(&self.absolute_path()).finish()
    }
}

impl FileKind {
    pub(super) fn from_file_type(kind: cap_std::fs::FileType) -> Self {
        match kind {
            _ if kind.is_file() => Self::File,
            _ if kind.is_dir() => Self::Directory,
            _ if kind.is_symlink() => Self::Symlink,
            _ => Self::Other,
        }
    }
}
