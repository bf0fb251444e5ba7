//! Compares one committed schema file with the tool that names it, including types.
//!
//! The macro checks what syntax shows and points at the parameter. Types are only known at run
//! time, so `#[tool(schema = "..")]` also generates a test that calls [`assert_schema`].
//!
//! **Invariant:** the order of keys is ignored; every other difference is reported.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::provider::{self, Dialect};
use super::schema_files::compare_values;
use crate::schema::Schema;
use crate::tool::Definition;

/// Compares the definition of a tool with `file`, a path relative to the package in `root`.
///
/// The file holds the output of `schema --write`, or the schema of the arguments alone. With
/// `TOOL_SDK_BLESS=1` in the environment the file is written instead.
///
/// # Panics
///
/// Panics with a list of all differences.
#[track_caller]
pub fn assert_schema(definition: &Definition, root: &str, file: &str) {
    let path = Path::new(root).join(file);
    let wanted = provider::encode_tool(definition, Dialect::Mcp);
    if std::env::var_os("TOOL_SDK_BLESS").is_some_and(|value| value == "1") {
        let written = write_schema_file(&path, &wanted);
        written.unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
        return;
    }
    let drift = match std::fs::read_to_string(&path) {
        Ok(text) => find_drift(definition, &wanted, &text),
        Err(error) => vec![format!("it cannot be read: {error}")],
    };
    assert!(
        drift.is_empty(),
        "schema `{file}` of `{}` drifted:\n{}\nread the difference, then run the test with TOOL_SDK_BLESS=1",
        definition.name,
        drift.join("\n")
    );
}

fn write_schema_file(path: &Path, wanted: &Value) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, format!("{wanted:#}\n"))
}

/// Returns the differences between the committed `text` and `wanted`.
fn find_drift(definition: &Definition, wanted: &Value, text: &str) -> Vec<String> {
    let committed: Value = match serde_json::from_str(text) {
        Ok(committed) => committed,
        Err(error) => return vec![format!("it must be JSON: {error}")],
    };
    let mut drift = Vec::new();
    if committed.get("inputSchema").is_some() {
        compare_values("", Some(&committed), Some(wanted), &mut drift);
        return drift;
    }
    let bare = committed.get("parameters").unwrap_or(&committed);
    match Schema::from_value(bare.clone()) {
        Ok(bare) => {
            let (there, here) = (bare.to_value(), definition.parameters.to_value());
            compare_values("", Some(&there), Some(&here), &mut drift);
        }
        Err(error) => drift.push(error.to_string()),
    }
    drift
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::name::ToolName;

    fn roll() -> Definition {
        let parameters = Schema::from_value(json!({
            "type": "object",
            "properties": { "sides": { "type": "integer", "description": "How many sides." } },
            "required": ["sides"],
            "additionalProperties": false
        }));
        Definition::new(ToolName::from_static("roll"), "Roll a die.", parameters.unwrap())
    }

    #[track_caller]
    fn check(committed: &Value, expected: &[&str]) {
        let wanted = provider::encode_tool(&roll(), Dialect::Mcp);
        assert_eq!(find_drift(&roll(), &wanted, &committed.to_string()), expected);
    }

    #[test]
    fn every_difference_is_told_with_its_place() {
        let mut committed = provider::encode_tool(&roll(), Dialect::Mcp);
        check(&committed, &[]);
        committed["inputSchema"]["properties"]["sides"]["type"] = json!("string");
        committed["description"] = json!("Roll.");
        committed["inputSchema"]["properties"]["count"] = json!({});
        check(
            &committed,
            &[
                r#"/description: the file has "Roll.", the tool "Roll a die.""#,
                r#"/inputSchema/properties/sides/type: the file has "string", the tool "integer""#,
                "/inputSchema/properties/count: the file has {}, the tool nothing",
            ],
        );
    }

    #[test]
    fn the_schema_of_the_arguments_may_stand_alone() {
        let bare = roll().parameters.to_value();
        check(&bare, &[]);
        check(&json!({ "name": "roll", "parameters": bare }), &[]);
        check(
            &json!({ "type": "object" }),
            &[
                r#"/properties: the file has nothing, the tool {"sides":{"type":"integer","description":"How many sides."}}"#,
                r#"/required: the file has nothing, the tool ["sides"]"#,
                "/additionalProperties: the file has nothing, the tool false",
            ],
        );
    }

    #[test]
    fn what_cannot_be_compared_drifted() {
        let told = find_drift(&roll(), &json!({}), "{");
        assert_eq!(told, ["it must be JSON: EOF while parsing an object at line 1 column 1"]);
        check(&json!([]), &["at the root: a schema of parameters must be a JSON object"]);
    }
}
