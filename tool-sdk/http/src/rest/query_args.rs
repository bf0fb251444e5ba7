//! Arguments from the query of a URL: the same names and types as everywhere.
//!
//! A value is converted to the type that its parameter's schema names; what does not convert stays
//! text, so that the tool's own parser reports the fault.

use serde_json::{Map, Value};
use tool_sdk_core::Schema;

use super::problem::ProblemDetails;

/// Returns the arguments as JSON text. A parameter that takes an array may be repeated.
pub(super) fn query_args(query: &str, parameters: &Schema) -> Result<String, ProblemDetails> {
    let root = parameters.to_value();
    let mut arguments = Map::new();
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let (name, text) = (name.into_owned(), text.into_owned());
        let schema = root.get("properties").and_then(|it| it.get(&name)).unwrap_or(&Value::Null);
        let schema = follow_refs(&root, schema);
        match schema.get("items").filter(|_| has_type(schema, "array")) {
            Some(items) => {
                let item = parse_value(follow_refs(&root, items), text);
                let list = arguments.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().into_iter().for_each(|list| list.push(item.clone()));
            }
            None if arguments.contains_key(&name) => {
                let error = format!("`{name}` is sent twice, but takes one value");
                return Err(ProblemDetails::bad_request(error));
            }
            None => {
                let value = parse_value(schema, text);
                arguments.insert(name, value);
            }
        }
    }
    Ok(Value::Object(arguments).to_string())
}

fn parse_value(schema: &Value, text: String) -> Value {
    let is_parsed = |value: &Value| match value {
        Value::Number(_) => has_type(schema, "integer") || has_type(schema, "number"),
        Value::Bool(_) => has_type(schema, "boolean"),
        Value::Object(_) => has_type(schema, "object"),
        Value::Array(_) => has_type(schema, "array"),
        Value::Null => has_type(schema, "null") && !has_type(schema, "string"),
        Value::String(_) => false,
    };
    // A text parameter takes every text as it is, also one that looks like a number.
    let parsed = serde_json::from_str(&text).ok();
    let parsed = parsed.filter(|value| is_parsed(value) && !has_type(schema, "string"));
    parsed.unwrap_or(Value::String(text))
}

fn follow_refs<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => {
            reference.strip_prefix('#').and_then(|it| root.pointer(it)).unwrap_or(schema)
        }
        None => schema,
    }
}

/// Whether the schema accepts values of a type, by itself or in an alternative.
fn has_type(schema: &Value, name: &str) -> bool {
    let by_type = match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|it| it == name),
        _ => false,
    };
    let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    by_type || alternatives.flatten().any(|it| has_type(it, name))
}
