//! How much work it is to judge a value by a schema, found out without doing it.
//!
//! A schema of a few words that leads back to itself twice makes twice the work with each level
//! of a value, and both come from strangers. Here each part of a schema meets each part of a
//! value once, and what is counted is how often they would meet.
//!
//! **Invariant:** counting takes no more steps than the work that is allowed.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::schema::walk;

/// The most meetings of a part of a schema with a part of a value: a fraction of a second.
const MOST: f64 = 2_000_000.0;

/// How far one meeting may lead to the next, all inside one another.
const MOST_DEPTH: usize = 1_000;

/// What a pattern costs that may go back and look again, beside one that may not.
const LOOKS_AGAIN: f64 = 20_000.0;

/// In a text that is no longer than this, there is not much to go back to.
const SHORT: usize = 8;

/// How much work it is to judge a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// How often a part of the schema meets a part of the value.
    meetings: f64,
    /// How many of them are inside one another.
    depth: usize,
}

impl Work {
    /// Whether the value can be judged.
    pub(super) fn is_bounded(self) -> bool {
        self.meetings <= MOST
    }

    /// Whether it can be found out what is wrong with it: that is looked for anew on each level.
    pub(super) fn tells_faults(self) -> bool {
        self.meetings * (self.depth as f64) <= MOST
    }
}

/// The most schemas that stand for one, where a validator writes them all out.
const MOST_WRITTEN: usize = 5_000;

/// Whether a validator is made in time: it writes out all that may speak of a value beside a
/// keyword that asks what nothing else speaks of.
pub(super) fn is_written_out_in_time(schema: &Map<String, Value>) -> bool {
    let mut writing = Writing { root: schema, left: MOST_WRITTEN, followed: Vec::new() };
    writing.each(schema).is_some()
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

/// How much work it is to judge `value` by `schema`.
pub(super) fn work(schema: &Map<String, Value>, value: &Value) -> Work {
    let mut count = Count { root: schema, known: HashMap::new(), steps: 0.0, depth: 0, deepest: 0 };
    let meetings = count.of(schema, value);
    Work { meetings, depth: count.deepest }
}

struct Count<'s> {
    root: &'s Map<String, Value>,
    /// By the addresses of both.
    known: HashMap<(usize, usize), f64>,
    steps: f64,
    depth: usize,
    deepest: usize,
}

impl<'s> Count<'s> {
    fn of(&mut self, schema: &'s Map<String, Value>, value: &Value) -> f64 {
        self.steps += 1.0;
        if self.steps > MOST || self.depth > MOST_DEPTH {
            return f64::INFINITY;
        }
        let key = (std::ptr::from_ref(schema).addr(), std::ptr::from_ref(value).addr());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let leads_on = value.is_object() || value.is_array() || walk::has(schema, IN_PLACE);
        if leads_on {
            // Whoever comes back to itself for the same value never ends.
            self.known.insert(key, f64::INFINITY);
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let meetings = self.inside(schema, value);
        self.depth -= 1;
        if leads_on {
            self.known.insert(key, meetings);
        }
        meetings
    }

    fn inside(&mut self, schema: &'s Map<String, Value>, value: &Value) -> f64 {
        let mut meetings = 1.0 + own(schema, value);
        for (keyword, held) in schema {
            meetings += match (keyword.as_str(), held) {
                ("$ref", Value::String(reference)) => self.referred(reference, value),
                ("$dynamicRef" | "$recursiveRef", _) => f64::INFINITY,
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    schemas.iter().map(|inner| self.met(inner, value)).sum()
                }
                ("not" | "if" | "then" | "else", inner) => self.met(inner, value),
                ("dependentSchemas", Value::Object(schemas)) => {
                    schemas.values().map(|inner| self.met(inner, value)).sum()
                }
                ("properties", Value::Object(schemas)) => schemas
                    .iter()
                    .map(|(name, inner)| value.get(name).map_or(0.0, |one| self.met(inner, one)))
                    .sum(),
                ("patternProperties", Value::Object(schemas)) => {
                    schemas.values().map(|inner| self.all_met(inner, value)).sum()
                }
                ("prefixItems", Value::Array(schemas)) => schemas
                    .iter()
                    .zip(value.as_array().into_iter().flatten())
                    .map(|(inner, one)| self.met(inner, one))
                    .sum(),
                ("additionalProperties", inner) if value.is_object() => self.all_met(inner, value),
                ("items" | "contains", inner) if value.is_array() => self.all_met(inner, value),
                ("unevaluatedItems" | "unevaluatedProperties", inner) => self.all_met(inner, value),
                _ => 0.0,
            };
        }
        // What was looked at is found out by looking again.
        match walk::has(schema, &["unevaluatedItems", "unevaluatedProperties"]) {
            true => 2.0 * meetings,
            false => meetings,
        }
    }

    fn met(&mut self, schema: &'s Value, value: &Value) -> f64 {
        match schema {
            Value::Object(schema) => self.of(schema, value),
            _ => 1.0,
        }
    }

    /// The same for everything right inside of a value.
    fn all_met(&mut self, schema: &'s Value, value: &Value) -> f64 {
        match value {
            Value::Array(items) => items.iter().map(|one| self.met(schema, one)).sum(),
            Value::Object(members) => members.values().map(|one| self.met(schema, one)).sum(),
            _ => 0.0,
        }
    }

    fn referred(&mut self, reference: &str, value: &Value) -> f64 {
        let root = self.root;
        let Some(pointer) = reference.strip_prefix('#') else { return f64::INFINITY };
        let found = match pointer {
            "" => Some(root),
            _ => walk::at(root, pointer).and_then(Value::as_object),
        };
        match (found, pointer) {
            (Some(schema), _) => self.of(schema, value),
            (None, pointer) if walk::at(root, pointer).is_some_and(Value::is_boolean) => 1.0,
            (None, _) => f64::INFINITY,
        }
    }
}

/// Keywords that hold schemas for the same value.
const IN_PLACE: &[&str] =
    &["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// What a schema has to do with a value without the schemas inside of it.
fn own(schema: &Map<String, Value>, value: &Value) -> f64 {
    let choices = schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
    let own = schema.get("pattern").and_then(Value::as_str).zip(value.as_str());
    let named = schema.get("patternProperties").and_then(Value::as_object).into_iter();
    let named: f64 = named
        .flatten()
        .flat_map(|(text, _)| {
            value.as_object().into_iter().flatten().map(move |(name, _)| pattern(text, name))
        })
        .sum();
    choices as f64 / 8.0 + own.map_or(0.0, |(text, value)| pattern(text, value)) + named
}

/// What it costs to hold `value` against a pattern.
fn pattern(text: &str, value: &str) -> f64 {
    if value.len() <= SHORT {
        return 4.0;
    }
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!", "(?>"].iter().any(|it| text.contains(it));
    let refers_back =
        text.as_bytes().windows(2).any(|two| matches!(two, [b'\\', b'1'..=b'9' | b'k']));
    if looks_around || refers_back { LOOKS_AGAIN } else { 4.0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: &Value, value: &Value) -> Work {
        work(schema.as_object().unwrap(), value)
    }

    /// A list in a list, so many times.
    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn work_is_what_meets() {
        let list = json!({ "type": "array", "items": { "type": "integer" } });
        assert_eq!(of(&list, &json!([1, 2, 3])).meetings, 4.0);
        let books = json!({
            "properties": { "all": { "items": { "$ref": "#/$defs/book" } } },
            "$defs": { "book": { "properties": { "title": { "type": "string" } } } },
        });
        let value = json!({ "all": [{ "title": "a" }, { "title": "b", "n": 1 }] });
        assert_eq!(of(&books, &value).meetings, 8.0);
        assert!(of(&books, &value).tells_faults());
        let many = json!({ "all": vec![json!({ "title": "x", "n": [1, 2, 3] }); 100_000] });
        assert!(of(&books, &many).is_bounded());
    }

    // F10: neither a schema nor a value is long, and both together would never end.
    #[test]
    fn work_that_doubles_is_found_out_at_once() {
        let twice = |keyword: &str| {
            json!({ "$ref": "#/$defs/t", "$defs": { "t": { keyword: [
                { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
            ] } } })
        };
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert!(of(&twice(keyword), &nested(10)).is_bounded());
            for depth in [22, 60, 100] {
                assert!(!of(&twice(keyword), &nested(depth)).is_bounded(), "{keyword} {depth}");
            }
        }
        let both = json!({ "patternProperties": { "a": { "$ref": "#" } },
            "properties": { "a": { "$ref": "#" } } });
        let deep = (0..60).fold(json!(1), |inner, _| json!({ "a": inner }));
        assert!(!of(&both, &deep).is_bounded());
        let looks_back = json!({ "items": { "$ref": "#" }, "unevaluatedItems": false });
        assert!(!of(&looks_back, &nested(60)).is_bounded());

        // The same in one place, without any depth of the value.
        let mut chain = json!({ "$defs": {}, "$ref": "#/$defs/d0" });
        for at in 0..60 {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            chain["$defs"][format!("d{at}")] = json!({ "allOf": [next, next] });
        }
        chain["$defs"]["d60"] = json!({ "type": "integer" });
        assert!(!of(&chain, &json!(1)).is_bounded());
        assert!(!of(&json!({ "allOf": [{ "$ref": "#" }] }), &json!(1)).is_bounded());
    }

    #[test]
    fn a_validator_that_would_never_be_made_is_not_begun() {
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

    #[test]
    fn what_goes_too_deep_is_not_begun() {
        let within = |inner| json!({ "allOf": [inner] });
        let mut schema =
            (0..40).fold(json!({ "items": { "$ref": "#" } }), |inner, _| within(inner));
        assert!(of(&schema, &nested(10)).is_bounded());
        assert!(!of(&schema, &nested(60)).is_bounded());
        schema["items"] = json!({ "pattern": "^(?=a)(a+)+$" });
        assert!(!of(&schema, &json!(vec!["aaaaaaaaaaaaaaaa!"; 200])).is_bounded());
        assert!(of(&schema, &json!(vec!["aaaaaaaaaaaaaaaa!"; 50])).is_bounded());
        assert!(of(&schema, &json!(vec!["a"; 2_000])).is_bounded());
        schema["items"] = json!({ "pattern": "^\\d{4}-\\d{2}$" });
        assert!(of(&schema, &json!(vec!["a"; 20_000])).is_bounded());
    }
}
