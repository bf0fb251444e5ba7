//! The location of private files: checks that only the user can write there.
//!
//! **Invariant:** no file is read before its owner and mode are checked. Links are never followed.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::PrivateFileError;

/// A folder for private files, and the folders that tools may write to.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: PathBuf,
    writable_roots: Vec<PathBuf>,
}

impl PrivateFolder {
    #[doc(hidden)]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, writable_roots: Vec::new() }
    }

    /// Adds folders that tools may write to. The private folder must not lie inside of one.
    #[doc(hidden)]
    pub fn add_writable_roots(&mut self, roots: &[PathBuf]) {
        let real = |root: &PathBuf| root.canonicalize().unwrap_or_else(|_| root.clone());
        self.writable_roots.extend(roots.iter().map(real));
    }

    /// Returns the canonical path of the folder after checking it, or `None` if it does not exist.
    #[doc(hidden)]
    pub fn find_folder(&self) -> Result<Option<PathBuf>, PrivateFileError> {
        let Some(metadata) = metadata_if_exists(&self.folder)? else { return Ok(None) };
        check_private(&self.folder, &metadata)?;
        if !metadata.is_dir() {
            return Err(PrivateFileError::untrusted(&self.folder, "it is not a folder"));
        }
        let real =
            self.folder.canonicalize().map_err(PrivateFileError::io("look at", &self.folder))?;
        check_outside_roots(&real, &self.writable_roots)?;
        Ok(Some(real))
    }

    /// Returns the canonical path of the folder, and creates the folder if it is missing.
    #[doc(hidden)]
    pub fn create_folder(&self) -> Result<PathBuf, PrivateFileError> {
        if let Some(folder) = self.find_folder()? {
            return Ok(folder);
        }
        self.check_outside(&self.writable_roots)?;
        create_private_folder(&self.folder).map_err(PrivateFileError::io("make", &self.folder))?;
        self.find_folder()?.ok_or_else(|| {
            PrivateFileError::untrusted(&self.folder, "it was removed while it was created")
        })
    }

    /// Returns whether the canonical `path` is the folder or lies inside of it, ignoring ASCII
    /// case as some file systems do.
    pub(crate) fn contains_path(&self, path: &Path) -> bool {
        is_at_or_below(path, &canonicalize_existing(&self.folder))
    }

    /// Fails if the folder lies, or would be created, inside of one of the canonical `roots`.
    pub(crate) fn check_outside(&self, roots: &[PathBuf]) -> Result<(), PrivateFileError> {
        if roots.is_empty() {
            return Ok(());
        }
        let whole = std::path::absolute(&self.folder);
        let whole = whole.map_err(PrivateFileError::io("look at", &self.folder))?;
        match whole.ancestors().find_map(|above| above.canonicalize().ok()) {
            Some(real) => check_outside_roots(&real, roots),
            None => Ok(()),
        }
    }
}

/// Canonicalizes the longest existing prefix of `path`, and appends the missing components.
pub(crate) fn canonicalize_existing(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = whole.ancestors().find_map(|above| Some((above.canonicalize().ok()?, above)));
    match there {
        Some((real, above)) => match whole.strip_prefix(above) {
            // Joining an empty path would add a separator.
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
        None => whole,
    }
}

/// Returns whether `path` is `place` or lies below it, ignoring ASCII case.
pub(crate) fn is_at_or_below(path: &Path, place: &Path) -> bool {
    let mut names = path.iter();
    place.iter().all(|expected| names.next().is_some_and(|it| it.eq_ignore_ascii_case(expected)))
}

fn check_outside_roots(real: &Path, roots: &[PathBuf]) -> Result<(), PrivateFileError> {
    if roots.iter().any(|root| real.starts_with(root)) {
        return Err(PrivateFileError::untrusted(real, "tools may write to it"));
    }
    Ok(())
}

/// Returns the metadata of `path` without following links, or `None` if it does not exist.
pub fn metadata_if_exists(path: &Path) -> Result<Option<Metadata>, PrivateFileError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PrivateFileError::io("look at", path)(error)),
    }
}

/// Checks that `metadata` is that of a regular file to which only the user can write.
pub(crate) fn check_private_file(path: &Path, metadata: &Metadata) -> Result<(), PrivateFileError> {
    check_private(path, metadata)?;
    if !metadata.is_file() {
        return Err(PrivateFileError::untrusted(path, "it is not a file"));
    }
    Ok(())
}

/// Returns the metadata of a file after checking that only the user can write to it, or `None` if it
/// does not exist. The file is not opened.
pub fn check_private_path(path: &Path) -> Result<Option<Metadata>, PrivateFileError> {
    let Some(metadata) = metadata_if_exists(path)? else { return Ok(None) };
    check_private_file(path, &metadata)?;
    Ok(Some(metadata))
}

/// Opens a file for reading, after checking that only the user can write to it.
pub fn open_private(path: &Path) -> Result<Option<File>, PrivateFileError> {
    let Some(metadata) = metadata_if_exists(path)? else { return Ok(None) };
    check_private_file(path, &metadata)?;
    match open_options().read(true).open(path) {
        Ok(file) => check_opened(path, file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PrivateFileError::io("open", path)(error)),
    }
}

/// Opens a lock file, and creates it if it is missing.
pub(crate) fn open_lock_file(path: &Path) -> Result<File, PrivateFileError> {
    if let Some(metadata) = metadata_if_exists(path)? {
        check_private_file(path, &metadata)?;
    }
    let file = open_options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(PrivateFileError::io("open", path))?;
    check_opened(path, file)
}

/// Creates a new file with mode `0o600`. Fails if `path` exists, also as a link.
pub fn create_new(path: &Path) -> io::Result<File> {
    open_options().write(true).create_new(true).open(path)
}

/// Appends `content` to `file`. Writes nothing if the file would exceed the file size limit.
pub fn append_to(mut file: &File, content: &[u8]) -> io::Result<()> {
    check_size_limit(file.metadata()?.len().saturating_add(content.len() as u64))?;
    file.write_all(content)
}

/// Fails with `EFBIG` if `bytes` exceeds the file size limit (`RLIMIT_FSIZE`). A write over the
/// limit would kill the process by `SIGXFSZ`.
#[cfg(unix)]
fn check_size_limit(bytes: u64) -> io::Result<()> {
    use rustix::process::{Resource, getrlimit};

    let most = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    if bytes <= most { Ok(()) } else { Err(rustix::io::Errno::FBIG.into()) }
}

#[cfg(not(unix))]
fn check_size_limit(_: u64) -> io::Result<()> {
    Ok(())
}

/// Checks the opened file again, because the path may have been replaced after the first check.
fn check_opened(path: &Path, file: File) -> Result<File, PrivateFileError> {
    let metadata = file.metadata().map_err(PrivateFileError::io("look at", path))?;
    check_private_file(path, &metadata)?;
    Ok(file)
}

#[cfg(unix)]
fn check_private(path: &Path, metadata: &Metadata) -> Result<(), PrivateFileError> {
    use std::os::unix::fs::MetadataExt as _;

    /// Write permission for group and others.
    const BY_OTHERS: u32 = 0o022;
    let refused = |why| Err(PrivateFileError::untrusted(path, why));
    if metadata.is_symlink() {
        return refused("it is a link");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refused("it belongs to another user");
    }
    if metadata.mode() & BY_OTHERS != 0 {
        return refused("others may write to it");
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(path: &Path, metadata: &Metadata) -> Result<(), PrivateFileError> {
    if metadata.is_symlink() {
        return Err(PrivateFileError::untrusted(path, "it is a link"));
    }
    Ok(())
}

/// Creates a folder with mode `0o700`, and its missing parents.
#[cfg(unix)]
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

/// Flushes the entries of `folder` to disk.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Other systems cannot open folders and need no flush.
#[cfg(not(unix))]
pub fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The options with which every file is opened: no symbolic links, no blocking on pipes, and mode
/// `0o600` for new files.
#[cfg(unix)]
pub(crate) fn open_options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;

    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

#[cfg(not(unix))]
pub(crate) fn open_options() -> OpenOptions {
    OpenOptions::new()
}
