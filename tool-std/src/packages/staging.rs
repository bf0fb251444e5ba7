//! Writes a package into its folder: into a fresh folder first, then with one rename.
//!
//! **Invariant:** a folder of a skill has either all old files or all new ones; a failed
//! installation leaves nothing behind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tool_sdk::ToolError;

use super::package::{PackageContent, PackageFile};

/// How the names of unfinished folders begin; discovery passes them over.
const PREFIX: &str = ".staging-";

/// How many names are tried for a fresh folder.
const MAX_TRIES: u32 = 1000;

/// Whether a folder of the same name is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplacementPolicy {
    /// A folder that is there is an error.
    Refused,
    /// It is replaced as a whole.
    Allowed,
}

/// A folder in which skills are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetFolder {
    /// The folder of the project or of the program.
    pub(crate) base: PathBuf,
    /// The folders below it, none of which may be a link.
    pub(crate) below: &'static str,
}

impl TargetFolder {
    pub(crate) fn path(&self) -> PathBuf {
        self.base.join(self.below)
    }

    /// Creates the folders that are missing.
    fn create(&self) -> io::Result<PathBuf> {
        create_private_folders(&self.base)?;
        let mut path = self.base.clone();
        for component in self.below.split('/') {
            path.push(component);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            if !fs::symlink_metadata(&path)?.is_dir() {
                let text = format!("`{}` is a link or a file", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        Ok(path)
    }
}

/// Creates the state folder and what is missing above it, for the user alone.
pub(crate) fn create_private_folders(path: &Path) -> io::Result<()> {
    private_dir_builder().recursive(true).create(path)
}

/// Installs the package as `folder/name`.
pub(crate) fn install_package(
    package: &PackageContent,
    folder: &TargetFolder,
    name: &str,
    replacement: ReplacementPolicy,
) -> Result<(), ToolError> {
    let failed = |error: io::Error| write_error(&folder.path().join(name), error);
    let parent = folder.create().map_err(failed)?;
    let staging = StagingFolder::create(&parent).map_err(failed)?;
    let fresh = staging.path.join("new");
    write_files(package, &fresh).map_err(failed)?;
    let target = parent.join(name);
    if fs::symlink_metadata(&target).is_ok() {
        if replacement == ReplacementPolicy::Refused {
            let text = format_args!("`{}` exists already", target.display());
            return Err(ToolError::conflict(text));
        }
        let old = staging.path.join("old");
        fs::rename(&target, &old).map_err(failed)?;
        return fs::rename(&fresh, &target).map_err(|error| restore_old(staging, &target, error));
    }
    fs::rename(&fresh, &target).map_err(failed)
}

/// Puts the old files back after `error`. Where that fails, too, the staging folder stays, because
/// it has the only copy. Returns the error of the installation.
fn restore_old(staging: StagingFolder, target: &Path, error: io::Error) -> ToolError {
    let old = staging.path.join("old");
    let Err(second) = fs::rename(&old, target) else { return write_error(target, error) };
    // Dropping it would remove the old files.
    std::mem::forget(staging);
    let text = format_args!(
        "cannot write `{}`: {error}; its old files are in `{}`, because they could not be put back: \
         {second}",
        target.display(),
        old.display()
    );
    ToolError::failed(text).hint("the user moves them back").source(error)
}

/// Removes the folder of a skill with one rename.
pub(crate) fn remove_package(folder: &Path) -> Result<(), ToolError> {
    let failed = |error: io::Error| write_error(folder, error);
    let parent = folder.parent().unwrap_or(folder);
    let staging = StagingFolder::create(parent).map_err(failed)?;
    fs::rename(folder, staging.path.join("old")).map_err(failed)
}

fn write_error(path: &Path, error: io::Error) -> ToolError {
    ToolError::failed(format_args!("cannot write `{}`: {error}", path.display())).source(error)
}

/// A folder that is removed with everything in it.
struct StagingFolder {
    path: PathBuf,
}

impl StagingFolder {
    /// Creates a folder that did not exist before.
    fn create(parent: &Path) -> io::Result<Self> {
        let process = std::process::id();
        for number in 0..MAX_TRIES {
            let path = parent.join(format!("{PREFIX}{process}-{number}"));
            match private_dir_builder().create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many unfinished installations"))
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(unix)]
fn private_dir_builder() -> fs::DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private_dir_builder() -> fs::DirBuilder {
    fs::DirBuilder::new()
}

fn write_files(package: &PackageContent, folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (name, file) in &package.files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        write_new_file(&path, file)?;
    }
    Ok(())
}

fn write_new_file(path: &Path, file: &PackageFile) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if file.is_executable { 0o755 } else { 0o644 });
    }
    let mut handle: File = options.open(path)?;
    handle.write_all(&file.bytes)?;
    handle.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> PackageContent {
        let mut package = PackageContent::default();
        for (name, is_executable) in [("SKILL.md", false), ("scripts/run.sh", true)] {
            let bytes = text.as_bytes().to_vec();
            package.files.insert(name.to_owned(), PackageFile { bytes, is_executable });
        }
        package
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    // F114, SK1
    #[test]
    fn a_package_is_installed_replaced_and_removed_as_a_whole() {
        let temp = tempfile::tempdir().unwrap();
        let folder = TargetFolder { base: temp.path().join("state"), below: "skills" };
        let parent = folder.path();
        install_package(&package("one"), &folder, "a", ReplacementPolicy::Refused).unwrap();
        assert_eq!(fs::read(parent.join("a/scripts/run.sh")).unwrap(), b"one");
        let error = install_package(&package("two"), &folder, "a", ReplacementPolicy::Refused);
        assert!(error.unwrap_err().message().contains("exists already"));
        assert_eq!(fs::read(parent.join("a/SKILL.md")).unwrap(), b"one");
        fs::write(parent.join("a/extra"), "x").unwrap();
        install_package(&package("two"), &folder, "a", ReplacementPolicy::Allowed).unwrap();
        assert_eq!(fs::read(parent.join("a/SKILL.md")).unwrap(), b"two");
        assert!(!parent.join("a/extra").exists());
        assert_eq!(names(&parent), ["a"]);
        remove_package(&parent.join("a")).unwrap();
        assert_eq!(names(&parent), [""; 0]);
    }

    // The old files are kept where they cannot be put back.
    #[test]
    fn a_failed_restore_keeps_the_old_files() {
        let temp = tempfile::tempdir().unwrap();
        let target = temp.path().join("a");
        let failed = || io::Error::other("no space");
        for is_blocked in [false, true] {
            let staging = StagingFolder::create(temp.path()).unwrap();
            let folder = staging.path.clone();
            fs::create_dir(folder.join("old")).unwrap();
            fs::write(folder.join("old/SKILL.md"), "old").unwrap();
            // In the second round the restored folder is in the way.
            let error = restore_old(staging, &target, failed());
            assert_eq!(folder.join("old/SKILL.md").exists(), is_blocked);
            let named = folder.join("old").display().to_string();
            assert_eq!(error.message().contains(&named), is_blocked, "{}", error.message());
            assert!(error.message().contains("no space"), "{}", error.message());
        }
        assert_eq!(fs::read(target.join("SKILL.md")).unwrap(), b"old");
    }

    // SK2
    #[cfg(unix)]
    #[test]
    fn files_get_plain_modes_and_links_are_not_followed() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().unwrap();
        let folder = TargetFolder { base: temp.path().join("state"), below: "skills" };
        let parent = folder.path();
        install_package(&package("x"), &folder, "a", ReplacementPolicy::Refused).unwrap();
        let mode = |name: &str| fs::metadata(parent.join(name)).unwrap().permissions().mode();
        assert_eq!(mode("a/SKILL.md") & 0o7111, 0);
        assert_eq!(mode("a/scripts/run.sh") & 0o7100, 0o100);

        let elsewhere = temp.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let linked = temp.path().join("root/.agents");
        fs::create_dir_all(linked.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &linked).unwrap();
        let linked = TargetFolder { base: temp.path().join("root"), below: ".agents/skills" };
        let refused = install_package(&package("x"), &linked, "a", ReplacementPolicy::Refused);
        assert!(refused.unwrap_err().message().contains("is a link"));
        assert_eq!(names(&elsewhere), [""; 0]);
    }
}
