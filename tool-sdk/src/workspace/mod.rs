//! The folders that tools may touch, as directory handles.
//!
//! The host opens its roots once and lends the [`Workspace`] to a session. A tool turns
//! the path that a model sent into a [`Located`], opens that, and changes it through
//! [`Changes`]; every step below a root is resolved relative to the root's handle, so
//! neither `..` nor a symbolic link leads out, also when somebody swaps a folder in between.
//! On Linux the kernel sees to it (`openat2` with `RESOLVE_BENEATH`); where it cannot,
//! cap-std walks the path itself, name by name and without following a link blindly.
//!
//! **Invariant:** nothing here opens a file by its printed path.

mod attributes;
mod changes;
mod drafts;
mod durability;
mod each;
mod expected;
mod fill;
mod folder;
mod form;
mod in_memory;
mod located;
mod locks;
mod memo;
mod named;
mod one_line;
mod outside;
mod protected;
mod real;
mod rename;
mod rights;
mod snapshot;
mod staged;
mod straight;
mod temporary;
mod turns;
mod underway;

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

pub use self::changes::Changes;
pub use self::drafts::{Draft, Drafts};
pub use self::durability::Durability;
pub use self::in_memory::InMemory;
pub use self::located::{DirEntry, FileKind, FileMetadata, Located};
pub use self::locks::FileLocks;
use self::locks::Locks;
pub use self::one_line::one_line;
#[cfg(all(feature = "sandbox", target_os = "linux"))]
pub(crate) use self::protected::is_protected;
pub use self::snapshot::Snapshot;
#[cfg(feature = "cli")]
pub(crate) use self::underway::finish;

pub use self::folder::{Folder, FolderEntry};
use self::memo::Memo;
use self::real::settle;
use crate::error::ToolError;

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
pub struct Workspace(Arc<Shared>);

/// What all clones of a workspace share: each place has one, and they come and go on many threads.
#[derive(Clone)]
struct Shared {
    roots: Arc<[Arc<Root>]>,
    locks: Arc<Locks>,
    /// What the host obeys itself, in every spelling, with everything below it.
    protected: Arc<[PathBuf]>,
    durability: Durability,
    /// Whether who goes through a tree stays on the device on which it begins.
    one_device: bool,
}

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
    /// One path that is no part of the workspace, and that somebody was asked about.
    Outside,
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
        if roots.is_empty() {
            return Err(WorkspaceError::NoRoots);
        }
        Ok(Self(Arc::new(Shared {
            roots,
            locks: Arc::default(),
            protected: Arc::default(),
            durability: Durability::default(),
            one_device: false,
        })))
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
        Ok(self.and(Root::open(folder.as_ref(), Access::Read)?))
    }

    /// Protects a file that the host itself obeys, or a folder with everything below it, such
    /// as its settings and what was approved: who changes it is asked about as
    /// `protected_path`, as for [the files that are known by their names](Located::is_protected).
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
        let real = given.as_ref().ok().and_then(|path| settle(path, |it| it.canonicalize()).ok());
        let protected = self.0.protected.iter().cloned().chain(given).chain(real).collect();
        self.with(|shared| shared.protected = protected)
    }

    /// Whether changed files are on the disk when their tool says that they are changed; by
    /// itself where a change has few files.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        self.with(|shared| shared.durability = durability)
    }

    /// Whether tools that go through a folder and all below it stay on the device on which they
    /// begin, so that what is mounted in it, such as a share of a network, is left out; it is not.
    ///
    /// What is mounted can still be named. What is mounted from the same device counts as a part
    /// of it, and on Windows, where it is a link, nothing goes through it anyway.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::Workspace;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::create_dir(folder.path().join("src"))?;
    /// let workspace = Workspace::open([folder.path()])?.one_device(true);
    /// for entry in workspace.resolve(".")?.open_folder()?.entries()? {
    ///     // Were something else mounted there, this would fail with `CrossesDevices`.
    ///     assert!(entry.open_folder().is_ok());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn one_device(self, stays: bool) -> Self {
        self.with(|shared| shared.one_device = stays)
    }

    /// This workspace with one more root, which comes last.
    fn and(&self, root: Arc<Root>) -> Self {
        let roots = self.0.roots.iter().cloned().chain([root]).collect();
        self.clone().with(|shared| shared.roots = roots)
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The roots, without symbolic links; what is lent for reading only is none.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        let roots = self.0.roots.iter().filter(|root| root.access == Access::Full);
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
        self.find(path)?.ok_or_else(|| {
            let message = format_args!("`{path}` is outside the workspace");
            ToolError::denied(message).hint(self.advice())
        })
    }

    /// The place that a model means by `path`, unless it is outside of every root.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Located>, ToolError> {
        form::check(path)?;
        let requested = Path::new(path);
        let located = if form::is_absolute(requested) {
            self.rebase(requested)
        } else {
            self.choose(requested)
        };
        Ok(located.filter(|located| !form::leaves(&located.relative)))
    }

    /// An absolute path as one below the innermost root that holds it.
    fn rebase(&self, path: &Path) -> Option<Located> {
        let roots = self.0.roots.iter().enumerate();
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
        // Where there is only one, nothing has to be looked up.
        let index = match self.roots().nth(1) {
            None => 0,
            Some(_) => self.0.roots.iter().position(has).unwrap_or(0),
        };
        Some(self.located(index, path))
    }

    fn located(&self, root: usize, relative: &Path) -> Located {
        // `components` drops `.` and doubled separators, so that one place has one name.
        let relative = relative.components().filter(|part| *part != Component::CurDir).collect();
        Located { workspace: self.clone(), root, relative, is_real: false }
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
            let dir = Dir::open_ambient_dir(&given, ambient_authority())?;
            Self::of(dir, access, given)
        };
        opened().map_err(|source| WorkspaceError::Root { root: root.to_owned(), source })
    }

    /// A root that is open, with its paths: rules and people are told of those, so they must lead
    /// to what the handle holds.
    fn of(dir: Dir, access: Access, given: PathBuf) -> io::Result<Arc<Self>> {
        let real = std::fs::canonicalize(&given)?;
        if !is_at(&dir, &real)? {
            return Err(io::Error::other("another folder took its place while it was opened"));
        }
        Ok(Arc::new(Self { dir, access, real, given, memo: Memo::default() }))
    }

    /// Whether the folder was removed. The handle would lead into it for ever, and never to what
    /// has its path since.
    #[cfg(unix)]
    fn is_gone(&self) -> bool {
        use cap_std::fs::MetadataExt as _;

        self.dir.dir_metadata().is_ok_and(|facts| facts.nlink() == 0)
    }

    #[cfg(not(unix))]
    fn is_gone(&self) -> bool {
        false
    }
}

/// Whether the folder that is open is the one at `path`.
#[cfg(unix)]
fn is_at(dir: &Dir, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    use cap_std::fs::MetadataExt as _;

    let (open, there) = (dir.dir_metadata()?, path.metadata()?);
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// Elsewhere nothing tells one folder from another.
#[cfg(not(unix))]
fn is_at(_: &Dir, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests;
