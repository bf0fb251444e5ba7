//! Whether a validator can be made of a schema in time and in little room.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{IN_PLACE, pattern};
use crate::schema::walk;

/// The most schemas that stand for one, where a validator writes them all out.
const MOST_WRITTEN: usize = 5_000;

/// The longest pattern, in bytes (RX1).
const MOST_PATTERN: usize = 4 << 10;

/// The most places of all patterns of a schema.
const MOST_PLACES: f64 = 50_000.0;

/// What validators may take to be made for all that one server says: of its schemas the length,
/// of their patterns the places.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Allowance {
    bytes: usize,
    places: f64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { bytes: 8 << 20, places: 4.0 * MOST_PLACES }
    }
}

impl Allowance {
    /// Takes away what the validator of a schema takes that is `length` bytes long.
    ///
    /// # Errors
    ///
    /// Says why it is not made.
    pub(in super::super) fn spend(
        &mut self,
        schema: &Map<String, Value>,
        length: usize,
    ) -> Result<(), &'static str> {
        // It writes out all that may speak of a value beside a keyword that asks what nothing
        // else speaks of.
        let mut writing = Writing { root: schema, left: MOST_WRITTEN, followed: Vec::new() };
        let mut places = Some(0.0);
        schema.iter().for_each(|held| patterns(held, &mut places));
        match places {
            _ if writing.each(schema).is_none() => return Err("what it refers to is too much"),
            None => return Err("a pattern in it is too long"),
            Some(places) if places > MOST_PLACES => return Err("its patterns stand for too much"),
            Some(places) => self.places -= places,
        }
        let left = self.bytes.checked_sub(length).filter(|_| self.places >= 0.0);
        self.bytes = left.ok_or("the schemas of its server are too much together")?;
        Ok(())
    }
}

/// Adds the places of all patterns in what stands under a keyword, wherever a reference may find
/// them; `None` stands for a pattern that is too long.
fn patterns((keyword, held): (&String, &Value), places: &mut Option<f64>) {
    let mut add = |text: &String| {
        let made = (text.len() <= MOST_PATTERN).then(|| pattern::made(text));
        *places = places.zip(made).map(|(sum, made)| sum + made);
    };
    match (keyword.as_str(), held) {
        ("pattern", Value::String(text)) => add(text),
        ("patternProperties", Value::Object(patterns)) => patterns.keys().for_each(add),
        _ => {}
    }
    match held {
        Value::Object(members) => members.iter().for_each(|it| patterns(it, places)),
        Value::Array(items) => items.iter().for_each(|it| patterns((keyword, it), places)),
        _ => {}
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

    fn spend(schema: &Value) -> Result<(), &'static str> {
        Allowance::default().spend(schema.as_object().unwrap(), 0)
    }

    #[test]
    fn a_validator_that_would_never_be_made_is_not_begun() {
        let mut chain = json!({ "$ref": "#/$defs/d0", "$defs": {} });
        for at in 0..30 {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            chain["$defs"][format!("d{at}")] = json!({ "anyOf": [next, next] });
        }
        let is_made = |schema: &Value| spend(schema).is_ok();
        assert!(is_made(&chain));
        chain["unevaluatedProperties"] = json!(false);
        assert!(!is_made(&chain));
        let closed = json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }],
            "unevaluatedProperties": false, "$defs": { "a": { "anyOf": [{ "$ref": "#" }] } } });
        assert!(is_made(&closed));
    }

    // RX1
    #[test]
    fn patterns_that_stand_for_much_are_not_made() {
        let with = |patterns: Vec<String>| {
            let all: Vec<_> = patterns.iter().map(|it| json!({ "pattern": it })).collect();
            json!({ "$defs": { "x": { "allOf": all } } })
        };
        let is_made = |patterns: Vec<String>| spend(&with(patterns)).is_ok();
        assert!(is_made((0..300).map(|at| format!("^[a-z_]{{1,64}}{at}$")).collect()));
        assert!(!is_made((0..10).map(|at| format!("\\p{{L}}{{60}}{at}")).collect()));
        assert!(!is_made(vec!["x".repeat(MOST_PATTERN + 1)]));
    }

    // F10: what one schema may, a thousand may not together.
    #[test]
    fn all_schemas_of_a_server_have_one_allowance() {
        let schema = json!({ "pattern": "\\p{L}{100}" });
        let mut allowance = Allowance::default();
        let made = (0..1_000)
            .take_while(|_| allowance.spend(schema.as_object().unwrap(), 20).is_ok())
            .count();
        assert!((5..50).contains(&made), "{made}");
        let long = (0..1_000)
            .scan(Allowance::default(), |left, _| Some(left.spend(&Map::new(), 256 << 10)))
            .filter(Result::is_ok);
        assert_eq!(long.count(), 32);
    }
}
