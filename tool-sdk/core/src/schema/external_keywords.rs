//! Finds the JSON Schema keywords that the native validator does not have.
//!
//! Schemas with one of them are validated by the crate `jsonschema`, in a build with the
//! feature `external-schemas`. In any other build a tool with such a schema is not registered.

use serde_json::{Map, Value};

use super::walk;

/// The keywords. Those that mean nothing without one of these, such as `then`, are not listed.
pub(super) const EXTERNAL_KEYWORDS: [&str; 6] = [
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Returns the JSON pointer of the first external keyword in `schema`.
pub(crate) fn find_external_keyword(schema: &Map<String, Value>) -> Option<String> {
    let own = schema.keys().find(|keyword| EXTERNAL_KEYWORDS.contains(&keyword.as_str()));
    if let Some(keyword) = own {
        return Some(format!("/{keyword}"));
    }
    let mut found = None;
    walk::for_each_subschema(schema, &mut |_, step, inner| {
        if let (None, Value::Object(inner)) = (&found, inner) {
            found = find_external_keyword(inner).map(|pointer| format!("{step}{pointer}"));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_keywords_and_no_properties_of_their_names() {
        for (schema, expected) in [
            (json!({ "if": {}, "then": false }), Some("/if")),
            (
                json!({ "properties": { "a/b": { "items": { "contains": {} } } } }),
                Some("/properties/a~1b/items/contains"),
            ),
            (
                json!({ "$defs": { "t": { "anyOf": [{}, { "dependentRequired": {} }] } } }),
                Some("/$defs/t/anyOf/1/dependentRequired"),
            ),
            (json!({ "properties": { "contains": {}, "if": {} }, "then": {} }), None),
            (json!({ "default": { "if": 1 }, "minContains": 1 }), None),
        ] {
            let found = find_external_keyword(schema.as_object().unwrap());
            assert_eq!(found.as_deref(), expected, "{schema}");
        }
    }
}
