//! Compares and writes committed schemas: a folder with one file per tool.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::provider::{self, Dialect};
use crate::tool::Definition;

/// The state of one schema file of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchemaFileChange {
    /// The name of the file.
    pub file: String,
    /// How it differs.
    pub state: SchemaFileState,
    /// Each place at which a changed file differs from the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
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
        write!(f, "{word:8} {}", self.file)?;
        self.differences.iter().try_for_each(|difference| write!(f, "\n         {difference}"))
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
        let encoded = provider::encode_tool(tool, dialect);
        let wanted = format!("{encoded:#}\n");
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
        let (state, differences) = file_state(&path, &encoded, &wanted).map_err(named)?;
        if write && state != SchemaFileState::Same {
            std::fs::write(&path, wanted).map_err(named)?;
        }
        changes.push(SchemaFileChange { file, state, differences });
    }
    if all {
        let stale = find_stale_files(folder, &changes)?;
        changes.extend(stale);
    }
    Ok(changes)
}

/// Returns the state of a file that should hold the text `wanted` of `encoded`, and how its value
/// differs.
fn file_state(
    path: &Path,
    encoded: &Value,
    wanted: &str,
) -> io::Result<(SchemaFileState, Vec<String>)> {
    match std::fs::read_to_string(path) {
        // A checkout on Windows may have converted line endings to CRLF.
        Ok(found) if found.replace("\r\n", "\n") == wanted => {
            Ok((SchemaFileState::Same, Vec::new()))
        }
        Ok(found) => Ok((SchemaFileState::Changed, find_differences(&found, encoded))),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok((SchemaFileState::Missing, Vec::new())),
            io::ErrorKind::InvalidData => {
                Ok((SchemaFileState::Changed, vec!["the file is not UTF-8".to_owned()]))
            }
            _ => Err(error),
        },
    }
}

/// Returns each place at which the text `found` differs from the schema `encoded`.
fn find_differences(found: &str, encoded: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    match serde_json::from_str(found) {
        Ok(found) => compare_values("", Some(&found), Some(encoded), &mut differences),
        Err(error) => differences.push(format!("the file is not JSON: {error}")),
    }
    if differences.is_empty() {
        differences.push("only the order of keys or the white space differs".to_owned());
    }
    differences
}

/// Appends one line for each JSON pointer at which the two values differ.
pub(crate) fn compare_values(
    at: &str,
    there: Option<&Value>,
    here: Option<&Value>,
    drift: &mut Vec<String>,
) {
    if let (Some(Value::Object(there)), Some(Value::Object(here))) = (there, here) {
        let added = here.keys().filter(|key| !there.contains_key(*key));
        for key in there.keys().chain(added) {
            compare_values(&format!("{at}/{key}"), there.get(key), here.get(key), drift);
        }
    } else if there != here {
        let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), ToString::to_string);
        drift.push(format!("{at}: the file has {}, the tool {}", shown(there), shown(here)));
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
            stale.push(SchemaFileChange {
                file,
                state: SchemaFileState::Stale,
                differences: Vec::new(),
            });
        }
    }
    stale.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::name::ToolName;
    use crate::schema::Schema;

    #[test]
    fn changed_file_lists_each_difference() {
        let folder = tempfile::tempdir().unwrap();
        let schema = json!({
            "type": "object",
            "properties": { "sides": { "type": "integer", "description": "How many sides." } },
            "additionalProperties": false
        });
        let schema = Schema::from_value(schema).unwrap();
        let tool = Definition::new(ToolName::from_static("roll"), "Roll a die.", schema);
        let compare = |write| {
            let tools = std::slice::from_ref(&tool);
            compare_schema_files(folder.path(), tools, Dialect::Mcp, true, write).unwrap()
        };
        compare(true);
        let file = folder.path().join("roll.json");
        let text = std::fs::read_to_string(&file).unwrap();
        for (committed, expected) in [
            (
                text.replace("\"integer\"", "\"string\""),
                r#"/inputSchema/properties/sides/type: the file has "string", the tool "integer""#,
            ),
            (text.replace("  ", " "), "only the order of keys or the white space differs"),
            (String::new(), "the file is not JSON: EOF while parsing a value at line 1 column 0"),
        ] {
            std::fs::write(&file, committed).unwrap();
            let changes = compare(false);
            assert_eq!(changes[0].to_string(), format!("changed  roll.json\n         {expected}"));
        }
    }
}
