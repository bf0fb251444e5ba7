//! A place in a workspace: what is there, and how it is opened.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::{DirExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};

use super::named::open;
use super::one_line::one_line;
use super::protected::{is_protected, is_within};
use super::real::{canonicalize, settle};
use super::straight::is_straight;
use super::{Access, Durability, Root, Workspace};
use crate::error::{ErrorKind, ToolError};

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
    pub(super) workspace: Workspace,
    pub(super) root: usize,
    pub(super) relative: PathBuf,
    /// Whether there were no links on the way, so that none is followed any more.
    pub(super) is_real: bool,
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
    /// The path for people and models: its [`spelling`](Self::spelling) on [one line](one_line).
    #[must_use]
    pub fn display(&self) -> String {
        one_line(&self.spelling()).into_owned()
    }

    /// The path for rules and programs: relative to the first root and with `/`.
    ///
    /// Elsewhere it is the absolute path, so that it always leads back to the same file. What
    /// lies below the first root has one name, also where another root or a search led to it:
    /// rules speak of that.
    #[must_use]
    pub fn spelling(&self) -> String {
        if self.root == 0 {
            return slashed(self.below_root());
        }
        let absolute = self.absolute();
        match absolute.strip_prefix(&self.workspace.0.roots[0].real) {
            Ok(below) => slashed(named_root(below)),
            Err(_) => absolute.display().to_string(),
        }
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

    /// Whether it is no part of the workspace, and somebody is asked about it.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.root().access == Access::Outside
    }

    /// Whether it is a file that something executes or obeys later, such as a hook of git, a
    /// start-up file of a shell, or the settings of an agent: by its name, whether it exists
    /// or not. So is what the host [protects](Workspace::protect).
    #[must_use]
    pub fn is_protected(&self) -> bool {
        let absolute = self.absolute();
        is_protected(&self.relative, &absolute) || is_within(&absolute, &self.workspace.0.protected)
    }

    /// Whether another place of the same workspace has the same path.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        self.root == other.root && self.relative.as_os_str() == other.relative.as_os_str()
    }

    /// The same place without symbolic links, as they are now.
    ///
    /// What is opened through it is that place and no other: when a link appears on the way
    /// later, opening fails. The part of the path that does not exist yet stays as it is.
    ///
    /// # Errors
    ///
    /// Fails with `denied` when a link leads out of the workspace, and with `failed` when a
    /// pipe or a device is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Workspace;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::create_dir(folder.path().join("src"))?;
    /// let workspace = Workspace::open([folder.path()])?;
    /// let new = workspace.resolve("src/../src/new/file.rs")?.real()?;
    /// assert_eq!(new.display(), "src/new/file.rs");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn real(&self) -> Result<Self, ToolError> {
        if self.is_real {
            return Ok(self.clone());
        }
        let dir = &self.root().dir;
        if is_straight(dir, self.below_root()) {
            return Ok(Self { is_real: true, ..self.clone() });
        }
        let there = dir.metadata(self.below_root()).map(|found| FileKind::of(found.file_type()));
        if matches!(there, Ok(FileKind::Other)) {
            // Where the kernel does not do it, finding the name means opening, and waiting.
            return Err(self.not_a_file("a pipe or a device"));
        }
        let real = settle(self.below_root(), |path| canonicalize(dir, path));
        let real = real.map_err(|error| self.error("open", error))?;
        let relative = real.components().filter(|part| *part != Component::CurDir).collect();
        Ok(Self { relative, is_real: true, ..self.clone() })
    }

    /// The same, where this one is not needed any more.
    pub(super) fn into_real(self) -> Result<Self, ToolError> {
        if self.is_real { Ok(self) } else { self.real() }
    }

    /// The last name of the path; a root has none.
    #[must_use]
    pub fn file_name(&self) -> Option<&OsStr> {
        self.relative.file_name()
    }

    /// The place `below` this one.
    ///
    /// A path that leads out is refused when it is opened, and below a [real](Self::real)
    /// place a link is not followed.
    #[must_use]
    pub fn join(&self, below: impl AsRef<Path>) -> Self {
        Self { relative: self.relative.join(below), ..self.clone() }
    }

    /// The folder that holds this place. A root has none, and what is outside of the
    /// workspace has none that anybody was asked about.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.file_name().filter(|_| !self.is_outside())?;
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
        self.open_regular().map(|(file, _)| file)
    }

    /// Opens a regular file for reading, and tells what the system knows about it.
    pub(super) fn open_regular(&self) -> Result<(File, Metadata), ToolError> {
        let opened = if self.is_real {
            self.in_holder(|dir| open(dir, self.last_name()))
        } else {
            let mut options = OpenOptions::new();
            // A pipe is not waited for.
            options.read(true).nonblock(true);
            self.root().dir.open_with(self.below_root(), &options).map(cap_std::fs::File::into_std)
        };
        self.regular(opened)
    }

    /// The same of a real place, through the folder that holds it.
    pub(super) fn open_regular_in(
        &self,
        holder: impl FnOnce() -> io::Result<Arc<Dir>>,
    ) -> Result<(File, Metadata), ToolError> {
        self.regular(holder().and_then(|dir| open(&dir, self.last_name())))
    }

    fn regular(&self, opened: io::Result<File>) -> Result<(File, Metadata), ToolError> {
        let file = opened.map_err(|error| self.error("read", error))?;
        let metadata = file.metadata().map_err(|error| self.error("read", error))?;
        let kind = metadata.file_type();
        if kind.is_file() {
            return Ok((file, metadata));
        }
        let what = if kind.is_dir() { "a folder" } else { "a pipe or a device" };
        Err(self.not_a_file(what))
    }

    /// Looks what is there.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` when nothing is there, and with `denied` when a link leads
    /// out of the workspace.
    pub fn metadata(&self) -> Result<FileMetadata, ToolError> {
        let found = if self.is_real {
            self.in_holder(|dir| dir.symlink_metadata(self.last_name()))
        } else {
            self.root().dir.metadata(self.below_root())
        };
        let found = found.map_err(|error| self.error("read", error))?;
        Ok(FileMetadata {
            kind: FileKind::of(found.file_type()),
            len: found.len(),
            modified: found.modified().ok().map(cap_std::time::SystemTime::into_std),
        })
    }

    /// Whether a symbolic link is here, wherever it leads.
    pub(crate) fn is_link(&self) -> bool {
        let found = self.root().dir.symlink_metadata(self.below_root());
        found.is_ok_and(|found| found.is_symlink())
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
        let entries = self.open_dir().and_then(|dir| dir.entries());
        let entries = entries.map_err(|error| self.no_folder(error))?;
        let place = self.clone();
        Ok(entries.map(move |entry| {
            let entry = entry.map_err(|error| place.error("read", error))?;
            let kind = entry.file_type().map_or(FileKind::Other, FileKind::of);
            Ok(DirEntry { name: entry.file_name(), kind })
        }))
    }

    /// Whether changes of files here are on the disk when they are made.
    pub(super) fn durability(&self) -> Durability {
        self.workspace.0.durability
    }

    pub(super) fn root(&self) -> &Root {
        &self.workspace.0.roots[self.root]
    }

    /// The folder that is here.
    pub(super) fn open_dir(&self) -> io::Result<Dir> {
        match self.is_real {
            true => self.in_holder(|dir| dir.open_dir_nofollow(self.last_name())),
            false => self.root().dir.open_dir(self.below_root()),
        }
    }

    /// Does something in the folder that holds a real place; no link on the way is followed.
    pub(super) fn in_holder<T>(&self, act: impl FnOnce(&Dir) -> io::Result<T>) -> io::Result<T> {
        let mut holder = None;
        for name in self.relative.parent().into_iter().flatten() {
            let above = holder.as_ref().unwrap_or(&self.root().dir);
            holder = Some(above.open_dir_nofollow(name)?);
        }
        act(holder.as_ref().unwrap_or(&self.root().dir))
    }

    /// The name by which its holder knows it.
    pub(super) fn last_name(&self) -> &Path {
        self.file_name().map_or(Path::new("."), Path::new)
    }

    /// The path for the handle, which does not know the empty one.
    pub(super) fn below_root(&self) -> &Path {
        named_root(&self.relative)
    }

    /// That nothing can be made here.
    pub(super) fn is_below_a_file(&self, kind: ErrorKind) -> ToolError {
        let path = self.display();
        ToolError::new(kind, format_args!("a part of the path to `{path}` is not a folder"))
    }

    pub(super) fn not_a_file(&self, what: &str) -> ToolError {
        ToolError::failed(format_args!("`{}` is {what}, not a file", self.display()))
    }

    /// What the model should know about a failure to open what is here as a folder.
    pub(super) fn no_folder(&self, error: io::Error) -> ToolError {
        let kind = match error.kind() {
            io::ErrorKind::NotADirectory => self.metadata().ok().map(|there| there.kind),
            _ => None,
        };
        match kind {
            None => self.error("open", error),
            Some(FileKind::Symlink) => self.stray_link().source(error),
            Some(_) => ToolError::failed(format_args!("`{}` is not a folder", self.display()))
                .source(error),
        }
    }

    /// That a link is where there was none, or none that leads anywhere.
    fn stray_link(&self) -> ToolError {
        ToolError::conflict(format_args!(
            "`{}` is a symbolic link that leads nowhere, or that was just made",
            self.display()
        ))
    }

    /// That there is nothing to look into any more.
    pub(super) fn gone(&self) -> ToolError {
        let root = self.root().real.display();
        ToolError::failed(format_args!("the folder `{root}` was removed since it was opened")).hint(
            "one that has its place now is another folder; the program has to be started anew",
        )
    }

    /// The folder on the way here that the user may not enter, or in which they may not write
    /// where the last one `is_written`. Only for words: whether something may be done is seen
    /// when it is.
    #[cfg(unix)]
    fn closed_folder(&self, is_written: bool) -> Option<String> {
        use rustix::fs::{Access, AtFlags, accessat};

        let dir = &self.root().dir;
        let mut above: Vec<&Path> = self.relative.ancestors().skip(1).collect();
        above.reverse();
        let may =
            |folder: &Path, what| accessat(dir, named_root(folder), what, AtFlags::empty()).is_ok();
        let show =
            |folder: &Path| Self { relative: folder.to_path_buf(), ..self.clone() }.display();
        let mut last = None;
        for folder in above {
            match dir.symlink_metadata(named_root(folder)) {
                Ok(found) if found.is_dir() => {}
                // It would have been made in the one before it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                // Nothing is told of what is behind a link.
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
    fn closed_folder(&self, _: bool) -> Option<String> {
        None
    }

    /// What the model should know about a failure to `verb` what is here.
    pub(super) fn error(&self, verb: &str, error: io::Error) -> ToolError {
        let path = self.display();
        let told = match error.kind() {
            io::ErrorKind::NotFound if self.root().is_gone() => self.gone(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ToolError::not_found(format_args!("there is no `{path}`"))
            }
            // The handle's own refusal carries no error number of the system.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => ToolError::denied(
                format_args!("`{path}` leads outside the workspace"),
            )
            .hint(format_args!(
                "{}, also through links; instead of an absolute link name its target",
                self.workspace.advice()
            )),
            io::ErrorKind::PermissionDenied => match self.closed_folder(verb == "write") {
                Some(folder) => ToolError::denied(format_args!(
                    "the system denies access to `{path}`: the folder `{folder}` is closed to this \
                     user"
                )),
                None => ToolError::denied(format_args!("the system denies access to `{path}`")),
            },
            _ if is_link(&error) => self.stray_link(),
            _ if are_too_many(&error) => {
                ToolError::failed(format_args!("cannot {verb} `{path}`: {error}")).hint(
                    "the program has as many files open as it may; change fewer files at once, or \
                     raise the limit (`ulimit -n`)",
                )
            }
            _ => ToolError::failed(format_args!("cannot {verb} `{path}`: {error}")),
        };
        told.source(error)
    }
}

/// Whether the process, or the system, has as many files open as it may.
#[cfg(unix)]
fn are_too_many(error: &io::Error) -> bool {
    use rustix::io::Errno;

    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|it| number == Some(it.raw_os_error()))
}

#[cfg(not(unix))]
fn are_too_many(_: &io::Error) -> bool {
    false
}

/// The path below a root, where the root has a name itself.
fn named_root(below: &Path) -> &Path {
    if below.as_os_str().is_empty() { Path::new(".") } else { below }
}

/// The path with `/` between its names.
fn slashed(below: &Path) -> String {
    let mut path = String::with_capacity(below.as_os_str().len());
    for name in below {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(&name.to_string_lossy());
    }
    path
}

/// Whether a link was met that may not be followed.
#[cfg(unix)]
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_link(_: &io::Error) -> bool {
    false
}

impl fmt::Debug for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Located").field(&self.absolute()).finish()
    }
}

impl FileKind {
    pub(super) fn of(kind: cap_std::fs::FileType) -> Self {
        match kind {
            _ if kind.is_file() => Self::File,
            _ if kind.is_dir() => Self::Directory,
            _ if kind.is_symlink() => Self::Symlink,
            _ => Self::Other,
        }
    }
}
