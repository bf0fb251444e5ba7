//! The cost of each keyword on a value, without its subschemas.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::pattern::Pattern;
use crate::schema::{is_standard, walk};

/// How many names, or how many bytes, are compared at the cost of one evaluation.
const NAMES: f64 = 8.0;
const BYTES: f64 = 64.0;

/// Marks a reference to a meta-schema, which is expensive on each part of a value.
const STANDARD: &str = "x-standard";
const STANDARD_COST: f64 = 200.0;

/// Marks each reference to a meta-schema.
pub(in super::super) fn marked(schema: &Value) -> Value {
    fn mark(schema: &mut Map<String, Value>) {
        if schema.get("$ref").and_then(Value::as_str).is_some_and(is_standard) {
            schema.insert(STANDARD.to_owned(), true.into());
        }
        walk::each_mut(schema, &mut |_, inner| {
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
pub(super) struct Known {
    sizes: HashMap<usize, f64>,
    patterns: HashMap<usize, Pattern>,
    names: HashMap<usize, (usize, usize)>,
}

impl Known {
    /// Returns the cost of all keywords of `schema`, without its subschemas.
    pub(super) fn own(&mut self, schema: &Map<String, Value>, value: &Value) -> f64 {
        let mut cost = schema.len() as f64 / NAMES;
        for (keyword, held) in schema {
            cost += match (keyword.as_str(), held, value) {
                ("pattern", Value::String(text), Value::String(value)) => {
                    self.pattern(text).cost(1, value.len())
                }
                ("patternProperties", Value::Object(patterns), Value::Object(members)) => {
                    let (count, length) = self.names(members);
                    patterns.keys().map(|text| self.pattern(text).cost(count, length)).sum()
                }
                ("enum", Value::Array(choices), _) => {
                    let each = choices.len() as f64 * self.size(value);
                    choices.len() as f64 / NAMES + each.min(self.size(held))
                }
                (STANDARD, ..) => STANDARD_COST * self.size(value),
                ("const", ..) => self.size(held).min(self.size(value)),
                ("uniqueItems", Value::Bool(true), Value::Array(_)) => NAMES * self.size(value),
                ("required", Value::Array(names), Value::Object(_)) => names.len() as f64 / NAMES,
                ("dependentRequired" | "dependencies", Value::Object(_), Value::Object(_)) => {
                    self.size(held)
                }
                ("properties", Value::Object(schemas), Value::Object(_)) => {
                    schemas.len() as f64 / NAMES
                }
                // These scan a text again, and there may be many of them.
                (
                    "minLength" | "maxLength" | "format" | "contentEncoding" | "contentMediaType",
                    _,
                    Value::String(text),
                ) => text.len() as f64 / NAMES,
                _ => 0.0,
            };
        }
        cost
    }

    fn pattern(&mut self, text: &str) -> Pattern {
        *self.patterns.entry(text.as_ptr().addr()).or_insert_with(|| Pattern::of(text))
    }

    /// Returns the number of property names and their total length.
    fn names(&mut self, members: &Map<String, Value>) -> (usize, usize) {
        let count = || (members.len(), members.keys().map(String::len).sum());
        *self.names.entry(std::ptr::from_ref(members).addr()).or_insert_with(count)
    }

    /// Returns the cost of comparing a value.
    fn size(&mut self, value: &Value) -> f64 {
        let inner = match value {
            Value::String(text) => return 1.0 + text.len() as f64 / BYTES,
            Value::Array(_) | Value::Object(_) => std::ptr::from_ref(value).addr(),
            _ => return 1.0,
        };
        if let Some(known) = self.sizes.get(&inner) {
            return *known;
        }
        let size = match value {
            Value::Array(items) => items.iter().map(|one| self.size(one)).sum(),
            Value::Object(members) => {
                let each = |(name, one): (&String, &Value)| {
                    1.0 + name.len() as f64 / BYTES + self.size(one)
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
        let cost = |value: &Value| Known::default().own(schema.as_object().unwrap(), value);
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
