//! The cost of each keyword on a value, without its subschemas.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::pattern_cost::PatternCost;
use tool_sdk_core::internal::{is_meta_schema_ref, walk};

/// How many names, or how many bytes, are compared at the cost of one evaluation.
const NAMES_PER_UNIT: f64 = 8.0;
const BYTES_PER_UNIT: f64 = 64.0;

/// Marks a reference to a meta-schema, which is expensive on each part of a value.
const META_SCHEMA_KEY: &str = "x-standard";
const META_SCHEMA_COST: f64 = 200.0;

/// Marks each reference to a meta-schema.
pub(crate) fn mark_meta_schema_refs(schema: &Value) -> Value {
    fn mark(schema: &mut Map<String, Value>) {
        if schema.get("$ref").and_then(Value::as_str).is_some_and(is_meta_schema_ref) {
            schema.insert(META_SCHEMA_KEY.to_owned(), true.into());
        }
        walk::for_each_subschema_mut(schema, &mut |_, inner| {
            if let Value::Object(inner) = inner {
                mark(inner);
            }
        });
    }
    let mut schema = schema.clone();
    if let Value::Object(schema) = &mut schema {
        mark(schema);
    }
    schema
}

/// Cached costs of values and patterns, by their addresses.
#[derive(Default)]
pub(super) struct KeywordCosts {
    sizes: HashMap<usize, f64>,
    patterns: HashMap<usize, PatternCost>,
    names: HashMap<usize, (usize, usize)>,
}

impl KeywordCosts {
    /// Returns the cost of all keywords of `schema`, without its subschemas.
    pub(super) fn keyword_cost(&mut self, schema: &Map<String, Value>, value: &Value) -> f64 {
        let mut cost = schema.len() as f64 / NAMES_PER_UNIT;
        for (keyword, held) in schema {
            cost += match (keyword.as_str(), held, value) {
                ("pattern", Value::String(text), Value::String(value)) => {
                    self.pattern_cost(text).match_cost(1, value.len())
                }
                ("patternProperties", Value::Object(patterns), Value::Object(members)) => {
                    let (count, length) = self.name_lengths(members);
                    patterns
                        .keys()
                        .map(|text| self.pattern_cost(text).match_cost(count, length))
                        .sum()
                }
                ("enum", Value::Array(choices), _) => {
                    let each = choices.len() as f64 * self.value_size(value);
                    choices.len() as f64 / NAMES_PER_UNIT + each.min(self.value_size(held))
                }
                (META_SCHEMA_KEY, ..) => META_SCHEMA_COST * self.value_size(value),
                ("const", ..) => self.value_size(held).min(self.value_size(value)),
                ("uniqueItems", Value::Bool(true), Value::Array(_)) => {
                    NAMES_PER_UNIT * self.value_size(value)
                }
                ("required", Value::Array(names), Value::Object(_)) => {
                    names.len() as f64 / NAMES_PER_UNIT
                }
                ("dependentRequired" | "dependencies", Value::Object(_), Value::Object(_)) => {
                    self.value_size(held)
                }
                ("properties", Value::Object(schemas), Value::Object(_)) => {
                    schemas.len() as f64 / NAMES_PER_UNIT
                }
                // These scan a text again, and there may be many of them.
                (
                    "minLength" | "maxLength" | "format" | "contentEncoding" | "contentMediaType",
                    _,
                    Value::String(text),
                ) => text.len() as f64 / NAMES_PER_UNIT,
                _ => 0.0,
            };
        }
        cost
    }

    fn pattern_cost(&mut self, text: &str) -> PatternCost {
        *self.patterns.entry(text.as_ptr().addr()).or_insert_with(|| PatternCost::analyze(text))
    }

    /// Returns the number of property names and their total length.
    fn name_lengths(&mut self, members: &Map<String, Value>) -> (usize, usize) {
        let count = || (members.len(), members.keys().map(String::len).sum());
        *self.names.entry(std::ptr::from_ref(members).addr()).or_insert_with(count)
    }

    /// Returns the cost of comparing a value.
    fn value_size(&mut self, value: &Value) -> f64 {
        let inner = match value {
            Value::String(text) => return 1.0 + text.len() as f64 / BYTES_PER_UNIT,
            Value::Array(_) | Value::Object(_) => std::ptr::from_ref(value).addr(),
            _ => return 1.0,
        };
        if let Some(known) = self.sizes.get(&inner) {
            return *known;
        }
        let size = match value {
            Value::Array(items) => items.iter().map(|one| self.value_size(one)).sum(),
            Value::Object(members) => {
                let each = |(name, one): (&String, &Value)| {
                    1.0 + name.len() as f64 / BYTES_PER_UNIT + self.value_size(one)
                };
                members.iter().map(each).sum()
            }
            _ => 0.0,
        };
        self.sizes.insert(inner, 1.0 + size);
        1.0 + size
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks that one keyword is cheap on a short value and expensive on a long one.
    #[track_caller]
    fn check(keyword: &str, held: Value, short: Value, long: Value) {
        let schema = json!({ keyword: held });
        let cost = |value: &Value| {
            KeywordCosts::default().keyword_cost(schema.as_object().unwrap(), value)
        };
        let (short, long) = (cost(&short), cost(&long));
        assert!(short < 100.0 && long > 1_000.0, "{keyword}: {short} {long}");
    }

    // fault 10
    #[test]
    fn keyword_cost_grows_with_the_value() {
        let text = || json!("x".repeat(1 << 20));
        let many = |count: u32| json!((0..count).collect::<Vec<_>>());
        let named = |count: u32| (0..count).map(|at| (at.to_string(), json!(1))).collect();
        check("pattern", json!("^[a-z]+$"), json!("x"), text());
        check("maxLength", json!(3), json!("x"), text());
        check("format", json!("email"), json!("x"), text());
        check("uniqueItems", json!(true), many(3), many(10_000));
        check("const", many(10_000), json!(1), many(10_000));
        check("enum", json!([many(5_000), many(5_001)]), json!(1), many(10_000));
        check("patternProperties", json!({ "^a": true }), named(3), named(10_000));
        let names: Vec<_> = (0..10_000).map(|at| at.to_string()).collect();
        check("required", json!(names), json!(1), json!({}));
        check("properties", named(10_000), json!(1), json!({}));
        check("dependentRequired", json!({ "a": names }), json!(1), json!({}));
    }
}
