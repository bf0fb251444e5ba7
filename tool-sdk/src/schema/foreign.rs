//! Schemas that somebody else judges by, as they are told here.
//!
//! The judge may follow what leads out of the document, where it knows the standard's own schemas;
//! nobody else has to.
//!
//! **Invariant:** nothing here judges.

use serde_json::{Map, Value, json};

use super::check::{MAX_DEPTH, modern_root};
use super::{SchemaError, walk};

/// A schema without the references that lead out of it. What was referred to is then any value,
/// or any schema where that is what was said.
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

/// The schema with references that are written as a judge wants them, where some are not: who puts
/// keys into them as they are may put blanks there.
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

/// Whether an address never has this byte.
fn is_foreign(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(&byte)
}

fn written(byte: u8) -> String {
    match is_foreign(byte) {
        true => format!("%{byte:02X}"),
        false => char::from(byte).to_string(),
    }
}

/// Whether a reference is to one of the standard's own schemas, which describe schemas.
pub(crate) fn is_standard(reference: &str) -> bool {
    let address = reference.trim_end_matches('#');
    address.contains("://json-schema.org/") && address.ends_with("/schema")
}
