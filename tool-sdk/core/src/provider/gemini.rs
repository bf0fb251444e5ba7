//! Gemini functions: for the Interactions API, and as declarations for `generateContent`.

use serde_json::{Map, Value, json};

use super::rewrite::{self, RewriteLoss, SchemaSubset};
use crate::schema::FORMATS;
use crate::tool::Definition;

/// The documented subset of JSON Schema. It includes type lists, but current models refuse a type
/// list that contains `array`, so there is a branch for each type.
const GEMINI_SUBSET: SchemaSubset = SchemaSubset {
    keywords: &["enum", "maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems"],
    formats: &FORMATS,
    references: true,
    type_lists: false,
    strict: false,
};

/// Encodes a function for the Interactions API.
pub(super) fn encode_interactions_tool(definition: &Definition) -> Value {
    json!({
        "type": "function",
        "name": definition.name,
        "description": definition.description,
        "parameters": encode_parameters(definition).0,
    })
}

/// Encodes a declaration for `generateContent`, with `parametersJsonSchema`.
pub(super) fn encode_declaration(definition: &Definition) -> Value {
    json!({
        "name": definition.name,
        "description": definition.description,
        "parametersJsonSchema": encode_parameters(definition).0,
    })
}

pub(super) fn encode_parameters(definition: &Definition) -> (Map<String, Value>, Vec<RewriteLoss>) {
    rewrite::rewrite_schema(&definition.parameters, &GEMINI_SUBSET)
}
