//! Finds contradictions: keywords of a schema that no value satisfies together.
//!
//! **Invariant:** a finding is an error for any value; a schema without findings may still be
//! contradictory.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{SchemaError, walk};

/// Pairs of bounds of which the first must not exceed the second.
const BOUNDS: [(&str, &str); 5] = [
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
];

/// Pairs of bounds that must not be equal either, because one of them is exclusive.
const OPEN_BOUNDS: [(&str, &str); 3] = [
    ("exclusiveMinimum", "maximum"),
    ("minimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
];

/// Returns all contradictions, in document order.
pub(crate) fn find_contradictions(root: &Map<String, Value>) -> Vec<SchemaError> {
    let mut found = Vec::new();
    find_contradictions_within(root, "", 0, &mut found);
    found
}

fn find_contradictions_within(
    schema: &Map<String, Value>,
    path: &str,
    depth: usize,
    found: &mut Vec<SchemaError>,
) {
    if depth > super::check::MAX_DEPTH {
        return;
    }
    let number = |keyword| walk::get_keyword(schema, keyword).and_then(Value::as_f64);
    let crossed = BOUNDS.iter().map(|bounds| (bounds, false));
    let met = OPEN_BOUNDS.iter().map(|bounds| (bounds, true));
    for ((least, most), open) in crossed.chain(met) {
        if let (Some(low), Some(high)) = (number(least), number(most))
            && (low > high || open && low >= high)
        {
            let (low, high) = (&schema[*least], &schema[*most]);
            let problem = format_args!("nothing has `{least}` {low} and `{most}` {high}");
            found.push(SchemaError::new(path, problem));
        }
    }
    if walk::get_keyword(schema, "enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        found.push(SchemaError::new(path, "`enum` lists no value"));
    }
    for name in required_but_refused(schema) {
        let problem = format_args!("`{name}` is required, but nothing of that name may be there");
        found.push(SchemaError::new(path, problem));
    }
    walk::for_each_subschema(schema, &mut |keyword, step, inner| {
        // A schema below `not` or `if` may be unsatisfiable on purpose.
        if let Value::Object(inner) = inner
            && !matches!(keyword, "not" | "if")
        {
            find_contradictions_within(inner, &format!("{path}{step}"), depth + 1, found);
        }
    });
}

/// Returns the names that an object requires and forbids.
fn required_but_refused(schema: &Map<String, Value>) -> Vec<&str> {
    let is_closed = walk::get_keyword(schema, "additionalProperties") == Some(&Value::Bool(false));
    if !is_closed || walk::has_any_keyword(schema, &["patternProperties"]) {
        return Vec::new();
    }
    let named: BTreeSet<&str> = match walk::get_keyword(schema, "properties") {
        Some(Value::Object(properties)) => properties.keys().map(String::as_str).collect(),
        _ => BTreeSet::new(),
    };
    walk::required_names(schema).filter(|name| !named.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_contradictions_with_their_pointer() {
        for (schema, expected) in [
            (json!({ "minimum": 1, "maximum": 1 }), None),
            (
                json!({ "minimum": 5, "maximum": 1 }),
                Some("at /properties/x: nothing has `minimum` 5 and `maximum` 1"),
            ),
            (
                json!({ "items": { "exclusiveMinimum": 1, "maximum": 1 } }),
                Some("at /properties/x/items: nothing has `exclusiveMinimum` 1 and `maximum` 1"),
            ),
            (json!({ "enum": [] }), Some("at /properties/x: `enum` lists no value")),
            (
                json!({ "properties": {}, "required": ["zz"], "additionalProperties": false }),
                Some("at /properties/x: `zz` is required, but nothing of that name may be there"),
            ),
            (json!({ "properties": {}, "required": ["zz"] }), None),
            (json!({ "not": { "enum": [] } }), None),
        ] {
            let root = json!({ "type": "object", "properties": { "x": schema } });
            let found = find_contradictions(root.as_object().unwrap());
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found.first().map(String::as_str), expected, "{root}");
        }
    }
}
