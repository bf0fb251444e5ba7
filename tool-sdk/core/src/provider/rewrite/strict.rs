//! Strict mode of OpenAI: objects are closed and require all of their properties.

use serde_json::{Map, Value, json};

use super::SchemaRewriter;
use super::types::change_type;
use crate::schema::walk::is_type;
use crate::schema::{describe_type, sort_keywords};

impl SchemaRewriter<'_> {
    /// Replaces a type that strict mode does not support by JSON text or a scalar.
    pub(super) fn replace_untyped(
        &mut self,
        schema: &mut Map<String, Value>,
        path: &str,
        notes: &mut Vec<String>,
    ) {
        let named = schema
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|properties| !properties.is_empty());
        let closed = schema.get("additionalProperties") == Some(&json!(false));
        if is_type(schema, "object") && !named && !closed && !path.is_empty() {
            let values = schema.get("additionalProperties").filter(|values| values.is_object());
            let values = values.map(|values| format!(" Each value: {}.", describe_type(values)));
            notes.push(format!("A JSON object, sent as text.{}", values.unwrap_or_default()));
            for keyword in ["properties", "required", "additionalProperties"] {
                schema.shift_remove(keyword);
            }
            change_type(schema, "object", "string");
            self.add_loss(
                path,
                "an object with free names cannot be expressed; it is sent as JSON text",
                "take a list of structs with a name and a value",
            );
        }
        let says = ["type", "anyOf", "oneOf", "enum", "const"];
        if !says.iter().any(|keyword| schema.contains_key(*keyword)) {
            schema.insert("type".to_owned(), json!(["string", "number", "boolean"]));
            self.add_loss(
                path,
                "a value of any type cannot be expressed; only text, numbers and booleans can be sent",
                "take a type that says what is expected",
            );
        }
    }
}

/// Closes an object and requires all of its properties.
pub(super) fn close_object(schema: &mut Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let names: Vec<Value> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str().into())
        .collect();
    schema.insert("required".to_owned(), Value::Array(names));
    schema.insert("additionalProperties".to_owned(), false.into());
}

/// Makes an optional property nullable, because strict mode requires every property.
pub(super) fn make_nullable(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(value) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        if !branches.contains(&json!({ "type": "null" })) {
            branches.push(json!({ "type": "null" }));
        }
        // A `type` beside the branches would forbid null.
        schema.shift_remove("type");
        return schema;
    }
    let listed = schema.contains_key("enum");
    match schema.get_mut("type") {
        Some(Value::Array(types)) => {
            if !types.iter().any(|ty| ty == "null") {
                types.push("null".into());
            }
        }
        Some(ty) if ty != "null" => *ty = json!([ty, "null"]),
        Some(_) => {}
        None if listed => {}
        None => {
            let description = schema.shift_remove("description");
            schema = Map::from_iter([("anyOf".to_owned(), json!([schema, { "type": "null" }]))]);
            if let Some(description) = description {
                schema.insert("description".to_owned(), description);
            }
        }
    }
    sort_keywords(&mut schema);
    schema
}
