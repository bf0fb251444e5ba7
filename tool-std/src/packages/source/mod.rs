//! Reads a package from its source: a folder, a zip file or bundle, a tar file.
//!
//! Nothing is written, and nothing of the source runs.

mod folder;
mod git;
mod tar_file;
mod zip_file;

use std::io;
use std::path::Path;

use tool_sdk::ToolError;

use super::host_files::read_bounded_file;
use super::package::{PackageContent, PackageLimits, too_large};

/// A package, and what is known about its source.
#[derive(Clone, Debug)]
pub(crate) struct SourcePackage {
    pub(crate) package: PackageContent,
    /// What kind of source it is, for people.
    pub(crate) kind: &'static str,
    /// The commit of a folder that is a git repository.
    pub(crate) commit: Option<String>,
}

/// Reads the package at `path`.
pub(crate) fn read_source(path: &Path, limits: PackageLimits) -> Result<SourcePackage, ToolError> {
    let facts = path.metadata().map_err(|error| unreadable(path, error))?;
    if facts.is_dir() {
        let package = folder::read_folder(path, limits)?;
        let commit = git::find_commit(path);
        let kind = if commit.is_some() { "git repository" } else { "folder" };
        return Ok(SourcePackage { package, kind, commit });
    }
    if !facts.is_file() {
        let text = format_args!("`{}` is neither a file nor a folder", path.display());
        return Err(ToolError::invalid_args(text));
    }
    let bytes =
        read_bounded_file(path, limits.total_bytes).map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => too_large(error),
            _ => unreadable(path, error),
        })?;
    read_archive(&bytes, path, limits)
}

/// Returns the names of the files in a folder, without reading them.
pub(crate) fn list_file_names(
    folder: &Path,
    limits: PackageLimits,
) -> Result<Vec<String>, ToolError> {
    folder::list_folder_files(folder, limits)
}

/// Reads an archive by its first bytes; its name does not count.
pub(crate) fn read_archive(
    bytes: &[u8],
    path: &Path,
    limits: PackageLimits,
) -> Result<SourcePackage, ToolError> {
    let is_tar = bytes.get(257..262) == Some(b"ustar");
    let (package, kind) = match bytes {
        [b'P', b'K', 3, 4, ..] => {
            let package = zip_file::read_zip(bytes, limits)?;
            let is_bundle = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("mcpb"));
            (package, if is_bundle { "MCP bundle" } else { "zip file" })
        }
        [0x1f, 0x8b, ..] => (tar_file::read_tar_gz(bytes, limits)?, "tar.gz file"),
        _ if is_tar => (tar_file::read_tar(bytes, bytes.len() as u64, limits)?, "tar file"),
        _ => {
            let text = format_args!("`{}` is not an archive of a known kind", path.display());
            return Err(ToolError::invalid_args(text)
                .hint("name a folder, or a file in the format zip, mcpb, tar or tar.gz"));
        }
    };
    Ok(SourcePackage { package, kind, commit: None })
}

fn unreadable(path: &Path, error: io::Error) -> ToolError {
    let text = format_args!("cannot read `{}`: {error}", path.display());
    let unreadable = match error.kind() {
        io::ErrorKind::NotFound if has_url_scheme(path) => ToolError::not_found(text).hint(
            "URLs are not fetched; clone the repository or download the file, and name its path",
        ),
        io::ErrorKind::NotFound => ToolError::not_found(text),
        _ => ToolError::failed(text),
    };
    unreadable.source(error)
}

/// Whether the path was meant as a URL, such as `https://example.com/x` or `git@example.com:x`.
fn has_url_scheme(path: &Path) -> bool {
    path.components().any(|part| {
        let part = part.as_os_str().to_string_lossy();
        matches!(&*part, "git:" | "http:" | "https:" | "ssh:") || part.starts_with("git@")
    })
}

#[cfg(test)]
mod tests;
