//! Prepares schemas of MCP servers for an external validator.
//!
//! The validator may resolve remote references to the standard meta-schemas; other readers need
//! not.
//!
//! **Invariant:** nothing here validates a value.

use serde_json::{Map, Value, json};

use super::check::{MAX_DEPTH, upgrade_root};
use super::{SchemaError, walk};

/// Removes the references that lead out of a schema. Their target becomes any value, or any schema
/// for a reference to a meta-schema.
pub fn without_remote_refs(schema: Value) -> Result<Value, SchemaError> {
    let mut root = upgrade_root(schema, "a result")?;
    remove_remote_refs(&mut root, 0);
    Ok(Value::Object(root))
}

fn remove_remote_refs(schema: &mut Map<String, Value>, depth: usize) {
    let leads_out = |value: &Value| value.as_str().is_some_and(|it| !it.starts_with('#'));
    if schema.get("$ref").is_some_and(leads_out)
        && let Some(Value::String(reference)) = schema.shift_remove("$ref")
        && is_meta_schema_ref(&reference)
        && !schema.contains_key("type")
    {
        schema.insert("type".to_owned(), json!(["object", "boolean"]));
    }
    if depth <= MAX_DEPTH {
        walk::for_each_subschema_mut(schema, &mut |_, inner| {
            if let Value::Object(inner) = inner {
                remove_remote_refs(inner, depth + 1);
            }
        });
    }
}

/// Returns the schema with percent-encoded references; `None` when all are encoded already. Some
/// programs write keys with blanks into references.
pub fn with_encoded_refs(schema: &Value) -> Option<Value> {
    let mut schema = schema.clone();
    schema.as_object_mut().is_some_and(encode_refs).then_some(schema)
}

fn encode_refs(schema: &mut Map<String, Value>) -> bool {
    let mut changed = false;
    if let Some(Value::String(reference)) = walk::get_keyword_mut(schema, "$ref")
        && reference.bytes().any(must_be_encoded)
    {
        *reference = reference.bytes().map(percent_encode).collect();
        changed = true;
    }
    walk::for_each_in_any_draft_mut(schema, &mut |inner| {
        changed |= inner.as_object_mut().is_some_and(encode_refs);
    });
    changed
}

/// Whether the byte is not allowed in a URI.
fn must_be_encoded(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(&byte)
}

fn percent_encode(byte: u8) -> String {
    match must_be_encoded(byte) {
        true => format!("%{byte:02X}"),
        false => char::from(byte).to_string(),
    }
}

/// Whether a reference leads to one of the standard meta-schemas.
pub fn is_meta_schema_ref(reference: &str) -> bool {
    let address = reference.trim_end_matches('#');
    address.contains("://json-schema.org/") && address.ends_with("/schema")
}
