//! Committed schemas: one file per tool in a folder, compared and written.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::provider::{self, Dialect};
use crate::tool::Definition;

/// How one file of the folder stands to its tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SchemaFileChange {
    pub(crate) file: String,
    pub(crate) state: SchemaFileState,
}

/// How a file differs from what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SchemaFileState {
    Same,
    Missing,
    Changed,
    /// There is no such tool.
    Stale,
}

impl SchemaFileChange {
    /// Whether nothing is left to do; a file that was `written` is no longer missing.
    ///
    /// A stale one is never deleted: the folder may be another one than the user thinks.
    pub(crate) fn is_settled(&self, written: bool) -> bool {
        match self.state {
            SchemaFileState::Same => true,
            SchemaFileState::Missing | SchemaFileState::Changed => written,
            SchemaFileState::Stale => false,
        }
    }
}

impl fmt::Display for SchemaFileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.state {
            SchemaFileState::Same => "same",
            SchemaFileState::Missing => "missing",
            SchemaFileState::Changed => "changed",
            SchemaFileState::Stale => "stale",
        };
        write!(f, "{word:8} {}", self.file)
    }
}

/// Compares the files of `folder` with `tools`; writes those that differ when `write` says
/// so, and looks for stale ones when `tools` are `all` that there are.
pub(crate) fn compare_schema_files(
    folder: &Path,
    tools: &[Definition],
    dialect: Dialect,
    all: bool,
    write: bool,
) -> io::Result<Vec<SchemaFileChange>> {
    if write {
        std::fs::create_dir_all(folder)?;
    }
    let mut changes = Vec::new();
    for tool in tools {
        let file = format!("{}.json", tool.name);
        let path = folder.join(&file);
        let wanted = format!("{:#}\n", provider::encode_tool(tool, dialect));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
        let state = file_state(&path, &wanted).map_err(named)?;
        if write && state != SchemaFileState::Same {
            std::fs::write(&path, wanted).map_err(named)?;
        }
        changes.push(SchemaFileChange { file, state });
    }
    if all {
        let stale = find_stale_files(folder, &changes)?;
        changes.extend(stale);
    }
    Ok(changes)
}

fn file_state(path: &Path, wanted: &str) -> io::Result<SchemaFileState> {
    match std::fs::read_to_string(path) {
        // A checkout on Windows may have turned the line ends.
        Ok(found) if found.replace("\r\n", "\n") == wanted => Ok(SchemaFileState::Same),
        Ok(_) => Ok(SchemaFileState::Changed),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(SchemaFileState::Missing),
            io::ErrorKind::InvalidData => Ok(SchemaFileState::Changed),
            _ => Err(error),
        },
    }
}

/// Schema files without a tool.
fn find_stale_files(
    folder: &Path,
    known: &[SchemaFileChange],
) -> io::Result<Vec<SchemaFileChange>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut stale = Vec::new();
    for entry in entries {
        let file = entry?.file_name().to_string_lossy().into_owned();
        if file.ends_with(".json") && known.iter().all(|change| change.file != file) {
            stale.push(SchemaFileChange { file, state: SchemaFileState::Stale });
        }
    }
    stale.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(stale)
}
