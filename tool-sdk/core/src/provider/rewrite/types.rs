//! Helpers for the `type` keyword.

use serde_json::{Map, Value};

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(super) fn change_type(schema: &mut Map<String, Value>, from: &str, to: &str) {
    match schema.get_mut("type") {
        Some(Value::Array(types)) => {
            let has = types.iter().any(|ty| ty == to);
            types.retain(|ty| ty != from);
            if !has {
                types.insert(0, to.into());
            }
        }
        Some(ty) => *ty = to.into(),
        None => {}
    }
}

/// Replaces a type list by one branch per type.
pub(super) fn split_types(schema: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = schema.get("type") else { return };
    let types: Vec<String> = types.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    schema.shift_remove("type");
    if schema.contains_key("anyOf") || schema.contains_key("oneOf") {
        return;
    }
    if let [only] = types.as_slice() {
        schema.insert("type".to_owned(), only.as_str().into());
        return;
    }
    let description = schema.shift_remove("description");
    let branches: Vec<Value> = types.iter().filter_map(|ty| type_branch(schema, ty)).collect();
    schema.clear();
    if let Some(description) = description {
        schema.insert("description".to_owned(), description);
    }
    schema.insert("anyOf".to_owned(), Value::Array(branches));
}

/// Returns the part of `schema` for values of type `ty`; `None` if its `enum` has no such value.
fn type_branch(schema: &Map<String, Value>, ty: &str) -> Option<Value> {
    let about = |keyword: &str| match keyword {
        "minLength" | "maxLength" | "pattern" | "format" => ty == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(ty, "integer" | "number")
        }
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" => ty == "array",
        "properties" | "required" | "additionalProperties" => ty == "object",
        _ => true,
    };
    let mut branch = Map::from_iter([("type".to_owned(), ty.into())]);
    for (keyword, value) in schema.iter().filter(|(keyword, _)| about(keyword)) {
        if keyword == "enum"
            && let Value::Array(values) = value
        {
            let of_type = |value: &&Value| {
                type_of(value) == ty || ty == "number" && type_of(value) == "integer"
            };
            let values: Vec<Value> = values.iter().filter(of_type).cloned().collect();
            match values.as_slice() {
                [] => return None,
                // `null` is the only value of its type.
                [Value::Null] => {}
                _ => _ = branch.insert(keyword.clone(), Value::Array(values)),
            }
        } else {
            branch.insert(keyword.clone(), value.clone());
        }
    }
    Some(Value::Object(branch))
}
