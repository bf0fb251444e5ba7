//! Flattens unions (`anyOf`, `oneOf`, `allOf`) into one object, because no provider accepts a union
//! at the root.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::keyword_descriptions;
use super::rewrite::RewriteLoss;
use crate::schema::{sort_keywords, walk};

/// The maximum number of nested references that are followed.
const MAX_DEPTH: usize = 8;

/// The maximum number of forms of a union, including nested unions.
const MAX_FORMS: usize = 200;

/// Flattens the unions at the root into one object.
///
/// The object accepts everything that one of the forms accepts. The description says which
/// properties belong together; decoding validates it.
pub(super) fn flatten_root<'a>(
    root: &'a Map<String, Value>,
    losses: &mut Vec<RewriteLoss>,
) -> Cow<'a, Map<String, Value>> {
    if !["allOf", "anyOf", "oneOf"].iter().any(|keyword| root.contains_key(*keyword)) {
        return Cow::Borrowed(root);
    }
    let mut left = MAX_FORMS;
    let mut flat = flatten_schema(root, root, "", (0, &mut left), losses);
    flat.entry("properties").or_insert_with(|| json!({}));
    sort_keywords(&mut flat);
    Cow::Owned(flat)
}

/// Flattens a union beside properties. Its branches describe the rest of the same object, which
/// closed branches could not express.
pub(super) fn flatten_union(
    schema: &mut Map<String, Value>,
    root: &Map<String, Value>,
    path: &str,
    losses: &mut Vec<RewriteLoss>,
) {
    let union = schema.contains_key("anyOf") || schema.contains_key("oneOf");
    if union
        && schema.get("properties").and_then(Value::as_object).is_some_and(|map| !map.is_empty())
    {
        let mut left = MAX_FORMS;
        *schema = flatten_schema(schema, root, path, (0, &mut left), losses);
    }
}

fn flatten_schema(
    schema: &Map<String, Value>,
    root: &Map<String, Value>,
    path: &str,
    (depth, left): (usize, &mut usize),
    losses: &mut Vec<RewriteLoss>,
) -> Map<String, Value> {
    let mut flat = schema.clone();
    merge_all_of(&mut flat, root, path, losses);
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(branches)) = flat.shift_remove(keyword) else { continue };
        let mut forms = Vec::new();
        for branch in &branches {
            if depth == MAX_DEPTH || *left == 0 {
                losses.push(RewriteLoss::new(
                    format!("{path}/{keyword}"),
                    "there are too many forms to name",
                    "take fewer, or make a tool of each",
                ));
                break;
            }
            *left -= 1;
            match resolve_branch(branch, root) {
                Some(branch) if branch.get("type").is_none_or(|ty| ty == "object") => {
                    forms.push(flatten_schema(&branch, root, path, (depth + 1, left), losses));
                }
                _ => losses.push(RewriteLoss::new(
                    format!("{path}/{keyword}"),
                    "one of the forms is not an object",
                    "take a struct, or an enum whose variants have named fields",
                )),
            }
        }
        merge_forms(&mut flat, &forms);
    }
    flat
}

/// Adds the properties of all `forms`. Only properties that all of them require stay required.
fn merge_forms(flat: &mut Map<String, Value>, forms: &[Map<String, Value>]) {
    if forms.is_empty() {
        return;
    }
    let mut properties = take_map(flat, "properties");
    for form in forms {
        for (name, schema) in
            form.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let schema = match properties.get(name) {
                Some(known) => union_of(known, schema),
                None => schema.clone(),
            };
            properties.insert(name.clone(), schema);
        }
    }
    let mut required: Vec<Value> = walk::required_names(flat).map(Value::from).collect();
    for name in walk::required_names(&forms[0]) {
        let by_all =
            forms.iter().all(|form| walk::required_names(form).any(|required| required == name));
        if by_all && !required.iter().any(|known| known == name) {
            required.push(name.into());
        }
    }
    let closed = |map: &Map<String, Value>| map.get("additionalProperties") == Some(&json!(false));
    if forms.iter().all(closed) {
        flat.insert("additionalProperties".to_owned(), false.into());
    }
    flat.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        flat.insert("required".to_owned(), Value::Array(required));
    }
    flat.insert("type".to_owned(), "object".into());
    let forms: Vec<String> = forms.iter().map(describe_form).collect();
    keyword_descriptions::append_description(
        flat,
        &[format!("Send one of these forms: {}.", forms.join("; or "))],
    );
}

/// Describes the properties of a form, such as "`kind` = \"circle\", `radius`".
fn describe_form(form: &Map<String, Value>) -> String {
    let properties = form.get("properties").and_then(Value::as_object);
    let mut parts = Vec::new();
    for (name, schema) in properties.into_iter().flatten() {
        let value = match schema.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => Some(only),
            _ => schema.get("const"),
        };
        let optional = !walk::required_names(form).any(|required| required == name);
        parts.push(match value {
            Some(value) => format!("`{name}` = {value}"),
            None if optional => format!("`{name}` (optional)"),
            None => format!("`{name}`"),
        });
    }
    let known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    parts.extend(
        walk::required_names(form).filter(|name| !known(name)).map(|name| format!("`{name}`")),
    );
    if parts.is_empty() { "nothing else".to_owned() } else { parts.join(", ") }
}

/// Returns a schema that accepts what one of two schemas accepts.
fn union_of(a: &Value, b: &Value) -> Value {
    if a == b {
        return a.clone();
    }
    if let (Some(mut values), Some(more)) = (string_choices(a), string_choices(b)) {
        values.extend(
            more.into_iter().filter(|value| !string_choices(a).unwrap_or_default().contains(value)),
        );
        let mut schema = a.as_object().cloned().unwrap_or_default();
        schema.shift_remove("const");
        schema.insert("enum".to_owned(), Value::Array(values));
        return Value::Object(schema);
    }
    let branches = |schema: &Value| match schema.as_object() {
        Some(map) if map.len() == 1 => map.get("anyOf").and_then(Value::as_array).cloned(),
        _ => None,
    };
    let mut all = branches(a).unwrap_or_else(|| vec![a.clone()]);
    if !all.contains(b) {
        all.push(b.clone());
    }
    json!({ "anyOf": all })
}

/// Returns the strings that a schema accepts, if it accepts only certain ones.
fn string_choices(schema: &Value) -> Option<Vec<Value>> {
    let values = match (schema.get("const"), schema.get("enum")) {
        (Some(value), None) => vec![value.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => return None,
    };
    values.iter().all(Value::is_string).then_some(values)
}

/// Merges `allOf` into the schema around it.
pub(super) fn merge_all_of(
    schema: &mut Map<String, Value>,
    root: &Map<String, Value>,
    path: &str,
    losses: &mut Vec<RewriteLoss>,
) {
    for _ in 0..MAX_DEPTH {
        let Some(Value::Array(branches)) = schema.shift_remove("allOf") else { return };
        for branch in &branches {
            if let Some(branch) = resolve_branch(branch, root) {
                merge_schema(schema, &branch, path, losses);
            }
        }
    }
    schema.shift_remove("allOf");
}

fn merge_schema(
    into: &mut Map<String, Value>,
    from: &Map<String, Value>,
    path: &str,
    losses: &mut Vec<RewriteLoss>,
) {
    for (keyword, value) in from {
        match (keyword.as_str(), into.get_mut(keyword), value) {
            ("title" | "$defs" | "definitions", _, _) => {}
            (_, None, _) => _ = into.insert(keyword.clone(), value.clone()),
            (_, Some(known), value) if *known == *value => {}
            ("description" | "default" | "examples", Some(_), _) => {}
            (
                "properties" | "patternProperties",
                Some(Value::Object(known)),
                Value::Object(more),
            ) => {
                for (name, schema) in more {
                    match known.get_mut(name) {
                        None => _ = known.insert(name.clone(), schema.clone()),
                        Some(Value::Object(known)) if schema.is_object() => {
                            let more = schema.as_object().cloned().unwrap_or_default();
                            merge_schema(
                                known,
                                &more,
                                &format!("{path}/{keyword}/{}", walk::escape_pointer_step(name)),
                                losses,
                            );
                        }
                        Some(_) => {}
                    }
                }
            }
            ("required" | "allOf", Some(Value::Array(known)), Value::Array(more)) => {
                for value in more {
                    if !known.contains(value) {
                        known.push(value.clone());
                    }
                }
            }
            ("additionalProperties" | "unevaluatedProperties", Some(known), value) => {
                // Closed parts would refuse each other's properties; together they accept all of
                // them.
                if value.is_boolean() && *value == false || known.is_boolean() {
                    *known = value.clone();
                }
            }
            _ => losses.push(RewriteLoss::new(
                path,
                format_args!("`allOf` says `{keyword}` in two ways; only the first can be said"),
                "say it once",
            )),
        }
    }
}

/// Resolves the `$ref` of a branch.
fn resolve_branch<'a>(
    branch: &'a Value,
    root: &'a Map<String, Value>,
) -> Option<Cow<'a, Map<String, Value>>> {
    let mut branch = walk::as_object_schema(branch)?;
    for _ in 0..MAX_DEPTH {
        let Some(Value::String(reference)) = branch.get("$ref") else { break };
        let target = walk::resolve_ref(root, reference)?;
        let mut target = target.into_owned();
        for (keyword, value) in branch.iter().filter(|(keyword, _)| *keyword != "$ref") {
            target.insert(keyword.clone(), value.clone());
        }
        branch = Cow::Owned(target);
    }
    Some(branch)
}

fn take_map(schema: &mut Map<String, Value>, keyword: &str) -> Map<String, Value> {
    match schema.shift_remove(keyword) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        let mut losses = Vec::new();
        let flat = flatten_root(schema.as_object().unwrap(), &mut losses).into_owned();
        assert_eq!(Value::Object(flat), expected);
        assert_eq!(losses, []);
    }

    #[test]
    fn a_tagged_union_is_one_object_and_a_sentence() {
        let variant = |kind: &str, field: &str, schema: Value| {
            json!({
                "type": "object",
                "properties": { "kind": { "type": "string", "const": kind }, field: schema },
                "required": ["kind", field],
                "additionalProperties": false,
            })
        };
        check(
            json!({ "type": "object", "oneOf": [
                variant("circle", "radius", json!({ "type": "number" })),
                variant("square", "side", json!({ "type": "number" })),
            ]}),
            json!({
                "type": "object",
                "description": "Send one of these forms: `kind` = \"circle\", `radius`; or `kind` = \"square\", `side`.",
                "properties": {
                    "kind": { "type": "string", "enum": ["circle", "square"] },
                    "radius": { "type": "number" },
                    "side": { "type": "number" },
                },
                "required": ["kind"],
                "additionalProperties": false,
            }),
        );
    }

    #[test]
    fn forms_may_differ_in_what_they_require() {
        check(
            json!({
                "type": "object",
                "properties": { "id": { "type": "string" }, "name": { "type": "string" } },
                "anyOf": [{ "required": ["id"] }, { "required": ["name"] }],
            }),
            json!({
                "type": "object",
                "description": "Send one of these forms: `id`; or `name`.",
                "properties": { "id": { "type": "string" }, "name": { "type": "string" } },
            }),
        );
    }

    #[test]
    fn conjunctions_are_merged_through_references() {
        check(
            json!({
                "type": "object",
                "allOf": [{ "$ref": "#/$defs/A" }, { "properties": { "b": { "type": "string" } } }],
                "$defs": { "A": { "properties": { "a": { "type": "string" } }, "required": ["a"] } },
            }),
            json!({
                "type": "object",
                "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
                "required": ["a"],
                "$defs": { "A": { "properties": { "a": { "type": "string" } }, "required": ["a"] } },
            }),
        );
    }
}
