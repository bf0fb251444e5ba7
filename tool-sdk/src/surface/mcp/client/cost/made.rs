//! Limits for compiling a schema: how many schemas the validator expands, and the size of patterns.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{IN_PLACE, pattern};
use crate::schema::walk;

/// The most schemas after the expansion of `unevaluated` keywords.
const MOST_WRITTEN: usize = 5_000;

/// The longest pattern, in bytes (RX1).
const MOST_PATTERN: usize = 4 << 10;

/// The most automaton states of all patterns of a schema.
const MOST_PLACES: f64 = 100_000.0;

/// Counts the objects in a value. Each may be a schema, for which a validator allocates more than
/// its text is long.
pub(in super::super) fn parts(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(parts).sum::<usize>(),
        Value::Array(items) => items.iter().map(parts).sum(),
        _ => 0,
    }
}

/// Whether the validator is built in time: it expands everything that may evaluate a value next to
/// an `unevaluated` keyword.
pub(in super::super) fn is_written_out_in_time(schema: &Map<String, Value>) -> bool {
    let mut writing = Writing { root: schema, left: MOST_WRITTEN, followed: Vec::new() };
    writing.each(schema).is_some()
}

/// The automaton states that the patterns of a schema may still use.
#[derive(Debug)]
pub(in super::super) struct Room(f64);

impl Default for Room {
    fn default() -> Self {
        Self(MOST_PLACES)
    }
}

impl Room {
    /// Takes the states of a pattern; returns whether there were enough.
    pub(in super::super) fn take(&mut self, pattern: &str) -> bool {
        let made = pattern::made(pattern);
        let fits = pattern.len() <= MOST_PATTERN && made <= self.0;
        self.0 -= if fits { made } else { 0.0 };
        fits
    }
}

/// The expansion of a schema by the validator; its methods return `None` when it is too large.
struct Writing<'s> {
    root: &'s Map<String, Value>,
    left: usize,
    followed: Vec<&'s str>,
}

impl<'s> Writing<'s> {
    /// Visits every subschema.
    fn each(&mut self, schema: &'s Map<String, Value>) -> Option<()> {
        if walk::has(schema, &["unevaluatedItems", "unevaluatedProperties"]) {
            self.write(schema)?;
        }
        let mut gone = Some(());
        walk::each(schema, &mut |_, _, inner| {
            if let (Some(()), Value::Object(inner)) = (gone, inner) {
                gone = self.each(inner);
            }
        });
        gone
    }

    fn write(&mut self, schema: &'s Map<String, Value>) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if let Some(Value::String(reference)) = schema.get("$ref")
            && !self.followed.contains(&reference.as_str())
            && let Some(Cow::Borrowed(target)) = walk::resolve(self.root, reference)
        {
            self.followed.push(reference);
            self.write(target)?;
            self.followed.pop();
        }
        let mut gone = Some(());
        walk::each(schema, &mut |keyword, _, inner| {
            if let (Some(()), true, Value::Object(inner)) =
                (gone, IN_PLACE.contains(&keyword), inner)
            {
                gone = self.write(inner);
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
        let is_made = |schema: &Value| is_written_out_in_time(schema.as_object().unwrap());
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
        let mut room = Room::default();
        assert!((0..300).all(|at| room.take(&format!("^[a-z_]{{1,64}}{at}$"))));
        assert!(!room.take("\\p{L}{600}") && room.take("^.{0,2500}$"));
        assert!(!room.take(&"x".repeat(MOST_PATTERN + 1)));
    }
}
