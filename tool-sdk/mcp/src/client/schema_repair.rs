//! Schema repair: removes malformed keywords from a server's schema instead of rejecting the tool.
//!
//! Servers send `"required": null`, `"type": "int"` or an empty list for an empty object, and check
//! arguments in their own way. A malformed keyword is left to them, as unsupported patterns are.
//!
//! **Invariant:** the repaired schema accepts everything that the original was meant to accept.

use serde_json::{Map, Value, json};

use super::schema_patterns::{NEGATING_KEYWORDS, without_negations};
use tool_sdk_core::internal::walk;
use tool_sdk_core::internal::walk::SubschemaKind;
use tool_sdk_core::internal::{expected_value, is_followed_draft, redirect_refs};

/// Returns the schema without malformed keywords, and their JSON pointers; `None` where it has
/// none.
pub(super) fn repair_schema(schema: &Value) -> Option<(Value, Vec<String>)> {
    let mut rest = schema.clone();
    let Value::Object(root) = &mut rest else { return None };
    let mut left = Vec::new();
    if root.get("$schema").is_some_and(|draft| !is_followed_draft(draft)) {
        remove_keyword(root, "$schema", "", &mut left);
    }
    let is_newest = !root.contains_key("$schema");
    if is_newest {
        redirect_refs(root, false);
    }
    repair_object(root, is_newest, "", &mut left);
    if !left.is_empty() {
        // Below a negation, accepting more would mean rejecting more.
        without_negations(root);
    }
    (rest != *schema).then_some((rest, left))
}

/// Repairs an object schema. Without a `$schema`, a list in `items` is read as `prefixItems`.
fn repair_object(
    schema: &mut Map<String, Value>,
    is_newest: bool,
    path: &str,
    left: &mut Vec<String>,
) {
    let keywords: Vec<String> = schema.keys().cloned().collect();
    for keyword in &keywords {
        if let Some(value) = schema.get_mut(keyword) {
            let holds = walk::subschema_kind(keyword);
            if matches!(holds, Some(SubschemaKind::One | SubschemaKind::Map)) && *value == json!([])
            {
                *value = json!({});
            }
            if !is_valid_keyword(keyword, value) {
                remove_keyword(schema, keyword, path, left);
            }
        }
    }
    if is_newest
        && schema.get("items").is_some_and(Value::is_array)
        && let Some(items) = schema.shift_remove("items")
    {
        schema.insert("prefixItems".to_owned(), items);
        let rest = schema.shift_remove("additionalItems");
        schema.extend(rest.map(|rest| ("items".to_owned(), rest)));
    }
    for (turn, beside) in NEGATING_KEYWORDS {
        let before = left.len();
        if let Some(inner) = schema.get_mut(*turn) {
            let path = format!("{path}/{turn}");
            match inner {
                Value::Array(all) => {
                    all.iter_mut().for_each(|one| repair_subschema(one, is_newest, &path, left))
                }
                one => repair_subschema(one, is_newest, &path, left),
            }
        }
        if left.len() > before {
            schema.shift_remove(*turn);
            beside.iter().for_each(|beside| drop(schema.shift_remove(*beside)));
        }
    }
    for (keyword, value) in schema {
        let path = format!("{path}/{keyword}");
        match (walk::subschema_kind(keyword), value) {
            (Some(SubschemaKind::One), one) => repair_subschema(one, is_newest, &path, left),
            (Some(SubschemaKind::List), Value::Array(all)) => {
                all.iter_mut().for_each(|one| repair_subschema(one, is_newest, &path, left));
            }
            (Some(SubschemaKind::Map), Value::Object(named)) => {
                for (name, one) in named {
                    repair_subschema(one, is_newest, &format!("{path}/{name}"), left);
                }
            }
            _ => {}
        }
    }
}

/// Repairs a subschema; one that is no schema becomes `true`.
fn repair_subschema(schema: &mut Value, is_newest: bool, path: &str, left: &mut Vec<String>) {
    match schema {
        Value::Object(schema) => repair_object(schema, is_newest, path, left),
        // A list in `items` of an earlier draft is handled elsewhere.
        Value::Bool(_) | Value::Array(_) => {}
        none => {
            left.push(path.to_owned());
            *none = true.into();
        }
    }
}

fn is_valid_keyword(keyword: &str, value: &Value) -> bool {
    let is_address = |value: &Value| {
        let is_one = |it: &str| it.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        value.as_str().is_some_and(|it| is_one(it.trim_end_matches('#')))
    };
    match (keyword, walk::subschema_kind(keyword)) {
        ("$id", _) => is_address(value),
        ("items", _) => value.is_object() || value.is_boolean() || value.is_array(),
        (_, Some(SubschemaKind::One)) => value.is_object() || value.is_boolean(),
        (_, Some(SubschemaKind::Map)) => value.is_object(),
        _ => expected_value(keyword, value).is_none(),
    }
}

/// Removes a keyword, and the keywords whose meaning depends on it.
fn remove_keyword(
    schema: &mut Map<String, Value>,
    keyword: &str,
    path: &str,
    left: &mut Vec<String>,
) {
    let others: &[&str] = match keyword {
        "properties" | "patternProperties" => &["additionalProperties", "unevaluatedProperties"],
        "prefixItems" => &["items", "unevaluatedItems"],
        _ => &[],
    };
    schema.shift_remove(keyword);
    others.iter().for_each(|other| drop(schema.shift_remove(*other)));
    left.push(format!("{path}/{keyword}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value, places: &[&str]) {
        let (rest, left) = repair_schema(schema).unwrap();
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        assert_eq!((&rest, left.as_slice()), (expected, places));
    }

    #[test]
    fn removes_malformed_keywords_and_keeps_the_rest() {
        check(
            &json!({ "properties": [], "additionalProperties": false }),
            &json!({ "properties": {}, "additionalProperties": false }),
            &[],
        );
        check(
            &json!({ "properties": null, "additionalProperties": false, "required": null }),
            &json!({}),
            &["/properties", "/required"],
        );
        check(
            &json!({ "properties": {
                "a": { "type": "int", "minLength": 1 }, "b": { "type": "string", "title": 5 },
                "c": "string", "required": { "type": "string", "required": true },
            } }),
            &json!({ "properties": {
                "a": { "minLength": 1 }, "b": { "type": "string" },
                "c": true, "required": { "type": "string" },
            } }),
            &[
                "/properties/a/type",
                "/properties/b/title",
                "/properties/c",
                "/properties/required/required",
            ],
        );
        check(
            &json!({ "items": [{ "type": "any" }, {}], "additionalItems": false }),
            &json!({ "prefixItems": [{}, {}], "items": false }),
            &["/prefixItems/type"],
        );
        check(
            &json!({ "$schema": "https://my.org/schema", "$id": "my tool", "type": "object" }),
            &json!({ "type": "object" }),
            &["/$schema", "/$id"],
        );
        assert_eq!(repair_schema(&json!({ "type": "object", "properties": { "a": true } })), None);
    }

    // Below a negation, accepting more would mean rejecting more.
    #[test]
    fn removing_a_keyword_never_rejects_more() {
        let bad = json!({ "type": "int", "minimum": 1 });
        for turn in ["not", "if", "contains"] {
            check(&json!({ turn: bad }), &json!({}), &[&format!("/{turn}/type")]);
        }
        check(
            &json!({ "oneOf": [bad, { "type": "null" }], "anyOf": [bad] }),
            &json!({ "anyOf": [{ "minimum": 1 }] }),
            &["/oneOf/type", "/anyOf/type"],
        );
        check(
            &json!({ "not": { "$ref": "#/$defs/a" }, "$defs": { "a": bad } }),
            &json!({ "$defs": { "a": { "minimum": 1 } } }),
            &["/$defs/a/type"],
        );
    }
}
