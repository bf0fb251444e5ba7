//! Edits a JSON file, with comments or without, and keeps everything else byte for byte.
//!
//! **Invariant:** an edited text is only returned if it parses to the old data with the one entry
//! changed.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use crate::exit::{CommandError, Result};

/// The byte order mark at the start of some files.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Parses a JSON file; comments and trailing commas are accepted, an empty file is an empty object.
pub(crate) fn parse_json(text: &str, path: &Path) -> Result<Map<String, Value>> {
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let parsed: Option<Value> = jsonc_parser::parse_to_serde_value(text, &parse_options())
        .map_err(|error| syntax_error(&error, path))?;
    match parsed {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => {
            Err(CommandError::config(format_args!("`{}` must hold a JSON object", path.display()))
                .hint("nothing was changed"))
        }
    }
}

/// Sets the members of the entry `table.name` to those of `entry`; other members of the entry are
/// kept. Returns `None` if they already have these values.
///
/// Fails if the text is not JSON, or if the table or the entry is not an object.
pub(crate) fn set_entry(
    text: &str,
    path: &Path,
    table: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<Option<String>> {
    let before = parse_json(text, path)?;
    let mut expected = before.clone();
    let entries = object_member(&mut expected, table, path)?;
    let members = object_member(entries, name, path)?;
    members.extend(entry.clone());
    if expected == before {
        return Ok(None);
    }
    let (mark, own) =
        text.strip_prefix(BYTE_ORDER_MARK).map_or(("", text), |rest| (BYTE_ORDER_MARK, rest));
    let root =
        CstRootNode::parse(own, &parse_options()).map_err(|error| syntax_error(&error, path))?;
    let entries = root.object_value_or_set().object_value_or_set(table);
    match entries.object_value(name) {
        Some(found) => entry.iter().for_each(|(key, value)| set_member(&found, key, value)),
        None => drop(entries.append(name, to_input(&Value::Object(entry.clone())))),
    }
    let mut edited = format!("{mark}{root}");
    if !edited.ends_with('\n') && text.trim().is_empty() {
        edited.push('\n');
    }
    if parse_json(&edited, path).ok() != Some(expected) {
        return Err(CommandError::config(format_args!(
            "cannot edit `{}` without changing other entries; edit it by hand",
            path.display()
        )));
    }
    Ok(Some(edited))
}

/// Returns the object under `key`, created if it is missing.
fn object_member<'m>(
    within: &'m mut Map<String, Value>,
    key: &str,
    path: &Path,
) -> Result<&'m mut Map<String, Value>> {
    let member = within.entry(key).or_insert_with(|| Map::new().into());
    member.as_object_mut().ok_or_else(|| {
        CommandError::config(format_args!("`{key}` in `{}` is not an object", path.display()))
            .hint("nothing was changed")
    })
}

fn set_member(within: &CstObject, key: &str, value: &Value) {
    match within.get(key) {
        Some(member) => member.set_value(to_input(value)),
        None => drop(within.append(key, to_input(value))),
    }
}

/// JSON as the clients read it: standard JSON with comments and trailing commas, and no more.
fn parse_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    }
}

fn to_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), to_input(value))).collect(),
        ),
    }
}

fn syntax_error(error: &jsonc_parser::errors::ParseError, path: &Path) -> CommandError {
    CommandError::config(format_args!(
        "{}:{}:{}: {}",
        path.display(),
        error.line_display(),
        error.column_display(),
        error.kind()
    ))
    .hint("nothing was changed")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(text: &str) -> std::result::Result<Option<String>, String> {
        let entry = json!({ "command": "t", "args": ["a \"b\"", "serve"] });
        set_entry(text, Path::new("f.json"), "servers", "t", entry.as_object().unwrap())
            .map_err(|failure| failure.into_tool_error().ok().unwrap().1.message().to_owned())
    }

    #[test]
    fn adds_the_entry_and_keeps_every_other_byte() {
        let start = "\u{feff}// Mine.\r\n{\r\n\t\"a\": [1,2,], /* why */\r\n\t\"servers\": {\r\n\t\t// First.\r\n\t\t\"x\": {\"command\":\"y\"}";
        let end = "\r\n\t},\r\n}\r\n// end";
        let edited = set(&format!("{start}{end}")).unwrap().unwrap();
        assert!(edited.starts_with(start) && edited.ends_with(end), "{edited:?}");
        assert!(edited.contains("\"t\": {\r\n"), "{edited:?}");
        assert_eq!(set(&edited), Ok(None));
    }

    #[test]
    fn updates_the_members_and_keeps_those_of_the_user() {
        let old =
            "{\"servers\": {\"t\": {\"command\": \"old\", \"env\": {\"K\": \"v\"} // mine\n}}}";
        let edited = set(old).unwrap().unwrap();
        let value = parse_json(&edited, Path::new("f")).unwrap_or_default();
        assert_eq!(value["servers"]["t"]["env"]["K"], "v");
        assert_eq!(value["servers"]["t"]["args"][0], "a \"b\"");
        assert!(edited.contains("// mine"), "{edited}");
    }

    #[test]
    fn an_empty_file_gets_an_object() {
        for empty in ["", "\n", "{}"] {
            let edited = set(empty).unwrap().unwrap();
            assert!(parse_json(&edited, Path::new("f")).is_ok_and(|it| it.len() == 1), "{edited}");
        }
    }

    #[test]
    fn a_broken_file_is_an_error_with_its_place() {
        for (text, words) in [
            ("{\n  \"a\": oops\n}", "f.json:2:"),
            ("{\"a\": 1", "f.json:1:"),
            ("{\"a\": 1 \"b\": 2}", "f.json:1:"),
            ("[]", "must hold a JSON object"),
            ("{\"servers\": []}", "`servers` in `f.json` is not an object"),
            ("{\"servers\": {\"t\": 1}}", "`t` in `f.json` is not an object"),
            ("{\"servers\": {}, \"servers\": {\"a\": {}}}", "edit it by hand"),
        ] {
            let told = set(text).unwrap_err();
            assert!(told.contains(words), "{text}: {told}");
        }
    }
}
