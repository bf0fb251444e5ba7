//! Compares and writes committed schemas: a folder with one file per tool.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::provider::{self, Dialect};
use crate::tool::Definition;

/// The state of one schema file of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchemaFileChange {
    /// The name of the file.
    pub file: String,
    /// How it differs.
    pub state: SchemaFileState,
}

/// How a file differs from the current schema of its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum SchemaFileState {
    /// It holds the current schema.
    Same,
    /// The tool has no file.
    Missing,
    /// It holds another schema.
    Changed,
    /// The file has no tool.
    Stale,
}

impl SchemaFileChange {
    /// Returns true if nothing is left to do. A missing or changed file is settled once it was
    /// `written`.
    ///
    /// A stale file is never deleted, because `folder` may not be the one that the user meant.
    #[doc(hidden)]
    pub fn is_settled(&self, written: bool) -> bool {
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

/// Compares the files of `folder` with `tools`. Writes those that differ if `write` is set. Looks
/// for stale files if `all` says that `tools` is the complete list.
pub fn compare_schema_files(
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
        // A checkout on Windows may have converted line endings to CRLF.
        Ok(found) if found.replace("\r\n", "\n") == wanted => Ok(SchemaFileState::Same),
        Ok(_) => Ok(SchemaFileState::Changed),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(SchemaFileState::Missing),
            io::ErrorKind::InvalidData => Ok(SchemaFileState::Changed),
            _ => Err(error),
        },
    }
}

/// Returns the schema files that have no tool.
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
