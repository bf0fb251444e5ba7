//! The subset of JSON Schema that every provider accepts, for programs that do not know the
//! provider.

use serde_json::{Map, Value, json};

use super::rewrite::{self, RewriteLoss, SchemaSubset};
use crate::tool::Definition;

/// No references, one type per schema, no constants, and only constraints that all providers know.
const COMMON_SUBSET: SchemaSubset = SchemaSubset {
    keywords: &["enum", "maxItems", "maximum", "minItems", "minimum"],
    formats: &["date-time"],
    references: false,
    type_lists: false,
    strict: false,
};

pub(super) fn encode_tool(definition: &Definition) -> Value {
    json!({
        "name": definition.name,
        "description": definition.description,
        "parameters": encode_parameters(definition).0,
    })
}

pub(super) fn encode_parameters(definition: &Definition) -> (Map<String, Value>, Vec<RewriteLoss>) {
    rewrite::rewrite_schema(&definition.parameters, &COMMON_SUBSET)
}
