//! Committed schemas: one file per tool in a folder, compared and written.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::provider::{self, Dialect};
use crate::tool::Definition;

/// How one file of the folder stands to its tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    pub(crate) file: String,
    pub(crate) state: State,
}

/// How a file differs from what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Same,
    Missing,
    Changed,
    /// There is no such tool.
    Stale,
}

impl Change {
    /// Whether nothing is left to do; a file that was `written` is no longer missing.
    ///
    /// A stale one is never deleted: the folder may be another one than the user thinks.
    pub(crate) fn is_fine(&self, written: bool) -> bool {
        match self.state {
            State::Same => true,
            State::Missing | State::Changed => written,
            State::Stale => false,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.state {
            State::Same => "same",
            State::Missing => "missing",
            State::Changed => "changed",
            State::Stale => "stale",
        };
        write!(f, "{word:8} {}", self.file)
    }
}

/// Compares the files of `folder` with `tools`; writes those that differ when `write` says
/// so, and looks for stale ones when `tools` are `all` that there are.
pub(crate) fn compare(
    folder: &Path,
    tools: &[Definition],
    dialect: Dialect,
    all: bool,
    write: bool,
) -> io::Result<Vec<Change>> {
    if write {
        std::fs::create_dir_all(folder)?;
    }
    let mut changes = Vec::new();
    for tool in tools {
        let file = format!("{}.json", tool.name);
        let path = folder.join(&file);
        let wanted = format!("{:#}\n", provider::tool(tool, dialect));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
        let state = state(&path, &wanted).map_err(named)?;
        if write && state != State::Same {
            std::fs::write(&path, wanted).map_err(named)?;
        }
        changes.push(Change { file, state });
    }
    if all {
        let stale = stale(folder, &changes)?;
        changes.extend(stale);
    }
    Ok(changes)
}

fn state(path: &Path, wanted: &str) -> io::Result<State> {
    match std::fs::read_to_string(path) {
        // A checkout on Windows may have turned the line ends.
        Ok(found) if found.replace("\r\n", "\n") == wanted => Ok(State::Same),
        Ok(_) => Ok(State::Changed),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(State::Missing),
            io::ErrorKind::InvalidData => Ok(State::Changed),
            _ => Err(error),
        },
    }
}

/// Schema files without a tool.
fn stale(folder: &Path, known: &[Change]) -> io::Result<Vec<Change>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut stale = Vec::new();
    for entry in entries {
        let file = entry?.file_name().to_string_lossy().into_owned();
        if file.ends_with(".json") && known.iter().all(|change| change.file != file) {
            stale.push(Change { file, state: State::Stale });
        }
    }
    stale.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(stale)
}
