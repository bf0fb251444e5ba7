//! The arguments of a foreign tool, against the server's own schema.
//!
//! What may be sent is what that schema accepts, in whichever draft it is written. What is
//! wrong is said in the words that every other tool has, where they reach.
//!
//! **Invariant:** nothing is fetched, and what goes to the server is what was checked.

use jsonschema::ValidationError;
use serde_json::{Map, Value};

use super::super::message::outside_strings;
use super::understood::understood;
use super::validator::{Judge, Verdict};
use crate::call::{Note, RawArgs};
use crate::schema::Schema;
use crate::tool::args::{Checks, checked};
use crate::tool::{Fault, FaultKind, InvalidArgs, is_strict};

/// More faults than anyone reads.
const MOST_FAULTS: usize = 64;

/// What the arguments of a tool must be.
pub(super) struct Contract {
    judge: Judge,
    checks: Checks,
    /// Where something stands that is not written as the standard wants it.
    left: Vec<String>,
}

/// How many such places are told.
const MOST_PLACES: usize = 20;

impl Contract {
    /// Takes a server's schema; also gives it in the form that models are told.
    ///
    /// # Errors
    ///
    /// Says why nothing could be checked by this schema.
    pub(super) fn of(schema: &Value) -> Result<(Self, Schema), String> {
        let judge =
            |schema: &Value| Judge::of(schema, |schema| Schema::from_value(of_an_object(schema)));
        let (judge, left) = judge(schema).map(|judge| (judge, Vec::new())).or_else(|why| {
            let (rest, left) = understood(schema).ok_or_else(|| unusable(&why))?;
            judge(&rest).map(|judge| (judge, left)).map_err(|_| unusable(&why))
        })?;
        let told = judge.told().clone();
        let checks = Checks::of_schema(told.clone(), &[]);
        Ok((Self { judge, checks, left }, told))
    }

    /// What is odd about the schema.
    pub(super) fn oddities(&self) -> impl Iterator<Item = String> {
        let places = self.left.iter().take(MOST_PLACES).map(|place| {
            let place = place.escape_debug().take(80).collect::<String>();
            format!("`{place}` of its schema is not understood and left to the server")
        });
        self.judge.oddities().chain(places)
    }

    /// Whether that is found out in no time.
    pub(super) fn is_quick(&self, raw: &RawArgs<'_>) -> bool {
        let is_quick = |arguments| self.judge.is_quick(&arguments);
        serde_json::from_str(raw.text()).is_ok_and(is_quick)
    }

    /// What is said where it would take too long to find out.
    pub(super) fn too_long(&self, tool: &str) -> InvalidArgs {
        InvalidArgs::found(tool.to_owned(), too_much(), &self.checks)
    }

    /// Takes arguments that the schema accepts.
    pub(super) fn take(
        &self,
        tool: &str,
        raw: &RawArgs<'_>,
    ) -> Result<(Map<String, Value>, Vec<Note>), InvalidArgs> {
        if let Some(number) = rounded(raw.text()) {
            let message = format!(
                "the whole number {number} is too large to be sent as it is; send a text, if the \
                 tool takes one"
            );
            let fault = Fault::new(FaultKind::Constraint, String::new(), message);
            return Err(InvalidArgs::found(tool.to_owned(), vec![fault], &self.checks));
        }
        let is_bounded =
            serde_json::from_str(raw.text()).is_ok_and(|it| self.judge.is_bounded(&it));
        if !is_bounded && is_strict(raw.text()).is_ok() {
            return Err(InvalidArgs::found(tool.to_owned(), too_much(), &self.checks));
        }
        match checked(tool, &self.checks, raw) {
            Ok((text, notes)) => {
                let arguments = object(&text);
                let faults = self.faults(&arguments);
                match arguments {
                    Value::Object(arguments) if faults.is_empty() => Ok((arguments, notes)),
                    _ => Err(InvalidArgs::found(tool.to_owned(), faults, &self.checks)),
                }
            }
            Err(invalid) => match is_strict(raw.text()).map(|()| object(raw.text())) {
                // Words of an earlier draft may mean less than they do today.
                Ok(arguments) if self.faults(&arguments).is_empty() => match arguments {
                    Value::Object(arguments) => Ok((arguments, Vec::new())),
                    _ => Err(invalid),
                },
                _ => Err(invalid),
            },
        }
    }

    /// What the server's own schema has against the arguments.
    fn faults(&self, arguments: &Value) -> Vec<Fault> {
        match self.judge.judge(arguments, MOST_FAULTS, fault) {
            Verdict::Fits => Vec::new(),
            Verdict::Breaks(faults) if faults.is_empty() => {
                whole("the arguments break the server's schema")
            }
            Verdict::Breaks(faults) => faults,
            Verdict::TooMuch => too_much(),
        }
    }
}

/// A fault of all arguments together.
fn unusable(why: &str) -> String {
    format!("its schema cannot be used: {why}")
}

/// The schema of arguments, which are an object also where it does not say so, or says that they
/// may be something else beside.
fn of_an_object(mut schema: Value) -> Value {
    if let Value::Object(root) = &mut schema {
        let ty = root.entry("type").or_insert_with(|| "object".into());
        if ty.as_array().is_some_and(|types| types.contains(&"object".into())) {
            *ty = "object".into();
        }
    }
    schema
}

fn whole(message: &str) -> Vec<Fault> {
    vec![Fault::new(FaultKind::Constraint, String::new(), message.to_owned())]
}

fn too_much() -> Vec<Fault> {
    whole("it would take too long to check the arguments; send less at once, or less deeply nested")
}

/// Arguments that were found to be one object; anything else is accepted by nothing.
fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The first whole number that would not arrive as it was written.
fn rounded(text: &str) -> Option<String> {
    let bare: Vec<u8> = outside_strings(text).collect();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let number = bare.split(|byte| !is_part(byte)).find(|word| {
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let word = String::from_utf8_lossy(word);
        is_whole && word.parse::<i64>().is_err() && word.parse::<u64>().is_err()
    })?;
    Some(String::from_utf8_lossy(number).chars().take(80).collect())
}

/// A fault that only the server's own schema knows of.
fn fault(error: ValidationError<'_>) -> Fault {
    let pointer = error.instance_path().as_str().to_owned();
    let place = match pointer.strip_prefix('/') {
        None => "the arguments".to_owned(),
        Some(path) => format!("`{}`", path.replace('/', ".")),
    };
    let verb = if pointer.is_empty() { "break" } else { "breaks" };
    let keyword = error.kind().keyword().to_owned();
    let message = format!("{place} {verb} `{keyword}`: {}", error.masked_with("the value"));
    Fault::new(FaultKind::Constraint, pointer, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn take(schema: Value, arguments: &str) -> Result<Map<String, Value>, String> {
        let (contract, _) = Contract::of(&schema)?;
        let taken = contract.take("mcp__s__t", &RawArgs::new(arguments));
        taken.map(|(arguments, _)| arguments).map_err(|error| error.to_string())
    }

    fn nested() -> Value {
        json!({
            "type": "object",
            "properties": { "filter": { "$ref": "#/$defs/Filter" } },
            "required": ["filter"],
            "$defs": { "Filter": {
                "type": "object",
                "properties": { "kind": { "enum": ["file", "folder"] } },
            } },
        })
    }

    // F119
    #[test]
    fn a_wrong_nested_value_is_refused_in_our_words() {
        assert_eq!(take(nested(), r#"{"filter": {"kind": "file"}}"#).unwrap().len(), 1);
        let error = take(nested(), r#"{"filter": {"kind": "link"}}"#).unwrap_err();
        assert!(
            error.starts_with("invalid arguments for `mcp__s__t`:\n- `filter.kind`"),
            "{error}"
        );
        assert!(error.contains("\"file\"") && error.contains("\nexpected: "), "{error}");
        for wrong in ["{", "[]", r#"{"filter": {}, "filter": {}}"#, "{}"] {
            assert!(take(nested(), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keywords_of_any_kind_count_in_our_words() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
            "dependentRequired": { "a": ["b"] },
        });
        assert!(take(schema.clone(), r#"{"a": "x", "b": "y"}"#).is_ok());
        let error = take(schema, r#"{"a": "x"}"#).unwrap_err();
        assert!(error.contains("\"b\" is a required property"), "{error}");
    }

    #[test]
    fn no_whole_number_is_rounded() {
        let schema = json!({ "type": "object", "properties": { "n": {} } });
        for good in [
            "18446744073709551615",
            "-9223372036854775808",
            "1e30",
            "\"99999999999999999999\"",
            "[0]",
        ] {
            assert!(take(schema.clone(), &format!(r#"{{"n": {good}}}"#)).is_ok(), "{good}");
        }
        for bad in ["18446744073709551616", "[1, -9223372036854775809]"] {
            let error = take(schema.clone(), &format!(r#"{{"n": {bad}}}"#)).unwrap_err();
            assert!(error.contains("too large"), "{error}");
        }
    }

    #[test]
    fn an_earlier_draft_means_what_it_meant() {
        // In draft 7 nothing beside a `$ref` counts.
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": { "n": { "$ref": "#/definitions/n", "maximum": 3 } },
            "definitions": { "n": { "type": "integer" } },
        });
        assert!(take(schema.clone(), r#"{"n": 7}"#).is_ok());
        assert!(take(schema, r#"{"n": "7"}"#).is_err());
    }

    // What is told keeps to what the server means, also where others read it as of today.
    #[test]
    fn what_is_told_of_an_earlier_draft_means_the_same() {
        let told = |schema: Value| Contract::of(&schema).unwrap().1.to_value();
        assert_eq!(
            told(json!({
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {
                    "n": { "$ref": "#/definitions/n", "maximum": 3, "description": "A number." },
                    "l": { "unevaluatedItems": false, "if": {}, "then": false },
                },
                "definitions": { "n": { "type": "integer" } },
            })),
            json!({
                "type": "object",
                "properties": {
                    "n": { "$ref": "#/$defs/n", "description": "A number." },
                    "l": { "if": {}, "then": false },
                },
                "$defs": { "n": { "type": "integer" } },
            })
        );
    }

    // F119: nothing of it needs the network.
    #[test]
    fn references_within_the_document_are_followed() {
        let d7 = "http://json-schema.org/draft-07/schema#";
        for schema in [
            json!({ "properties": { "x": { "$ref": "#pt" } },
                    "$defs": { "pt": { "$anchor": "pt", "type": "integer" } } }),
            json!({ "$schema": d7, "properties": { "x": { "$ref": "#q" } },
                    "definitions": { "q": { "$id": "#q", "type": "integer" } } }),
            json!({ "$schema": d7, "$id": "https://e.com/s",
                    "properties": { "x": { "$ref": "https://e.com/s#/definitions/q" } },
                    "definitions": { "q": { "type": "integer" } } }),
            json!({ "$id": "https://e.com/s", "properties": { "x": { "$ref": "q" } },
                    "$defs": { "q": { "$id": "q", "type": "integer" } } }),
            json!({ "properties": { "x": { "$dynamicRef": "#n" } },
                    "$defs": { "n": { "$dynamicAnchor": "n", "type": "integer" } } }),
        ] {
            let mut schema = schema;
            schema["type"] = json!("object");
            assert!(take(schema.clone(), r#"{"x": 1}"#).is_ok(), "{schema}");
            let error = take(schema.clone(), r#"{"x": "a"}"#).unwrap_err();
            let words = "- `x` is the string \"a\", but must be an integer";
            assert!(error.contains(words), "{schema} {error}");
            let (_, told) = Contract::of(&schema).unwrap();
            assert!(told.property("x").unwrap()["$ref"].as_str().unwrap().starts_with("#/$defs/"));
        }
    }

    // F118: as libraries write them that say a part once and refer to its first place.
    #[test]
    fn references_to_places_of_an_earlier_draft_are_followed() {
        let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "properties": {
                "box": { "type": "array", "items": [
                    { "type": "number" }, { "$ref": "#/properties/box/items/0" },
                ], "additionalItems": { "$ref": "#/properties/box/items/0" } },
                "a \"b\" ü": { "type": "string" },
                "other": { "$ref": "#/properties/a \"b\" ü" },
            } });
        for (arguments, fits) in [
            (json!({ "box": [1, 2, 3], "other": "x" }), true),
            (json!({ "box": [1, "2"] }), false),
            (json!({ "box": [1, 2, "3"] }), false),
            (json!({ "other": 1 }), false),
        ] {
            let taken = take(schema.clone(), &arguments.to_string());
            assert_eq!(taken.is_ok(), fits, "{arguments}: {taken:?}");
        }
    }

    #[test]
    fn the_standards_own_schemas_are_known_to_the_judge_alone() {
        let d7 = "http://json-schema.org/draft-07/schema#";
        for draft in ["https://json-schema.org/draft/2020-12/schema", d7] {
            let schema = json!({
                "$schema": draft, "type": "object", "properties": { "x": { "$ref": d7 } },
            });
            let (_, told) = Contract::of(&schema).unwrap();
            assert_eq!(told.property("x"), Some(&json!({ "type": ["object", "boolean"] })));
            assert!(take(schema.clone(), r#"{"x": {"type": "string"}}"#).is_ok());
            assert!(take(schema.clone(), r#"{"x": 1}"#).is_err());
            // A schema of another draft is not looked at any closer.
            let wrong = take(schema, r#"{"x": {"type": "text"}}"#);
            assert_eq!(wrong.is_err(), draft == d7);
        }
    }

    // fault 10
    #[test]
    fn what_would_take_too_long_is_not_begun() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#" } },
            "patternProperties": { "a": { "$ref": "#" } },
        });
        let deep =
            |depth: usize| (0..depth).fold("{}".to_owned(), |it, _| format!(r#"{{"a":{it}}}"#));
        assert!(take(schema.clone(), &deep(10)).is_ok());
        let error = take(schema, &deep(60)).unwrap_err();
        assert!(error.contains("less deeply nested"), "{error}");
    }

    // fault 10: what is short to write may be much to keep.
    #[test]
    fn a_schema_of_many_parts_is_not_begun() {
        let of = |count: usize| {
            let schema = json!({ "type": "object", "allOf": vec![json!({ "not": {} }); count] });
            Contract::of(&schema).map(drop)
        };
        of(4_000).unwrap();
        let why = of(5_000).unwrap_err();
        assert!(why.contains("10001 parts"), "{why}");
    }

    // Item 5: what is written by hand is met, and what nobody understands is the server's to check.
    #[test]
    fn what_is_not_understood_takes_no_tool_away() {
        let of = |one: Value| {
            json!({ "type": "object", "properties": { "a": one, "n": {
            "type": "integer",
        } } })
        };
        let draft7 = "http://json-schema.org/draft-07/schema#";
        let told = [
            of(json!({ "type": "int" })),
            of(json!({ "type": "string", "required": true })),
            of(json!({ "type": "string", "description": null, "deprecated": "yes" })),
            of(json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true })),
            of(json!("string")),
        ];
        for schema in &told {
            let (contract, _) = Contract::of(schema).unwrap();
            assert!(contract.oddities().next().is_some(), "{schema}");
            let takes = |text: &str| contract.take("t", &RawArgs::new(text)).is_ok();
            assert!(!takes(r#"{"n":"x"}"#) && takes(r#"{"n":1}"#), "{schema}");
        }
        for schema in [
            json!({ "type": "object", "properties": [] }),
            json!({ "properties": { "a": { "type": "string" } } }),
            json!({ "type": ["object", "null"] }),
            json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "object" } } }),
            json!({ "$schema": draft7, "$ref": "#/definitions/A",
                "definitions": { "A": { "type": "object" } } }),
        ] {
            let (contract, told) = Contract::of(&schema).unwrap();
            assert_eq!(contract.oddities().count(), 0, "{schema}");
            assert_eq!(told.as_map()["type"], "object");
        }
        let pair = of(json!({ "items": [{ "type": "string" }, { "type": "integer" }] }));
        assert!(take(pair.clone(), r#"{"a":["x",1]}"#).is_ok());
        assert!(take(pair, r#"{"a":["x","y"]}"#).is_err());
    }

    #[test]
    fn a_schema_that_leads_elsewhere_is_not_usable() {
        for bad in [
            json!({ "type": "object", "properties": { "x": { "$ref": "https://example.com/x" } } }),
            json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/X" } } }),
            json!({ "type": "string" }),
            json!(true),
            json!({ "type": "object", "description": "x".repeat(256 << 10) }),
        ] {
            assert!(Contract::of(&bad).is_err(), "{:.80}", bad.to_string());
        }
    }
    // A pattern as it is written in the language of the web, and not here.
    #[test]
    fn a_pattern_that_cannot_be_read_takes_no_tool_away() {
        let mail = r"^[\w-\.]+@[\w-]+$";
        let schema = json!({ "type": "object", "properties": {
            "to": { "type": "string", "pattern": mail }, "n": { "type": "integer" },
        } });
        let (contract, _) = Contract::of(&schema).unwrap();
        let odd: Vec<_> = contract.oddities().collect();
        assert!(odd.len() == 1 && odd[0].contains("is left to the server"), "{odd:?}");
        let takes = |text: &str| contract.take("t", &RawArgs::new(text)).is_ok();
        assert!(takes(r#"{"to":"nobody","n":1}"#) && !takes(r#"{"to":"nobody","n":"x"}"#));

        let pair = json!([{ "type": "string", "pattern": mail }, { "type": "integer" }]);
        let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "properties": { "pair": { "type": "array", "items": pair } } });
        let (contract, _) = Contract::of(&schema).unwrap();
        assert_eq!(contract.oddities().count(), 1);
        let takes = |text: &str| contract.take("t", &RawArgs::new(text)).is_ok();
        assert!(takes(r#"{"pair":["nobody",1]}"#) && !takes(r#"{"pair":["nobody","x"]}"#));
    }

    // Formats are remarks in every draft: the server knows what it means by them.
    #[test]
    fn formats_are_for_the_server_to_check() {
        for draft in [
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let schema = json!({ "$schema": draft, "type": "object", "properties": {
                "at": { "type": "string", "format": "date-time" },
                "of": { "type": "string", "contentMediaType": "application/json" },
            } });
            let (contract, _) = Contract::of(&schema).unwrap();
            let text = r#"{"at":"2024-01-01T00:00:00","of":"{"}"#;
            assert!(contract.take("t", &RawArgs::new(text)).is_ok(), "{draft}");
        }
    }
    // fault 10: the parts of a schema are made anew for each way that leads to them.
    #[test]
    fn schemas_with_many_addresses_are_made_at_once_or_not_at_all() {
        let steps = |end: Value| {
            let mut defs = Map::new();
            for at in 0..24 {
                for side in ["l", "r"] {
                    let next = |side: &str| json!({ "$ref": format!("{side}{}", at + 1) });
                    let step = json!({ "$id": format!("{side}{at}"), "$dynamicAnchor": "q",
                        "allOf": [next("l"), next("r")] });
                    defs.insert(format!("{side}{at}"), step);
                }
            }
            for side in ["l24", "r24"] {
                let mut end = end.clone();
                end["$id"] = side.into();
                defs.insert(side.to_owned(), end);
            }
            json!({ "type": "object", "properties": { "a": { "$ref": "l0" } }, "$defs": defs })
        };
        assert!(Contract::of(&steps(json!({ "items": { "$dynamicRef": "#q" } }))).is_err());
        let (contract, _) = Contract::of(&steps(json!({ "type": "integer" }))).unwrap();
        assert!(contract.take("t", &RawArgs::new("{}")).is_ok());
    }

    // fault 10: also where only earlier drafts have schemas.
    #[test]
    fn addresses_count_wherever_a_draft_has_them() {
        let next = |side: &str, at: usize| json!({ "$ref": format!("{side}{at}") });
        let part = |side: &str, at: usize| match at {
            8 => json!({ "$id": format!("{side}8"), "type": "integer" }),
            at => json!({ "$id": format!("{side}{at}"),
                "allOf": [next("l", at + 1), next("r", at + 1)] }),
        };
        let parts: Vec<_> = (0..=8).flat_map(|at| [part("l", at), part("r", at)]).collect();
        let named: Map<_, _> =
            parts.iter().enumerate().map(|(at, part)| (at.to_string(), part.clone())).collect();
        for place in [
            json!({ "items": parts }),
            json!({ "items": [true], "additionalItems": { "items": parts } }),
            json!({ "dependencies": named }),
        ] {
            let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object", "properties": { "a": { "$ref": "l0" }, "b": place } });
            assert!(Contract::of(&schema).is_err(), "{schema}");
        }
    }
}
