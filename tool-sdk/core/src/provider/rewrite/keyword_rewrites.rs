//! Replaces keywords that a dialect does not support by equivalent ones.

use serde_json::{Map, Value, json};

use super::SchemaRewriter;
use super::types::type_of;
use crate::schema::describe_type;
use crate::schema::walk::is_type;

impl SchemaRewriter<'_> {
    /// Replaces unsupported keywords by equivalent ones.
    pub(super) fn replace_keywords(
        &self,
        schema: &mut Map<String, Value>,
        notes: &mut Vec<String>,
    ) {
        if !self.supports("const")
            && let Some(value) = schema.shift_remove("const")
        {
            schema.insert("enum".to_owned(), json!([value]));
        }
        if !self.supports("oneOf")
            && !schema.contains_key("anyOf")
            && let Some(branches) = schema.shift_remove("oneOf")
        {
            schema.insert("anyOf".to_owned(), branches);
        }
        if !self.supports("exclusiveMinimum") && is_type(schema, "integer") {
            make_inclusive(schema, "exclusiveMinimum", "minimum", 1);
            make_inclusive(schema, "exclusiveMaximum", "maximum", -1);
        }
        if !self.supports("prefixItems")
            && let Some(Value::Array(items)) = schema.shift_remove("prefixItems")
        {
            notes.push(format!("Items in this order: {}.", describe_items(&items)));
            let mut different: Vec<Value> = Vec::new();
            for item in items {
                if !different.contains(&item) {
                    different.push(item);
                }
            }
            let items = match different.as_slice() {
                [only] => only.clone(),
                _ => json!({ "anyOf": different }),
            };
            schema.insert("items".to_owned(), items);
        }
        if is_type(schema, "array") && !schema.contains_key("prefixItems") {
            schema.entry("items").or_insert_with(|| json!({}));
        }
        if !schema.contains_key("properties")
            && let Some(Value::Object(patterns)) = schema.get("patternProperties")
            && let Some((pattern, rest)) = patterns.iter().next().filter(|_| patterns.len() == 1)
        {
            notes.push(format!("Names must match the regular expression `{pattern}`."));
            let rest = rest.clone();
            schema.shift_remove("patternProperties");
            schema.insert("additionalProperties".to_owned(), rest);
        } else if schema.contains_key("patternProperties") {
            // Without the patterns, `additionalProperties` would refuse properties that they allow.
            schema.shift_remove("additionalProperties");
        }
    }
}

/// Adds the type that the other keywords imply.
pub(super) fn infer_type(schema: &mut Map<String, Value>) {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    if has(&["type", "anyOf", "oneOf"]) {
        return;
    }
    let ty = if let Some(value) = schema.get("const") {
        json!(type_of(value))
    } else if let Some(Value::Array(values)) = schema.get("enum") {
        let mut types: Vec<&str> = Vec::new();
        for value in values {
            if !types.contains(&type_of(value)) {
                types.push(type_of(value));
            }
        }
        match types.as_slice() {
            [] => return,
            [only] => json!(only),
            types => json!(types),
        }
    } else if has(&["properties", "additionalProperties", "required", "patternProperties"]) {
        json!("object")
    } else if has(&["items", "prefixItems", "minItems", "maxItems"]) {
        json!("array")
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        json!("string")
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        json!("number")
    } else {
        return;
    };
    schema.insert("type".to_owned(), ty);
}

/// Replaces an exclusive bound of an integer: "less than 5" is "at most 4".
fn make_inclusive(schema: &mut Map<String, Value>, exclusive: &str, bound: &str, step: i64) {
    let limit = schema.get(exclusive).and_then(Value::as_i64).and_then(|at| at.checked_add(step));
    if let Some(limit) = limit.filter(|_| !schema.contains_key(bound)) {
        schema.shift_remove(exclusive);
        schema.insert(bound.to_owned(), limit.into());
    }
}

fn describe_items(items: &[Value]) -> String {
    let items = items.iter().map(|item| match item.get("description").and_then(Value::as_str) {
        Some(text) => format!("{} ({text})", describe_type(item)),
        None => describe_type(item),
    });
    items.collect::<Vec<_>>().join(", ")
}
