//! Checks whether a schema accepts its own defaults, and at least one of its own choices.

use serde_json::{Map, Value};

use super::fault::{ArgPath, Faults};
use super::json::JsonValue;
use super::lenient::remove_nulls;
use super::node::{Builder, ReferenceTargets, SchemaNode};
use crate::schema::{find_external_keyword, walk, with_local_refs};

/// Returns each location where it does not, with the problem.
pub(crate) fn find_self_violations(root: &Map<String, Value>) -> Vec<String> {
    let root = with_local_refs(root);
    let (_, targets) = ReferenceTargets::compile(&root, &[]);
    let mut found = Vec::new();
    check_schema_at(&root, "", &targets, &mut found);
    found
}

fn check_schema_at(
    schema: &Map<String, Value>,
    path: &str,
    targets: &ReferenceTargets,
    found: &mut Vec<String>,
) {
    // The native validator would misjudge a value that an external keyword decides.
    if find_external_keyword(schema).is_none() {
        check_own_values(schema, path, targets, found);
    }
    walk::for_each_subschema(schema, &mut |_, step, inner| {
        if let Value::Object(inner) = inner {
            check_schema_at(inner, &format!("{path}{step}"), targets, found);
        }
    });
}

/// Reports a default that the schema refuses, and choices of which it accepts none.
fn check_own_values(
    schema: &Map<String, Value>,
    path: &str,
    targets: &ReferenceTargets,
    found: &mut Vec<String>,
) {
    if let Some(default) = walk::get_keyword(schema, "default") {
        let first =
            find_faults(schema, "default", default, targets).first_message().map(str::to_owned);
        found.extend(first.map(|fault| format!("{path} is wrong: {fault}")));
    }
    if let Some(Value::Array(values)) = walk::get_keyword(schema, "enum")
        && !values.is_empty()
        && values.iter().all(|value| !find_faults(schema, "enum", value, targets).is_empty())
    {
        found.push(format!("{path} is wrong: none of its choices is allowed by the rest of it"));
    }
}

/// Returns the faults of a value by this schema. `null` means absent: a default is serialized as
/// its type is.
fn find_faults(
    schema: &Map<String, Value>,
    name: &str,
    value: &Value,
    targets: &ReferenceTargets,
) -> Faults {
    let mut faults = Faults::default();
    let node: SchemaNode = Builder::default().build_map(schema);
    let text = value.to_string();
    let root = ArgPath::root();
    match JsonValue::parse(&text) {
        Ok(mut tree) => {
            remove_nulls(&mut tree, &[&node], targets, &mut |_| {});
            node.check_argument(name, &tree, targets, &mut faults);
        }
        Err(error) => faults.push_decode_error(&ArgPath::member(&root, name), &error),
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_choices_are_held_against_the_rest() {
        for (x, expected) in [
            (json!({ "type": "integer", "maximum": 2, "default": 2 }), None),
            (
                json!({ "type": "integer", "maximum": 2, "default": 9 }),
                Some("/properties/x is wrong: `default` is 9, but must be at most 2"),
            ),
            (
                json!({ "type": "array", "items": { "$ref": "#/$defs/a", "default": "A" } }),
                Some(
                    "/properties/x/items is wrong: `default` is the string \"A\", but must match the pattern ^[a-z]+$",
                ),
            ),
            (
                json!({ "type": "string", "enum": ["a"], "pattern": "^b$" }),
                Some("/properties/x is wrong: none of its choices is allowed by the rest of it"),
            ),
            (
                json!({
                    "type": "object", "properties": { "a": { "type": "string" } },
                    "additionalProperties": false, "default": { "a": null },
                }),
                None,
            ),
            (
                json!({
                    "oneOf": [{ "type": "array" }, { "contains": { "const": 1 } }], "default": [],
                }),
                None,
            ),
        ] {
            let root = json!({
                "type": "object",
                "properties": { "x": x },
                "$defs": { "a": { "type": "string", "pattern": "^[a-z]+$" } },
            });
            let found = find_self_violations(root.as_object().unwrap());
            assert_eq!(found.first().map(String::as_str), expected, "{root}");
        }
    }
}
