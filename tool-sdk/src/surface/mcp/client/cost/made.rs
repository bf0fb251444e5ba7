//! Whether a validator can be made of a schema in time and in little room.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::IN_PLACE;
use super::pattern::Pattern;
use crate::schema::walk;

/// The most schemas that stand for one, where a validator writes them all out.
const MOST_WRITTEN: usize = 5_000;

/// The most places of all patterns together.
const MOST_PLACES: f64 = 200_000.0;

/// Whether a validator is made in time: it writes out all that may speak of a value beside a
/// keyword that asks what nothing else speaks of.
pub(in super::super) fn is_made_in_time(schema: &Map<String, Value>) -> bool {
    let mut writing = Writing { root: schema, left: MOST_WRITTEN, followed: Vec::new() };
    writing.each(schema).is_some() && schema.iter().map(patterns).sum::<f64>() <= MOST_PLACES
}

/// The places of all patterns in what stands under a keyword, wherever a reference may find
/// them.
fn patterns((keyword, held): (&String, &Value)) -> f64 {
    let own = match (keyword.as_str(), held) {
        ("pattern", Value::String(text)) => Pattern::of(text).places(),
        ("patternProperties", Value::Object(patterns)) => {
            patterns.keys().map(|text| Pattern::of(text).places()).sum()
        }
        _ => 0.0,
    };
    own + match held {
        Value::Object(members) => members.iter().map(patterns).sum(),
        Value::Array(items) => items.iter().map(|it| patterns((keyword, it))).sum(),
        _ => 0.0,
    }
}

/// What a validator writes out; `None` stands for too much.
struct Writing<'s> {
    root: &'s Map<String, Value>,
    left: usize,
    followed: Vec<&'s str>,
}

impl<'s> Writing<'s> {
    /// Goes through every schema in `schema`.
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
    fn a_validator_that_would_never_be_made_is_not_begun() {
        let mut chain = json!({ "$ref": "#/$defs/d0", "$defs": {} });
        for at in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            chain["$defs"][format!("d{at}")] = json!({ "anyOf": [next, next] });
        }
        let is_made = |schema: &Value| is_made_in_time(schema.as_object().unwrap());
        assert!(is_made(&chain));
        chain["unevaluatedProperties"] = json!(false);
        assert!(!is_made(&chain));
        let closed = json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }],
            "unevaluatedProperties": false, "$defs": { "a": { "anyOf": [{ "$ref": "#" }] } } });
        assert!(is_made(&closed));
    }

    #[test]
    fn patterns_that_stand_for_much_are_not_made() {
        let is_made = |patterns: Vec<String>| {
            let all: Vec<_> = patterns.iter().map(|it| json!({ "pattern": it })).collect();
            is_made_in_time(json!({ "$defs": { "x": { "allOf": all } } }).as_object().unwrap())
        };
        assert!(is_made((0..1_000).map(|at| format!("^[a-z]+{at}$")).collect()));
        assert!(!is_made((0..100).map(|at| format!("\\p{{L}}{{200}}{at}")).collect()));
    }
}
