//! Anthropic tools: any JSON Schema, but no union at the root.

use serde_json::{Map, Value, json};

use super::rewrite::RewriteLoss;
use super::unions;
use crate::tool::Definition;

pub(super) fn encode_tool(definition: &Definition) -> Value {
    json!({
        "name": definition.name,
        "description": definition.description,
        "input_schema": input_schema(definition).0,
    })
}

pub(super) fn input_schema(definition: &Definition) -> (Map<String, Value>, Vec<RewriteLoss>) {
    let mut losses = Vec::new();
    let flat = unions::flatten_root(definition.parameters.as_map(), &mut losses);
    (flat.into_owned(), losses)
}
