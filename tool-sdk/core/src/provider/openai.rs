//! OpenAI functions: plain, strict, and for the Responses API. OpenRouter accepts the plain ones.

use serde_json::{Map, Value, json};

use super::rewrite::{self, RewriteLoss, SchemaSubset};
use super::unions;
use crate::schema::walk;
use crate::tool::Definition;

/// The keywords and formats that Structured Outputs accept; see "Supported schemas" in OpenAI's
/// documentation.
const STRICT_SUBSET: SchemaSubset = SchemaSubset {
    keywords: &[
        "const",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
    ],
    formats: &[
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uuid",
    ],
    references: true,
    type_lists: true,
    strict: true,
};

/// Encodes a function without strict mode.
pub(super) fn encode_tool(definition: &Definition) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": definition.name,
            "description": definition.description,
            "parameters": encode_parameters(definition).0,
        },
    })
}

/// Encodes a function for the Responses API, which requires `strict` to be there.
pub(super) fn encode_responses_tool(definition: &Definition) -> Value {
    json!({
        "type": "function",
        "name": definition.name,
        "description": definition.description,
        "strict": false,
        "parameters": encode_parameters(definition).0,
    })
}

/// Encodes a function in strict mode.
pub(super) fn encode_strict_tool(definition: &Definition) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": definition.name,
            "description": definition.description,
            "strict": true,
            "parameters": encode_strict_parameters(definition).0,
        },
    })
}

pub(super) fn encode_parameters(definition: &Definition) -> (Map<String, Value>, Vec<RewriteLoss>) {
    let mut losses = Vec::new();
    let flat = unions::flatten_root(definition.parameters.as_map(), &mut losses);
    let mut schema = flat.into_owned();
    schema.entry("properties").or_insert_with(|| json!({}));
    add_missing_items(&mut schema);
    (schema, losses)
}

pub(super) fn encode_strict_parameters(
    definition: &Definition,
) -> (Map<String, Value>, Vec<RewriteLoss>) {
    rewrite::rewrite_schema(&definition.parameters, &STRICT_SUBSET)
}

/// Adds `items` to arrays without it. OpenAI requires it, also if the items may be anything.
fn add_missing_items(schema: &mut Map<String, Value>) {
    if walk::is_type(schema, "array") {
        schema.entry("items").or_insert_with(|| json!({}));
    }
    walk::for_each_subschema_mut(schema, &mut |_, inner| {
        if let Value::Object(inner) = inner {
            add_missing_items(inner);
        }
    });
}
