//! Detects schemas with only basic keywords, such as those of most Rust types, which need no further checks.

use serde_json::{Map, Value};

use super::{find_contradictions, find_faults, walk};

/// Whether a schema uses only basic keywords, in ways that some value satisfies.
pub(super) fn is_basic(root: &Map<String, Value>) -> bool {
    has_basic_keywords(root) && find_faults(root).is_empty() && find_contradictions(root).is_empty()
}

fn has_basic_keywords(schema: &Map<String, Value>) -> bool {
    let mut is_basic = schema.keys().all(|keyword| is_basic_keyword(keyword));
    walk::for_each_subschema(schema, &mut |_, _, inner| {
        is_basic = is_basic && inner.as_object().is_none_or(has_basic_keywords);
    });
    is_basic
}

fn is_basic_keyword(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "description"
            | "format"
            | "minimum"
            | "maximum"
            | "minLength"
            | "maxLength"
            | "minItems"
            | "maxItems"
            | "uniqueItems"
            | "enum"
            | "const"
            | "items"
            | "prefixItems"
            | "properties"
            | "required"
            | "additionalProperties"
            | "default"
    )
}
