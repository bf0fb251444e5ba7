//! Prepares schemas of MCP servers for an external validator.
//!
//! The validator may resolve remote references to the standard meta-schemas; other readers need
//! not.
//!
//! **Invariant:** nothing here validates a value.

use serde_json::{Map, Value, json};

use super::check::{MAX_DEPTH, modern_root};
use super::{SchemaError, walk};

/// Removes the references that lead out of a schema. Their target becomes any value, or any schema
/// for a reference to a meta-schema.
pub(crate) fn followable(schema: Value) -> Result<Value, SchemaError> {
    let mut root = modern_root(schema, "a result")?;
    stay_inside(&mut root, 0);
    Ok(Value::Object(root))
}

fn stay_inside(schema: &mut Map<String, Value>, depth: usize) {
    let leads_out = |value: &Value| value.as_str().is_some_and(|it| !it.starts_with('#'));
    if schema.get("$ref").is_some_and(leads_out)
        && let Some(Value::String(reference)) = schema.shift_remove("$ref")
        && is_standard(&reference)
        && !schema.contains_key("type")
    {
        schema.insert("type".to_owned(), json!(["object", "boolean"]));
    }
    if depth <= MAX_DEPTH {
        walk::each_mut(schema, &mut |_, inner| {
            if let Value::Object(inner) = inner {
                stay_inside(inner, depth + 1);
            }
        });
    }
}

/// Returns the schema with percent-encoded references; `None` when all are encoded already. Some
/// programs write keys with blanks into references.
pub(crate) fn encoded(schema: &Value) -> Option<Value> {
    let mut schema = schema.clone();
    schema.as_object_mut().is_some_and(encode).then_some(schema)
}

fn encode(schema: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    if let Some(Value::String(reference)) = walk::get_mut(schema, "$ref")
        && reference.bytes().any(is_foreign)
    {
        *reference = reference.bytes().map(written).collect();
        changed = true;
    }
    walk::each_in_any_draft_mut(schema, &mut |inner| {
        changed |= inner.as_object_mut().is_some_and(encode);
    });
    changed
}

/// Whether the byte is not allowed in a URI.
fn is_foreign(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(&byte)
}

fn written(byte: u8) -> String {
    match is_foreign(byte) {
        true => format!("%{byte:02X}"),
        false => char::from(byte).to_string(),
    }
}

/// Whether a reference leads to one of the standard meta-schemas.
pub(crate) fn is_standard(reference: &str) -> bool {
    let address = reference.trim_end_matches('#');
    address.contains("://json-schema.org/") && address.ends_with("/schema")
}
