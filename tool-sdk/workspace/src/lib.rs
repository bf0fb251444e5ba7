//! Confined file access: the folders that tools may read and write, as directory handles.
//!
//! The host opens its roots once and lends the [`Workspace`] to a session. A tool resolves
//! the path that a model sent to a [`ResolvedPath`], opens it, and changes files with a
//! [`FileTransaction`]. Every path is resolved relative to the handle of its root, so neither
//! `..` nor a symbolic link escapes it, even when another process swaps a folder in between.
//! On Linux the kernel enforces this (`openat2` with `RESOLVE_BENEATH`); elsewhere cap-std
//! walks the path component by component and checks each symbolic link.
//!
//! **Invariant:** no file is opened by its absolute path.

#![forbid(unsafe_code)]

mod atomic_rename;
mod cache;
mod dir_lock;
mod display_escape;
mod durability;
mod error;
mod expected_file;
mod file_locks;
#[cfg(unix)]
mod journal;
#[cfg(not(unix))]
#[path = "journal_disabled.rs"]
mod journal;
mod journal_entry;
mod open;
mod openat2;
mod outside;
mod path_syntax;
mod permissions;
mod protected;
mod read_to_vec;
mod realpath;
mod resolve;
mod shutdown_latch;
mod snapshot;
mod staged_file;
mod temp_file;
mod transaction;
mod walk;
mod xattrs;

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

pub use self::display_escape::escape_for_display;
pub use self::durability::Durability;
pub use self::error::{WorkspaceError, WorkspaceErrorKind};
use self::file_locks::FileLockTable;
pub use self::file_locks::FileLocks;
pub use self::resolve::{DirEntry, FileKind, FileMetadata, ResolvedPath};
pub use self::snapshot::Snapshot;
pub use self::transaction::FileTransaction;

use self::cache::RootCache;
use self::realpath::canonicalize_existing;
pub use self::walk::{FolderEntry, OpenFolder};

/// For the other crates of the SDK, without a promise of stability.
#[doc(hidden)]
pub mod internal {
    pub use crate::protected::is_protected;
    pub use crate::shutdown_latch::shut_down_writes;
}

/// The folders that tools may read and write.
///
/// Cheap to clone. A tool takes it as `State<Workspace>`.
///
/// # Examples
///
/// ```
/// use std::io::Read;
/// use tool_sdk::{WorkspaceErrorKind, Session, Workspace};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
/// let workspace = Workspace::open([folder.path()])?;
/// let session = Session::new("s1").with_service(workspace.clone());
///
/// let mut text = String::new();
/// workspace.resolve("notes.txt")?.open_file()?.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
///
/// assert_eq!(workspace.resolve("../secret").unwrap_err().kind(), WorkspaceErrorKind::Denied);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Workspace(Arc<WorkspaceState>);

/// The state that all clones of a workspace share; every resolved path holds a reference to it.
#[derive(Clone)]
struct WorkspaceState {
    roots: Arc<[Arc<Root>]>,
    locks: Arc<FileLockTable>,
    /// Protected paths of the host, as given and canonicalized; everything below them counts too.
    protected: Arc<[PathBuf]>,
    durability: Durability,
    /// The private folder of the host for the journals of transactions.
    journal: Option<Arc<Path>>,
    /// Whether a directory walk stays on the file system on which it starts.
    same_file_system: bool,
}

struct Root {
    dir: Dir,
    access: RootAccess,
    /// The canonical path, without symbolic links.
    canonical: PathBuf,
    /// The path as the host gave it, made absolute. Models repeat paths in this form.
    as_given: PathBuf,
    /// Values that tools cache for the files below it.
    cache: RootCache,
}

/// The access that tools have below a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RootAccess {
    /// Read and write.
    ReadWrite,
    /// Read files that are named by their absolute path.
    ReadOnly,
    /// A path outside of the workspace, for which the user was asked.
    Outside,
}

impl Workspace {
    /// Opens the root folders. Relative paths are resolved in the first one.
    ///
    /// # Errors
    ///
    /// Fails when there is no root, or when one cannot be opened as a folder.
    pub fn open(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, WorkspaceError> {
        let roots = roots
            .into_iter()
            .map(|root| Root::open(root.as_ref(), RootAccess::ReadWrite))
            .collect::<Result<Arc<[_]>, WorkspaceError>>()?;
        if roots.is_empty() {
            return Err(WorkspaceError::failed("a workspace needs at least one root"));
        }
        Ok(Self(Arc::new(WorkspaceState {
            roots,
            locks: Arc::default(),
            protected: Arc::default(),
            durability: Durability::default(),
            journal: None,
            same_file_system: false,
        })))
    }

    /// Adds a folder that tools may read but never write.
    ///
    /// Files below it are named by their absolute paths and are confined as in a root. The
    /// folder should not lie inside a root, because a relative path would reach it with that
    /// root's access.
    ///
    /// # Errors
    ///
    /// Fails when `folder` cannot be opened as a folder.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Workspace;
    ///
    /// # let (project, manuals) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # std::fs::write(manuals.path().join("tar.txt"), "tar")?;
    /// let workspace = Workspace::open([project.path()])?.with_read_only(manuals.path())?;
    ///
    /// let page = workspace.resolve(&manuals.path().join("tar.txt").to_string_lossy())?;
    /// assert!(page.is_read_only() && page.open_file().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_read_only(self, folder: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        Ok(self.with_root(Root::open(folder.as_ref(), RootAccess::ReadOnly)?))
    }

    /// Protects a file of the host, or a folder with everything below it, such as its settings
    /// and stored approvals. A change of a protected path needs the permission
    /// `protected_path`, as for [files that are protected by name](ResolvedPath::is_protected).
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Workspace;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let workspace = Workspace::open([folder.path()])?.protect(folder.path().join("my.toml"));
    /// assert!(workspace.resolve("my.toml")?.is_protected());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn protect(self, path: impl AsRef<Path>) -> Self {
        let given = std::path::absolute(path);
        let real = given
            .as_ref()
            .ok()
            .and_then(|path| canonicalize_existing(path, |it| it.canonicalize()).ok());
        let protected = self.0.protected.iter().cloned().chain(given).chain(real).collect();
        self.update(|shared| shared.protected = protected)
    }

    /// Sets when changed files are flushed to disk (`fsync`). The default is
    /// [`Durability::Auto`]: only transactions of few files wait for the disk.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        self.update(|shared| shared.durability = durability)
    }

    /// Sets a folder for the journals of transactions, outside of the roots, in which no tool can
    /// write. It is created when it is needed, for the user alone.
    ///
    /// With it, a transaction of several files is whole again after its process was killed: the
    /// next transaction below the same root, of any process with this folder, finishes it, or
    /// undoes it if no file was replaced yet. Files that changed in between are left as they are,
    /// and that transaction fails once and names them. Without a journal, or on systems other than
    /// Unix, a killed process may leave some files changed and temporary files behind.
    #[must_use]
    pub fn with_journal(self, folder: impl AsRef<Path>) -> Self {
        let Ok(folder) = std::path::absolute(folder) else { return self };
        // Tools could write a journal of their own below a root.
        let real = canonicalize_existing(&folder, |it| it.canonicalize());
        if real.is_ok_and(|real| !self.roots().any(|root| real.starts_with(root))) {
            let workspace = self.protect(&folder);
            return workspace.update(|shared| shared.journal = Some(folder.into()));
        }
        self
    }

    /// Finishes or undoes the transactions below the roots that killed processes left. Returns how
    /// many there were, and why others were left as they are.
    #[doc(hidden)]
    #[must_use]
    pub fn recover_interrupted(&self) -> (usize, Vec<String>) {
        let (mut recovered, mut left) = (0, Vec::new());
        let Some(folder) = &self.0.journal else { return (recovered, left) };
        for root in self.0.roots.iter().filter(|root| root.access == RootAccess::ReadWrite) {
            let report = journal::recover_root(folder, root);
            recovered += report.recovered;
            left.extend(report.left);
        }
        (recovered, left)
    }

    /// Returns how many interrupted transactions wait for their recovery, below any root, and how
    /// many were left as they are.
    #[doc(hidden)]
    #[must_use]
    pub fn count_interrupted(&self) -> (usize, usize) {
        self.0.journal.as_deref().map_or((0, 0), journal::count_interrupted)
    }

    /// Sets whether tools that walk a folder recursively stay on the file system on which they
    /// start, so that mount points such as network shares are skipped. The default is `false`.
    ///
    /// Mounted files can still be named directly. A bind mount from the same device is not
    /// skipped. On Windows a mount point is a link, and walks never follow links.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Workspace;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::create_dir(folder.path().join("src"))?;
    /// let workspace = Workspace::open([folder.path()])?.same_file_system(true);
    /// for entry in workspace.resolve(".")?.open_folder()?.entries()? {
    ///     // Fails with `CrossesDevices` at a mount point.
    ///     assert!(entry.open_folder().is_ok());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn same_file_system(self, stays: bool) -> Self {
        self.update(|shared| shared.same_file_system = stays)
    }

    /// Returns this workspace with one more root, added as the last one.
    fn with_root(&self, root: Arc<Root>) -> Self {
        let roots = self.0.roots.iter().cloned().chain([root]).collect();
        self.clone().update(|shared| shared.roots = roots)
    }

    fn update(mut self, change: impl FnOnce(&mut WorkspaceState)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Returns the canonical paths of the writable roots, in order.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        let roots = self.0.roots.iter().filter(|root| root.access == RootAccess::ReadWrite);
        roots.map(|root| root.canonical.as_path())
    }

    /// Resolves a path that a model sent. The file need not exist.
    ///
    /// A relative path belongs to the first root in which it exists, or to the first root
    /// when it exists in none. An absolute path must lie below a root or a read-only folder.
    /// Nothing is expanded: `~` and `$HOME` are ordinary names.
    ///
    /// # Errors
    ///
    /// Fails with `InvalidPath` when the path is not a valid path, and with `Denied` when it is
    /// outside of every root.
    pub fn resolve(&self, path: &str) -> Result<ResolvedPath, WorkspaceError> {
        self.try_resolve(path)?.ok_or_else(|| {
            let message = format_args!("`{path}` is outside the workspace");
            WorkspaceError::denied(message).with_hint(self.roots_hint())
        })
    }

    /// Like [`resolve`](Self::resolve), but returns `None` for a path outside of every root.
    #[doc(hidden)]
    pub fn try_resolve(&self, path: &str) -> Result<Option<ResolvedPath>, WorkspaceError> {
        path_syntax::validate_path(path)?;
        let requested = Path::new(path);
        let located = if path_syntax::is_absolute(requested) {
            self.resolve_absolute(requested)
        } else {
            self.resolve_relative(requested)
        };
        Ok(located.filter(|located| !path_syntax::escapes_root(&located.relative)))
    }

    /// Resolves an absolute path below the innermost root that contains it.
    fn resolve_absolute(&self, path: &Path) -> Option<ResolvedPath> {
        let roots = self.0.roots.iter().enumerate();
        roots
            .flat_map(|(index, root)| [(index, &root.canonical), (index, &root.as_given)])
            .filter_map(|(index, root)| Some((index, root, path.strip_prefix(root).ok()?)))
            .max_by_key(|(_, root, _)| root.components().count())
            .map(|(index, _, relative)| self.resolved_path(index, relative))
    }

    fn resolve_relative(&self, path: &Path) -> Option<ResolvedPath> {
        let has = |root: &Arc<Root>| {
            root.access == RootAccess::ReadWrite && root.dir.symlink_metadata(path).is_ok()
        };
        // With a single root there is nothing to look up.
        let index = match self.roots().nth(1) {
            None => 0,
            Some(_) => self.0.roots.iter().position(has).unwrap_or(0),
        };
        Some(self.resolved_path(index, path))
    }

    fn resolved_path(&self, root: usize, relative: &Path) -> ResolvedPath {
        // `components` normalizes `.` and repeated separators, so that a file has one path.
        let relative = relative.components().filter(|part| *part != Component::CurDir).collect();
        ResolvedPath { workspace: self.clone(), root, relative, is_canonical: false }
    }

    fn roots_hint(&self) -> String {
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
    fn open(root: &Path, access: RootAccess) -> Result<Arc<Self>, WorkspaceError> {
        let opened = || {
            let given = std::path::absolute(root)?;
            let dir = Dir::open_ambient_dir(&given, ambient_authority())?;
            Self::from_dir(dir, access, given)
        };
        opened().map_err(|error| {
            let message = format_args!("cannot open the workspace root `{}`", root.display());
            WorkspaceError::failed(message).with_source(error)
        })
    }

    /// Creates a root from an open handle. Rules and users see its paths, so both must lead to the
    /// folder that the handle holds.
    fn from_dir(dir: Dir, access: RootAccess, given: PathBuf) -> io::Result<Arc<Self>> {
        let real = std::fs::canonicalize(&given)?;
        if !is_same_dir(&dir, &real)? {
            return Err(io::Error::other("the folder was replaced while it was opened"));
        }
        Ok(Arc::new(Self {
            dir,
            access,
            canonical: real,
            as_given: given,
            cache: RootCache::default(),
        }))
    }

    /// Returns whether the folder was removed. The handle keeps pointing to the removed folder,
    /// even when a new folder is created at the same path.
    #[cfg(unix)]
    fn is_removed(&self) -> bool {
        use cap_std::fs::MetadataExt as _;

        self.dir.dir_metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    #[cfg(not(unix))]
    fn is_removed(&self) -> bool {
        false
    }
}

/// Returns whether the open folder is the one at `path`, by device and inode.
#[cfg(unix)]
fn is_same_dir(dir: &Dir, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    use cap_std::fs::MetadataExt as _;

    let (open, there) = (dir.dir_metadata()?, path.metadata()?);
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// Without inode numbers the check is skipped.
#[cfg(not(unix))]
fn is_same_dir(_: &Dir, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests;
