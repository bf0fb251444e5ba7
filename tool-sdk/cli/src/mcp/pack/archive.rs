//! The ZIP archive of an MCP bundle.
//!
//! The same files make the same bytes: entries are in a fixed order and have no time, so that a
//! published hash can be reproduced from the program.

use std::io::{Cursor, Write as _};

use serde_json::Value;
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::{ICON_FILE, PackedProgram};

/// Returns the bytes of the bundle.
pub(super) fn write_archive(program: &PackedProgram, manifest: &Value) -> ZipResult<Vec<u8>> {
    let plain = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default());
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, mode: u32, bytes: &[u8]| -> ZipResult<()> {
        archive.start_file(name, plain.unix_permissions(mode))?;
        Ok(archive.write_all(bytes)?)
    };
    add("manifest.json", 0o644, format!("{manifest:#}\n").as_bytes())?;
    if let Some(icon) = &program.icon {
        add(ICON_FILE, 0o644, icon)?;
    }
    add(&program.entry_point(), 0o755, &program.executable)?;
    Ok(archive.finish()?.into_inner())
}
