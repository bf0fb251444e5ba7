//! The subset that every provider takes: for programs that pass tools on to whoever it is.

use serde_json::{Map, Value, json};

use super::rewrite::{self, Loss, Subset};
use crate::tool::Definition;

/// No references, one type each, no constants, and only the constraints that all know.
const SUBSET: Subset = Subset {
    keywords: &["enum", "maxItems", "maximum", "minItems", "minimum"],
    formats: &["date-time"],
    references: false,
    type_lists: false,
    strict: false,
};

pub(super) fn tool(definition: &Definition) -> Value {
    json!({
        "name": definition.name,
        "description": definition.description,
        "parameters": parameters(definition).0,
    })
}

pub(super) fn parameters(definition: &Definition) -> (Map<String, Value>, Vec<Loss>) {
    rewrite::fit(&definition.parameters, &SUBSET)
}
