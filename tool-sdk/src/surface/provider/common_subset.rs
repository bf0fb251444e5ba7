//! The subset that every provider takes: for programs that pass tools on to whoever it is.

use serde_json::{Map, Value, json};

use super::rewrite::{self, RewriteLoss, SchemaSubset};
use crate::tool::Definition;

/// No references, one type each, no constants, and only the constraints that all know.
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
