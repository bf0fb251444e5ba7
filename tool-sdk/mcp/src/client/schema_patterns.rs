//! Removes regular expressions from a schema that cannot be checked here: their syntax is not
//! supported, or they compile to too much.
//!
//! The server checks them itself, so a schema without them accepts more and never less. Where
//! accepting less in one part means accepting more in the whole, as below `not`, the whole keyword
//! is removed.
//!
//! **Invariant:** the schema without the patterns accepts everything that the original accepts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use tool_sdk_core::internal::walk;

/// Keywords that negate or count the match of a subschema, with those that depend on them.
pub(super) const NEGATING_KEYWORDS: &[(&str, &[&str])] = &[
    ("not", &[]),
    ("if", &["then", "else"]),
    ("oneOf", &[]),
    ("contains", &["minContains", "maxContains"]),
];

/// Keywords that apply to what no other keyword evaluated; they reject more when less is evaluated.
const UNEVALUATED_KEYWORDS: &[&str] = &["unevaluatedProperties", "unevaluatedItems"];

/// Returns the schema without the patterns for which `is_left` is true, and those patterns; `None`
/// if there are none.
pub(super) fn without_patterns(
    schema: &Value,
    mut is_left: impl FnMut(&str) -> bool,
) -> Option<(Value, Vec<String>)> {
    let mut all = BTreeMap::new();
    collect_patterns(schema, &mut all);
    all.retain(|pattern, ()| is_left(pattern));
    if all.is_empty() {
        return None;
    }
    let left = SkippedPatterns(all.into_keys().map(str::to_owned).collect());
    let mut schema = schema.clone();
    if let Value::Object(schema) = &mut schema {
        left.remove_from(schema);
    }
    Some((schema, left.0))
}

/// Removes negations that refer to other schemas, and `unevaluated` keywords.
pub(super) fn without_negations(schema: &mut Map<String, Value>) {
    SkippedPatterns(Vec::new()).remove_from(schema);
}

fn collect_patterns<'s>(schema: &'s Value, found: &mut BTreeMap<&'s str, ()>) {
    let Value::Object(schema) = schema else { return };
    if let Some(Value::String(pattern)) = schema.get("pattern") {
        found.insert(pattern, ());
    }
    if let Some(Value::Object(named)) = schema.get("patternProperties") {
        found.extend(named.keys().map(|pattern| (pattern.as_str(), ())));
    }
    walk::for_each_in_any_draft(schema, &mut |inner| collect_patterns(inner, found));
}

/// The patterns to remove, sorted.
struct SkippedPatterns(Vec<String>);

impl SkippedPatterns {
    fn contains(&self, pattern: &str) -> bool {
        self.0.binary_search_by(|known| known.as_str().cmp(pattern)).is_ok()
    }

    fn remove_from(&self, schema: &mut Map<String, Value>) {
        for (keyword, beside) in NEGATING_KEYWORDS {
            if schema.get(*keyword).is_some_and(|inner| self.occurs_in(inner)) {
                schema.remove(*keyword);
                beside.iter().for_each(|beside| drop(schema.remove(*beside)));
            }
        }
        UNEVALUATED_KEYWORDS.iter().for_each(|rest| drop(schema.remove(*rest)));
        if schema.get("pattern").and_then(Value::as_str).is_some_and(|it| self.contains(it)) {
            schema.remove("pattern");
        }
        if let Some(Value::Object(named)) = schema.get_mut("patternProperties") {
            let before = named.len();
            named.retain(|pattern, _| !self.contains(pattern));
            if named.len() < before {
                schema.remove("additionalProperties");
            }
        }
        walk::for_each_in_any_draft_mut(schema, &mut |inner| {
            if let Value::Object(inner) = inner {
                self.remove_from(inner);
            }
        });
    }

    /// Whether one of them occurs in a value, or may occur where it refers to.
    fn occurs_in(&self, value: &Value) -> bool {
        match value {
            Value::Object(members) => members.iter().any(|(key, one)| {
                let is_one = key == "pattern" && one.as_str().is_some_and(|it| self.contains(it));
                let refers = matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
                is_one || refers || self.contains(key) || self.occurs_in(one)
            }),
            Value::Array(items) => items.iter().any(|one| self.occurs_in(one)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value) {
        let (rest, left) = without_patterns(schema, |pattern| pattern == "bad").unwrap();
        assert_eq!((&rest, left.as_slice()), (expected, &["bad".to_owned()][..]));
    }

    #[test]
    fn what_is_left_out_lets_more_through_and_never_less() {
        let bad = json!({ "pattern": "bad", "minLength": 1 });
        check(
            &json!({ "properties": { "a": bad } }),
            &json!({ "properties": { "a": { "minLength": 1 } } }),
        );
        check(
            &json!({ "anyOf": [bad, { "pattern": "good" }] }),
            &json!({ "anyOf": [{ "minLength": 1 }, { "pattern": "good" }] }),
        );
        check(&json!({ "type": "string", "not": bad }), &json!({ "type": "string" }));
        check(
            &json!({ "oneOf": [bad, { "type": "null" }], "title": "x" }),
            &json!({ "title": "x" }),
        );
        check(
            &json!({ "if": bad, "then": { "type": "null" }, "else": false, "items": bad }),
            &json!({ "items": { "minLength": 1 } }),
        );
        check(&json!({ "contains": bad, "maxContains": 1, "unevaluatedItems": false }), &json!({}));
        check(
            &json!({ "not": { "$ref": "#/$defs/a" }, "$defs": { "a": bad } }),
            &json!({ "$defs": { "a": { "minLength": 1 } } }),
        );
        check(
            &json!({ "patternProperties": { "bad": false, "good": true }, "additionalProperties": false }),
            &json!({ "patternProperties": { "good": true } }),
        );
        let tuple = |items: Value| {
            json!({ "items": items, "additionalItems": { "minLength": 1 }, "dependencies": {
                "a": { "minLength": 1 }, "b": ["a"],
            } })
        };
        let mut before = tuple(json!([bad, { "pattern": "good" }]));
        before["additionalItems"] = bad.clone();
        before["dependencies"]["a"] = bad.clone();
        check(&before, &tuple(json!([{ "minLength": 1 }, { "pattern": "good" }])));
        assert!(
            without_patterns(&json!({ "pattern": "good" }), |pattern| pattern == "bad").is_none()
        );
    }
}
