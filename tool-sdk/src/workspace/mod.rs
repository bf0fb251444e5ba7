//! The folders that tools may touch, as directory handles.
//!
//! The host opens its roots once and lends the [`Workspace`] to a session. A tool turns
//! the path that a model sent into a [`Located`] and opens that; every step below a root
//! is resolved by the system relative to the root's handle, so neither `..` nor a
//! symbolic link leads out, also when somebody swaps a folder in between.
//!
//! **Invariant:** nothing here opens a file by its printed path.

mod folder;
mod memo;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

pub use self::folder::{Folder, FolderEntry};
use self::memo::Memo;
use crate::error::ToolError;

/// The longest path that is looked at, in bytes.
const MAX_PATH: usize = 4096;

/// The longest name within a path, in bytes.
const MAX_NAME: usize = 255;

/// The folders that tools may touch.
///
/// Cheap to clone. A tool takes it as `State<Workspace>`.
///
/// # Examples
///
/// ```
/// use std::io::Read;
/// use tool_sdk::{ErrorKind, Session, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let workspace = Workspace::open([folder.path()])?;
/// let session = Session::new("s1").lend(workspace.clone());
///
/// let mut text = String::new();
/// workspace.resolve("notes.txt")?.open_file()?.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
///
/// assert_eq!(workspace.resolve("../secret").unwrap_err().kind(), ErrorKind::Denied);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Workspace(Arc<[Arc<Root>]>);

struct Root {
    dir: Dir,
    access: Access,
    /// Without symbolic links.
    real: PathBuf,
    /// As the host wrote it, made absolute: models repeat what they were told.
    given: PathBuf,
    /// What tools remember about the files below it.
    memo: Memo,
}

/// What tools may do below a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Read and write.
    Full,
    /// Read what is named by its absolute path.
    Read,
}

/// Why a workspace could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// There must be a first root, to which relative paths belong.
    #[error("a workspace needs at least one root")]
    NoRoots,
    /// A root is not a folder that can be opened.
    #[error("cannot open the workspace root `{}`", root.display())]
    Root {
        /// The root, as it was given.
        root: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Workspace {
    /// Opens the folders that tools may touch; relative paths belong to the first one.
    ///
    /// # Errors
    ///
    /// Fails when there is no root, or when one is not a folder that can be opened.
    pub fn open(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, WorkspaceError> {
        let roots = roots
            .into_iter()
            .map(|root| Root::open(root.as_ref(), Access::Full))
            .collect::<Result<Arc<[_]>, WorkspaceError>>()?;
        if roots.is_empty() { Err(WorkspaceError::NoRoots) } else { Ok(Self(roots)) }
    }

    /// Lends a folder from which tools may read, and to which they never write.
    ///
    /// What is below it is named by its absolute path and confined as in a root. It should
    /// not lie inside a root: by a relative path it would be a part of that root.
    ///
    /// # Errors
    ///
    /// Fails when `folder` is not a folder that can be opened.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Workspace;
    ///
    /// # let (project, manuals) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # std::fs::write(manuals.path().join("tar.txt"), "tar")?;
    /// let workspace = Workspace::open([project.path()])?.readable(manuals.path())?;
    ///
    /// let page = workspace.resolve(&manuals.path().join("tar.txt").to_string_lossy())?;
    /// assert!(page.is_read_only() && page.open_file().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn readable(self, folder: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let lent = Root::open(folder.as_ref(), Access::Read)?;
        Ok(Self(self.0.iter().cloned().chain([lent]).collect()))
    }

    /// The roots, without symbolic links; what is lent for reading only is none.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        let roots = self.0.iter().filter(|root| root.access == Access::Full);
        roots.map(|root| root.real.as_path())
    }

    /// Finds the place that a model means by `path`.
    ///
    /// A relative path belongs to the first root where it exists, and to the first root
    /// when it exists nowhere. An absolute path must lie under a root or a folder that is
    /// lent. Nothing is expanded: `~` and `$HOME` are names like any other.
    ///
    /// # Errors
    ///
    /// Fails with `invalid_args` when no file can have such a path, and with `denied` when
    /// the path is outside every root.
    pub fn resolve(&self, path: &str) -> Result<Located, ToolError> {
        check_form(path)?;
        let requested = Path::new(path);
        let located = if requested.has_root() || has_prefix(requested) {
            self.rebase(requested)
        } else {
            self.choose(requested)
        };
        located.filter(|located| !leaves(&located.relative)).ok_or_else(|| self.outside(path))
    }

    /// An absolute path as one below the innermost root that holds it.
    fn rebase(&self, path: &Path) -> Option<Located> {
        let roots = self.0.iter().enumerate();
        roots
            .flat_map(|(index, root)| [(index, &root.real), (index, &root.given)])
            .filter_map(|(index, root)| Some((index, root, path.strip_prefix(root).ok()?)))
            .max_by_key(|(_, root, _)| root.components().count())
            .map(|(index, _, relative)| self.located(index, relative))
    }

    fn choose(&self, path: &Path) -> Option<Located> {
        let has = |root: &Arc<Root>| {
            root.access == Access::Full && root.dir.symlink_metadata(path).is_ok()
        };
        let index = match &*self.0 {
            [_] => 0,
            roots => roots.iter().position(has).unwrap_or(0),
        };
        Some(self.located(index, path))
    }

    fn located(&self, root: usize, relative: &Path) -> Located {
        // `components` drops `.` and doubled separators, so that one place has one name.
        let relative = relative.components().filter(|part| *part != Component::CurDir).collect();
        Located { workspace: self.clone(), root, relative }
    }

    fn outside(&self, path: &str) -> ToolError {
        ToolError::denied(format_args!("`{path}` is outside the workspace")).hint(self.advice())
    }

    fn advice(&self) -> String {
        let roots: Vec<_> = self.roots().map(|root| format!("`{}`", root.display())).collect();
        format!("only files below {} can be used", roots.join(" and "))
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workspace")?;
        f.debug_list().entries(self.roots()).finish()
    }
}

impl Root {
    fn open(root: &Path, access: Access) -> Result<Arc<Self>, WorkspaceError> {
        let opened = || {
            let given = std::path::absolute(root)?;
            let real = std::fs::canonicalize(root)?;
            let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
            Ok(Arc::new(Self { dir, access, real, given, memo: Memo::default() }))
        };
        opened().map_err(|source| WorkspaceError::Root { root: root.to_owned(), source })
    }
}

/// Refuses what no file can be called, before anything looks at the disk.
fn check_form(path: &str) -> Result<(), ToolError> {
    if path.is_empty() {
        return Err(
            ToolError::invalid_args("the path is empty").hint("send `.` for the workspace itself")
        );
    }
    if path.contains('\0') {
        return Err(ToolError::invalid_args("the path holds a NUL character"));
    }
    if path.len() > MAX_PATH {
        return Err(ToolError::invalid_args(format_args!(
            "the path has {} bytes, more than {MAX_PATH}",
            path.len()
        )));
    }
    for component in Path::new(path).components() {
        let Component::Normal(name) = component else { continue };
        if name.len() > MAX_NAME {
            return Err(ToolError::invalid_args(format_args!(
                "a name in the path has {} bytes, more than {MAX_NAME}",
                name.len()
            )));
        }
        if cfg!(windows) && is_special_on_windows(&name.to_string_lossy()) {
            return Err(ToolError::invalid_args(format_args!(
                "`{}` means something else than a file on this system",
                name.display()
            )));
        }
    }
    Ok(())
}

/// Device names, alternate streams, and names that Windows would silently shorten.
fn is_special_on_windows(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    name.contains(':')
        || name.ends_with(['.', ' '])
        || matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || numbered.is_some_and(|rest| {
            matches!(
                rest,
                "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"
            )
        })
}

/// Whether the path starts with a drive or server of Windows.
fn has_prefix(path: &Path) -> bool {
    matches!(path.components().next(), Some(Component::Prefix(_)))
}

/// Whether `..` leads above the start, links aside; those the handle refuses.
fn leaves(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::CurDir => {}
            _ => return true,
        }
    }
    false
}

/// A place in a [`Workspace`], whether anything is there or not.
///
/// # Examples
///
/// ```
/// use tool_sdk::{ErrorKind, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::create_dir(folder.path().join("src"))?;
/// let workspace = Workspace::open([folder.path()])?;
/// let source = workspace.resolve("./src/")?;
///
/// assert_eq!(source.display(), "src");
/// assert_eq!(source.join("main.rs").display(), "src/main.rs");
/// assert_eq!(source.open_file().unwrap_err().kind(), ErrorKind::Failed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Located {
    workspace: Workspace,
    root: usize,
    relative: PathBuf,
}

/// What kind of thing something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link, wherever it leads.
    Symlink,
    /// A pipe, a socket, a device.
    Other,
}

impl FileKind {
    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(self) -> bool {
        self == Self::File
    }

    /// Whether it is a folder.
    #[must_use]
    pub fn is_dir(self) -> bool {
        self == Self::Directory
    }

    /// Whether it is a symbolic link.
    #[must_use]
    pub fn is_symlink(self) -> bool {
        self == Self::Symlink
    }
}

/// One thing in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// Its name.
    pub name: OsString,
    /// What it is; a link is not followed for the answer.
    pub kind: FileKind,
}

/// Facts about a place where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileMetadata {
    /// What is there, links followed.
    pub kind: FileKind,
    /// Its size in bytes.
    pub len: u64,
    /// When it was last written, where the system says so.
    pub modified: Option<SystemTime>,
}

impl Located {
    /// The path for people and models: relative to the first root and with `/`.
    ///
    /// In a further root it is the absolute path, so that what is shown always leads back
    /// to the same file.
    #[must_use]
    pub fn display(&self) -> String {
        if self.root > 0 {
            return self.absolute().display().to_string();
        }
        let names: Vec<_> =
            self.relative.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        if names.is_empty() { ".".to_owned() } else { names.join("/") }
    }

    /// The absolute path, to show or to hand to a walker; what is opened is never this.
    #[must_use]
    pub fn absolute(&self) -> PathBuf {
        // Joining an empty path would add a separator.
        match self.relative.as_os_str().is_empty() {
            true => self.root().real.clone(),
            false => self.root().real.join(&self.relative),
        }
    }

    /// Whether it lies in a folder that is lent for reading only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.root().access == Access::Read
    }

    /// The last name of the path; a root has none.
    #[must_use]
    pub fn file_name(&self) -> Option<&OsStr> {
        self.relative.file_name()
    }

    /// The place `below` this one.
    ///
    /// A path that leads out is refused when it is opened.
    #[must_use]
    pub fn join(&self, below: impl AsRef<Path>) -> Self {
        Self { relative: self.relative.join(below), ..self.clone() }
    }

    /// The folder that holds this place; a root has none.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.file_name()?;
        Some(Self { relative: self.relative.parent()?.to_owned(), ..self.clone() })
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when nothing is there, with `denied` when it may not be read
    /// or a link leads out of the workspace, and with `failed` when it is a folder, a pipe
    /// or a device.
    pub fn open_file(&self) -> Result<File, ToolError> {
        let mut options = OpenOptions::new();
        options.read(true);
        never_wait(&mut options);
        let opened = self.root().dir.open_with(self.below_root(), &options);
        let file = opened.map_err(|error| self.error(error))?.into_std();
        let kind = file.metadata().map_err(|error| self.error(error))?.file_type();
        if kind.is_file() {
            return Ok(file);
        }
        let what = if kind.is_dir() { "a folder" } else { "a pipe or a device" };
        Err(ToolError::failed(format_args!("`{}` is {what}, not a file", self.display())))
    }

    /// Looks what is there.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when nothing is there, and with `denied` when a link leads
    /// out of the workspace.
    pub fn metadata(&self) -> Result<FileMetadata, ToolError> {
        let found = self.root().dir.metadata(self.below_root());
        let found = found.map_err(|error| self.error(error))?;
        Ok(FileMetadata {
            kind: FileKind::of(found.file_type()),
            len: found.len(),
            modified: found.modified().ok().map(cap_std::time::SystemTime::into_std),
        })
    }

    /// Lists a folder, in no particular order.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when nothing is there, with `denied` when it may not be read
    /// or a link leads out of the workspace, and with `failed` when it is no folder. An
    /// entry fails when the system cannot read on.
    pub fn read_dir(
        &self,
    ) -> Result<impl Iterator<Item = Result<DirEntry, ToolError>> + use<>, ToolError> {
        let opened = self.root().dir.read_dir(self.below_root());
        let entries = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory if self.metadata().is_ok() => {
                ToolError::failed(format_args!("`{}` is not a folder", self.display()))
                    .source(error)
            }
            _ => self.error(error),
        })?;
        let place = self.clone();
        Ok(entries.map(move |entry| {
            let entry = entry.map_err(|error| place.error(error))?;
            let kind = entry.file_type().map_or(FileKind::Other, FileKind::of);
            Ok(DirEntry { name: entry.file_name(), kind })
        }))
    }

    fn root(&self) -> &Root {
        &self.workspace.0[self.root]
    }

    /// The path for the handle, which does not know the empty one.
    fn below_root(&self) -> &Path {
        match self.relative.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.relative,
        }
    }

    /// What the model should know about a failure here.
    fn error(&self, error: io::Error) -> ToolError {
        let path = self.display();
        let told = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ToolError::not_found(format_args!("there is no `{path}`"))
            }
            // The handle's own refusal carries no error number of the system.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                ToolError::denied(format_args!("`{path}` leads outside the workspace"))
                    .hint(format_args!("{}, also through links", self.workspace.advice()))
            }
            io::ErrorKind::PermissionDenied => {
                ToolError::denied(format_args!("the system denies access to `{path}`"))
            }
            _ => ToolError::failed(format_args!("cannot read `{path}`: {error}")),
        };
        told.source(error)
    }
}

impl fmt::Debug for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Located").field(&self.absolute()).finish()
    }
}

impl FileKind {
    fn of(kind: cap_std::fs::FileType) -> Self {
        match kind {
            _ if kind.is_file() => Self::File,
            _ if kind.is_dir() => Self::Directory,
            _ if kind.is_symlink() => Self::Symlink,
            _ => Self::Other,
        }
    }
}

/// Keeps an open from waiting for the other end of a pipe.
#[cfg(unix)]
fn never_wait(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt;

    // `O_NONBLOCK`, which std does not name. Where it is not known, a pipe makes the call
    // wait until its time is up.
    const NONBLOCK: i32 = if cfg!(any(target_os = "linux", target_os = "android")) {
        0o4000
    } else if cfg!(any(target_vendor = "apple", target_os = "freebsd", target_os = "openbsd")) {
        0x4
    } else {
        0
    };
    options.custom_flags(NONBLOCK);
}

#[cfg(not(unix))]
fn never_wait(_: &mut OpenOptions) {}

#[cfg(test)]
mod tests;
