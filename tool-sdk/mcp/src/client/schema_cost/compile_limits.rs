//! Limits for compiling a schema: how many schemas the validator expands, and the size of patterns.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{IN_PLACE_APPLICATORS, pattern_cost};
use tool_sdk_core::internal::walk;

/// The most schemas after the expansion of `unevaluated` keywords.
const MAX_EXPANDED_SCHEMAS: usize = 5_000;

/// The longest pattern, in bytes (RX1).
const MAX_PATTERN_LEN: usize = 4 << 10;

/// The most automaton states of all patterns of a schema.
const MAX_PATTERN_STATES: f64 = 100_000.0;

/// Counts the objects in a value. Each may be a schema, for which a validator allocates more than
/// its text is long.
pub(crate) fn count_parts(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(count_parts).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_parts).sum(),
        _ => 0,
    }
}

/// Whether the validator is built in time: it expands everything that may evaluate a value next to
/// an `unevaluated` keyword.
pub(crate) fn is_expansion_bounded(schema: &Map<String, Value>) -> bool {
    let mut writing =
        SchemaExpansion { root: schema, remaining: MAX_EXPANDED_SCHEMAS, active_refs: Vec::new() };
    writing.expand_nested(schema).is_some()
}

/// The automaton states that the patterns of a schema may still use.
#[derive(Debug)]
pub(crate) struct PatternBudget(f64);

impl Default for PatternBudget {
    fn default() -> Self {
        Self(MAX_PATTERN_STATES)
    }
}

impl PatternBudget {
    /// Takes the states of a pattern; returns whether there were enough.
    pub(crate) fn try_take(&mut self, pattern: &str) -> bool {
        let made = pattern_cost::compiled_states(pattern);
        let fits = pattern.len() <= MAX_PATTERN_LEN && made <= self.0;
        self.0 -= if fits { made } else { 0.0 };
        fits
    }
}

/// The expansion of a schema by the validator; its methods return `None` when it is too large.
struct SchemaExpansion<'s> {
    root: &'s Map<String, Value>,
    remaining: usize,
    active_refs: Vec<&'s str>,
}

impl<'s> SchemaExpansion<'s> {
    /// Visits every subschema.
    fn expand_nested(&mut self, schema: &'s Map<String, Value>) -> Option<()> {
        if walk::has_any_keyword(schema, &["unevaluatedItems", "unevaluatedProperties"]) {
            self.expand_one(schema)?;
        }
        let mut gone = Some(());
        walk::for_each_subschema(schema, &mut |_, _, inner| {
            if let (Some(()), Value::Object(inner)) = (gone, inner) {
                gone = self.expand_nested(inner);
            }
        });
        gone
    }

    fn expand_one(&mut self, schema: &'s Map<String, Value>) -> Option<()> {
        self.remaining = self.remaining.checked_sub(1)?;
        if let Some(Value::String(reference)) = schema.get("$ref")
            && !self.active_refs.contains(&reference.as_str())
            && let Some(Cow::Borrowed(target)) = walk::resolve_ref(self.root, reference)
        {
            self.active_refs.push(reference);
            self.expand_one(target)?;
            self.active_refs.pop();
        }
        let mut gone = Some(());
        walk::for_each_subschema(schema, &mut |keyword, _, inner| {
            if let (Some(()), true, Value::Object(inner)) =
                (gone, IN_PLACE_APPLICATORS.contains(&keyword), inner)
            {
                gone = self.expand_one(inner);
            }
        });
        gone
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rejects_exponential_expansion() {
        let mut chain = json!({ "$ref": "#/$defs/d0", "$defs": {} });
        for at in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            chain["$defs"][format!("d{at}")] = json!({ "anyOf": [next, next] });
        }
        let is_made = |schema: &Value| is_expansion_bounded(schema.as_object().unwrap());
        assert!(is_made(&chain));
        chain["unevaluatedProperties"] = json!(false);
        assert!(!is_made(&chain));
        let closed = json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }],
            "unevaluatedProperties": false, "$defs": { "a": { "anyOf": [{ "$ref": "#" }] } } });
        assert!(is_made(&closed));
    }

    // RX1
    #[test]
    fn rejects_patterns_with_too_many_states() {
        let mut room = PatternBudget::default();
        assert!((0..300).all(|at| room.try_take(&format!("^[a-z_]{{1,64}}{at}$"))));
        assert!(!room.try_take("\\p{L}{600}") && room.try_take("^.{0,2500}$"));
        assert!(!room.try_take(&"x".repeat(MAX_PATTERN_LEN + 1)));
    }
}
