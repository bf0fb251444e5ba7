//! Reads the files of a zip file or of an MCP bundle, which is one.

use std::io::Cursor;

use tool_sdk::ToolError;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::packages::package::{PackageBuilder, PackageContent, PackageLimits, too_large};

/// The bits of a Unix mode that say what a file is.
const TYPE_BITS: u32 = 0o170_000;
const REGULAR_FILE: u32 = 0o100_000;

/// Reads all files of the archive.
pub(super) fn read_zip(bytes: &[u8], limits: PackageLimits) -> Result<PackageContent, ToolError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    if archive.len() > limits.entries {
        let most = limits.entries;
        return Err(too_large(format_args!("it has more than {most} files and folders")));
    }
    let mut package = PackageBuilder::new(limits, Some(bytes.len() as u64));
    for index in 0..archive.len() {
        let file = archive.by_index(index).map_err(damaged)?;
        let name = str::from_utf8(file.name_raw()).map_err(|_| {
            ToolError::invalid_args("the package names a file in another encoding than UTF-8")
        })?;
        let name = name.to_owned();
        if package.count_entry(&name)? || (file.is_dir() && name.ends_with('/')) {
            continue;
        }
        let mode = file.unix_mode().unwrap_or(REGULAR_FILE | 0o644);
        // Some programs leave the type out.
        let is_regular = matches!(mode & TYPE_BITS, REGULAR_FILE | 0);
        if !is_regular {
            let what = if file.is_symlink() { "a link" } else { "no regular file" };
            package.refuse(&name, what)?;
            continue;
        }
        package.add_file(&name, mode & 0o111 != 0, file)?;
    }
    Ok(package.finish())
}

fn damaged(error: ZipError) -> ToolError {
    ToolError::invalid_args(format_args!("the zip file cannot be read: {error}"))
        .hint("get the file again")
        .source(error)
}
