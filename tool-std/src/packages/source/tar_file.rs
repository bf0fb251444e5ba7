//! Reads the files of a tar file, which gzip may have compressed.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};
use tool_sdk::ToolError;

use crate::packages::package::{PackageBuilder, PackageContent, PackageLimits};

/// What the headers of one entry may have beside its content, in bytes.
const HEADER_BYTES: u64 = 16 << 10;

/// Reads a tar file that is compressed with gzip.
pub(super) fn read_tar_gz(
    bytes: &[u8],
    limits: PackageLimits,
) -> Result<PackageContent, ToolError> {
    read_tar(MultiGzDecoder::new(bytes), bytes.len() as u64, limits)
}

/// Reads a tar file. `archive_bytes` is its size as it is stored.
pub(super) fn read_tar(
    stream: impl Read,
    archive_bytes: u64,
    limits: PackageLimits,
) -> Result<PackageContent, ToolError> {
    let mut package = PackageBuilder::new(limits, Some(archive_bytes));
    let headers = HEADER_BYTES.saturating_mul(limits.entries as u64);
    // Also what is skipped counts: long names, and the content of what is left out.
    let stream = stream.take(package.bytes_left().saturating_add(headers.min(limits.total_bytes)));
    let mut archive = Archive::new(stream);
    for entry in archive.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let kind = entry.header().entry_type();
        let name = entry_name(&entry.path_bytes())?;
        if package.count_entry(&name)?
            || matches!(kind, EntryType::Directory | EntryType::XGlobalHeader)
        {
            continue;
        }
        match kind {
            EntryType::Regular | EntryType::Continuous => {
                let mode = entry.header().mode().map_err(damaged)?;
                package.add_file(&name, mode & 0o111 != 0, entry)?;
            }
            EntryType::Symlink | EntryType::Link => package.refuse(&name, "a link")?,
            _ => package.refuse(&name, "no regular file")?,
        }
    }
    Ok(package.finish())
}

/// Returns the path of an entry. `tar` writes `./` before the paths below the current folder.
fn entry_name(bytes: &[u8]) -> Result<String, ToolError> {
    let name = str::from_utf8(bytes).map_err(|_| {
        ToolError::invalid_args("the package names a file in another encoding than UTF-8")
    })?;
    Ok(name.strip_prefix("./").unwrap_or(name).to_owned())
}

fn damaged(error: io::Error) -> ToolError {
    ToolError::invalid_args(format_args!("the tar file cannot be read: {error}"))
        .hint("get the file again; it may also be larger than what is read")
        .source(error)
}
