//! Reads the files of a folder; links are not followed.

use std::fs::{DirEntry, Metadata};
use std::io::{self, Read};
use std::path::Path;

use tool_sdk::ToolError;

use super::unreadable;
use crate::packages::host_files::{list_folder, open_regular_file};
use crate::packages::package::{PackageBuilder, PackageContent, PackageLimits};

/// How deep folders may lie in each other.
const MAX_DEPTH: usize = 32;

/// Opens a file of the folder.
type FileOpener = dyn Fn(&Path) -> io::Result<Box<dyn Read>>;

/// Reads a folder with everything below it.
pub(super) fn read_folder(path: &Path, limits: PackageLimits) -> Result<PackageContent, ToolError> {
    let mut package = PackageBuilder::new(limits, None);
    let open =
        |path: &Path| -> io::Result<Box<dyn Read>> { Ok(Box::new(open_regular_file(path)?)) };
    add_folder(&mut package, path, "", MAX_DEPTH, &open)?;
    Ok(package.finish())
}

/// Returns the names of the files of a folder and below it; no file is opened.
pub(super) fn list_folder_files(
    path: &Path,
    limits: PackageLimits,
) -> Result<Vec<String>, ToolError> {
    let mut package = PackageBuilder::new(limits, None);
    let open = |_: &Path| -> io::Result<Box<dyn Read>> { Ok(Box::new(io::empty())) };
    add_folder(&mut package, path, "", MAX_DEPTH, &open)?;
    Ok(package.finish().files.into_keys().collect())
}

fn add_folder(
    package: &mut PackageBuilder,
    path: &Path,
    name: &str,
    depth: usize,
    open: &FileOpener,
) -> Result<(), ToolError> {
    if depth == 0 {
        let text = format_args!("`{name}` lies in more than {MAX_DEPTH} folders");
        return Err(ToolError::invalid_args(text));
    }
    for entry in list_folder(path).map_err(|error| unreadable(path, error))? {
        let Ok(own_name) = entry.file_name().into_string() else {
            let text = format!("`{}` has a name that is not UTF-8", entry.path().display());
            return Err(ToolError::invalid_args(text));
        };
        let name = if name.is_empty() { own_name } else { format!("{name}/{own_name}") };
        if !package.count_entry(&name)? {
            add_entry(package, &entry, &name, depth, open)?;
        }
    }
    Ok(())
}

fn add_entry(
    package: &mut PackageBuilder,
    entry: &DirEntry,
    name: &str,
    depth: usize,
    open: &FileOpener,
) -> Result<(), ToolError> {
    let path = entry.path();
    let failed = |error| unreadable(&path, error);
    // Of the entry itself, not of what a link leads to.
    let facts = entry.metadata().map_err(failed)?;
    if facts.is_dir() {
        return add_folder(package, &path, name, depth - 1, open);
    }
    if !facts.is_file() {
        let what = if facts.is_symlink() { "a link" } else { "a device, pipe or socket" };
        return package.refuse(name, what);
    }
    let file = open(&path).map_err(failed)?;
    package.add_file(name, is_executable(&facts), file)
}

#[cfg(unix)]
fn is_executable(facts: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    facts.permissions().mode() & 0o111 != 0
}

/// Only Unix has the permission.
#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
}
