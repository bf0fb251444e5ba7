//! Gemini function declarations, with `parametersJsonSchema`.

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

pub(super) fn encode_tool(definition: &Definition) -> Value {
    json!({
        "name": definition.name,
        "description": definition.description,
        "parametersJsonSchema": encode_parameters(definition).0,
    })
}

pub(super) fn encode_parameters(definition: &Definition) -> (Map<String, Value>, Vec<RewriteLoss>) {
    rewrite::rewrite_schema(&definition.parameters, &GEMINI_SUBSET)
}
