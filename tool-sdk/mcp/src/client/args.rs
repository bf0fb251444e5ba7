//! Validates the arguments of a foreign tool against the server's input schema.
//!
//! Arguments are sent if the schema accepts them, in the draft that it is written in. Errors are
//! worded like those of native tools as far as possible. With a schema that breaks a
//! [rule](super::schema_rules), the server alone validates them.
//!
//! **Invariant:** nothing is fetched, and the arguments that are sent are those that were checked.

use jsonschema::ValidationError;
use serde_json::{Map, Value};
use tool_sdk_core::{
    ArgumentNote, Fault, FaultKind, InvalidArgs, RawArgs, Schema,
    internal::{ArgChecks, check_strict, parse_text},
};

use super::schema_repair::without_malformed;
use super::validator::SchemaValidator;
use crate::json_rpc::outside_strings;

/// The most faults that are reported.
const MAX_FAULTS: usize = 64;

/// The validator of a tool's arguments.
pub(super) struct InputValidator {
    validator: SchemaValidator,
    checks: ArgChecks,
    /// The JSON pointers of keywords that are malformed.
    unsupported: Vec<String>,
}

/// How many of them are reported.
const MAX_REPORTED_PATHS: usize = 20;

impl InputValidator {
    /// Compiles a server's input schema; also returns it in the form that models see.
    ///
    /// # Errors
    ///
    /// Returns why the schema cannot be used.
    pub(super) fn compile(schema: &Value) -> Result<(Self, Schema), String> {
        let judge = |schema: &Value| {
            SchemaValidator::compile(schema, |schema| Schema::from_value(as_object_schema(schema)))
        };
        let (judge, left) = judge(schema).map(|judge| (judge, Vec::new())).or_else(|why| {
            let (rest, left) = without_malformed(schema).ok_or_else(|| unusable_schema(&why))?;
            judge(&rest).map(|judge| (judge, left)).map_err(|_| unusable_schema(&why))
        })?;
        let told = judge.schema().clone();
        let checks = ArgChecks::from_schema(told.clone(), &[]);
        Ok((Self { validator: judge, checks, unsupported: left }, told))
    }

    /// Returns the parts of the schema that are not checked.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let places = self.unsupported.iter().take(MAX_REPORTED_PATHS).map(|place| {
            let place = place.escape_debug().take(80).collect::<String>();
            format!("`{place}` of its schema is malformed and checked by the server only")
        });
        let rule = self.validator.broken_rule().into_iter();
        let rule =
            rule.map(|rule| format!("its arguments are validated by the server only: {rule}"));
        self.validator.warnings().chain(places).chain(rule)
    }

    /// Whether arguments are validated here.
    pub(super) fn is_active(&self) -> bool {
        self.validator.broken_rule().is_none()
    }

    /// Whether validating is so cheap that it can run inline.
    pub(super) fn is_cheap(&self, raw: &RawArgs<'_>) -> bool {
        let is_quick = |arguments| self.validator.is_cheap(&arguments);
        serde_json::from_str(raw.text()).is_ok_and(is_quick)
    }

    /// Returns the error for arguments whose validation did not end in time.
    pub(super) fn too_late_error(&self, tool: &str) -> InvalidArgs {
        let late =
            "validating the arguments took too long; send less at once, or less deeply nested";
        self.invalid_args(tool, single_fault(late))
    }

    fn invalid_args(&self, tool: &str, faults: Vec<Fault>) -> InvalidArgs {
        InvalidArgs::from_faults(tool.to_owned(), faults, &self.checks)
    }

    /// Parses arguments that the server alone validates.
    ///
    /// # Errors
    ///
    /// Fails when they are no JSON object, or cannot be sent as they are.
    pub(super) fn parse_args(
        &self,
        tool: &str,
        raw: &RawArgs<'_>,
    ) -> Result<Map<String, Value>, InvalidArgs> {
        self.check_integers(tool, raw)?;
        check_strict(raw.text())
            .map_err(|error| self.invalid_args(tool, single_fault(&error.to_string())))?;
        match parse_object(raw.text()) {
            Value::Object(arguments) => Ok(arguments),
            _ => Err(self.invalid_args(tool, single_fault("the arguments must be an object"))),
        }
    }

    /// Checks that every whole number can be sent exactly.
    fn check_integers(&self, tool: &str, raw: &RawArgs<'_>) -> Result<(), InvalidArgs> {
        let Some(number) = find_unsafe_integer(raw.text()) else { return Ok(()) };
        let message = format!(
            "the whole number {number} is too large to be sent exactly; send a string, if the tool \
             accepts one"
        );
        Err(self.invalid_args(tool, single_fault(&message)))
    }

    /// Parses and validates arguments.
    pub(super) fn validate_args(
        &self,
        tool: &str,
        raw: &RawArgs<'_>,
    ) -> Result<(Map<String, Value>, Vec<ArgumentNote>), InvalidArgs> {
        self.check_integers(tool, raw)?;
        match parse_text(tool, &self.checks, raw) {
            Ok((text, notes)) => {
                let arguments = parse_object(&text);
                let faults = self.schema_faults(&arguments);
                match arguments {
                    Value::Object(arguments) if faults.is_empty() => Ok((arguments, notes)),
                    _ => Err(self.invalid_args(tool, faults)),
                }
            }
            Err(invalid) => match check_strict(raw.text()).map(|()| parse_object(raw.text())) {
                // A keyword may be less strict in an earlier draft than in the current one.
                Ok(arguments) if self.schema_faults(&arguments).is_empty() => match arguments {
                    Value::Object(arguments) => Ok((arguments, Vec::new())),
                    _ => Err(invalid),
                },
                _ => Err(invalid),
            },
        }
    }

    /// Returns how arguments violate the server's own schema.
    fn schema_faults(&self, arguments: &Value) -> Vec<Fault> {
        match self.validator.validate(arguments, MAX_FAULTS, to_fault) {
            Ok(()) => Vec::new(),
            Err(faults) if faults.is_empty() => {
                single_fault("the arguments violate the server's schema")
            }
            Err(faults) => faults,
        }
    }
}

fn unusable_schema(why: &str) -> String {
    format!("its schema cannot be used: {why}")
}

/// Declares a schema to be of an object, where it does not say so or also allows other types.
fn as_object_schema(mut schema: Value) -> Value {
    if let Value::Object(root) = &mut schema {
        let ty = root.entry("type").or_insert_with(|| "object".into());
        if ty.as_array().is_some_and(|types| types.contains(&"object".into())) {
            *ty = "object".into();
        }
    }
    schema
}

/// Returns one fault of the arguments as a whole.
fn single_fault(message: &str) -> Vec<Fault> {
    vec![Fault::new(FaultKind::Constraint, String::new(), message.to_owned())]
}

/// Parses arguments that are known to be one object; returns `null` otherwise, which no schema of
/// an object accepts.
fn parse_object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// Returns the first whole number that would lose digits as `i64`, `u64` or double.
fn find_unsafe_integer(text: &str) -> Option<String> {
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

/// Converts an error of the validator, for rules that only the server's own schema has.
fn to_fault(error: ValidationError<'_>) -> Fault {
    let pointer = error.instance_path().as_str().to_owned();
    let place = match pointer.strip_prefix('/') {
        None => "the arguments".to_owned(),
        Some(path) => format!("`{}`", path.replace('/', ".")),
    };
    let verb = if pointer.is_empty() { "violate" } else { "violates" };
    let keyword = error.kind().keyword().to_owned();
    let message = format!("{place} {verb} `{keyword}`: {}", error.masked_with("the value"));
    Fault::new(FaultKind::Constraint, pointer, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn take(schema: Value, arguments: &str) -> Result<Map<String, Value>, String> {
        let (contract, _) = InputValidator::compile(&schema)?;
        let taken = contract.validate_args("mcp__s__t", &RawArgs::new(arguments));
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
    fn nested_errors_are_worded_like_those_of_native_tools() {
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
    fn dependent_required_is_explained() {
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
    fn rejects_integers_that_would_be_rounded() {
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
    fn draft_7_ignores_siblings_of_ref() {
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

    // The schema that models see means the same when it is read as the current draft.
    #[test]
    fn schema_of_an_earlier_draft_is_translated() {
        let told = |schema: Value| InputValidator::compile(&schema).unwrap().1.to_value();
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
    fn follows_references_within_the_document() {
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
            let (_, told) = InputValidator::compile(&schema).unwrap();
            assert!(told.property("x").unwrap()["$ref"].as_str().unwrap().starts_with("#/$defs/"));
        }
    }

    // F118: some libraries describe a part once and refer to its first place.
    #[test]
    fn follows_references_into_items_of_draft_7() {
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
    fn meta_schemas_are_validated_but_not_shown() {
        let d7 = "http://json-schema.org/draft-07/schema#";
        for draft in ["https://json-schema.org/draft/2020-12/schema", d7] {
            let schema = json!({
                "$schema": draft, "type": "object", "properties": { "x": { "$ref": d7 } },
            });
            let (_, told) = InputValidator::compile(&schema).unwrap();
            assert_eq!(told.property("x"), Some(&json!({ "type": ["object", "boolean"] })));
            assert!(take(schema.clone(), r#"{"x": {"type": "string"}}"#).is_ok());
            assert!(take(schema.clone(), r#"{"x": 1}"#).is_err());
            // Meta-schemas of another draft are not checked in detail.
            let wrong = take(schema, r#"{"x": {"type": "text"}}"#);
            assert_eq!(wrong.is_err(), draft == d7);
        }
    }

    // fault 10
    #[test]
    fn schema_that_breaks_a_rule_is_left_to_the_server() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#" } },
            "patternProperties": { "a": { "$ref": "#" } },
        });
        let deep = (0..60).fold("{}".to_owned(), |it, _| format!(r#"{{"a":{it}}}"#));
        let contract = check_unvalidated(&schema, "in two ways");
        assert!(contract.parse_args("t", &RawArgs::new(&*deep)).is_ok());
        for (wrong, why) in [
            ("[]", "must be a JSON object"),
            (r#"{"a":1,"a":2}"#, "comes twice"),
            (r#"{"a":18446744073709551616}"#, "too large"),
        ] {
            let error = contract.parse_args("t", &RawArgs::new(wrong)).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    /// Checks that the tool can be called, and that a warning says why nothing is validated.
    #[track_caller]
    fn check_unvalidated(schema: &Value, why: &str) -> InputValidator {
        let (contract, _) = InputValidator::compile(schema).unwrap();
        let warnings: Vec<_> = contract.warnings().collect();
        let is_said = |it: &String| it.contains("validated by the server only") && it.contains(why);
        assert!(!contract.is_active() && warnings.iter().any(is_said), "{warnings:?}");
        contract
    }

    // fault 10: a short text may compile to much memory.
    #[test]
    fn rejects_schemas_with_too_many_parts() {
        let of = |count: usize| {
            let schema = json!({ "type": "object", "allOf": vec![json!({ "not": {} }); count] });
            InputValidator::compile(&schema).map(drop)
        };
        of(4_000).unwrap();
        let why = of(5_000).unwrap_err();
        assert!(why.contains("10001 parts"), "{why}");
    }

    // Item 5: malformed keywords of hand-written schemas are left for the server to check.
    #[test]
    fn malformed_keywords_do_not_disable_a_tool() {
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
            let (contract, _) = InputValidator::compile(schema).unwrap();
            assert!(contract.warnings().next().is_some(), "{schema}");
            let takes = |text: &str| contract.validate_args("t", &RawArgs::new(text)).is_ok();
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
            let (contract, told) = InputValidator::compile(&schema).unwrap();
            assert_eq!(contract.warnings().count(), 0, "{schema}");
            assert_eq!(told.as_map()["type"], "object");
        }
        let pair = of(json!({ "items": [{ "type": "string" }, { "type": "integer" }] }));
        assert!(take(pair.clone(), r#"{"a":["x",1]}"#).is_ok());
        assert!(take(pair, r#"{"a":["x","y"]}"#).is_err());
    }

    #[test]
    fn rejects_external_and_dangling_references() {
        for bad in [
            json!({ "type": "object", "properties": { "x": { "$ref": "https://example.com/x" } } }),
            json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/X" } } }),
            json!({ "type": "string" }),
            json!(true),
            json!({ "type": "object", "description": "x".repeat(256 << 10) }),
        ] {
            assert!(InputValidator::compile(&bad).is_err(), "{:.80}", bad.to_string());
        }
    }
    // A pattern in the JavaScript dialect that the regex engine here does not accept.
    #[test]
    fn unsupported_patterns_do_not_disable_a_tool() {
        let mail = r"^[\w-\.]+@[\w-]+$";
        let schema = json!({ "type": "object", "properties": {
            "to": { "type": "string", "pattern": mail }, "n": { "type": "integer" },
        } });
        let (contract, _) = InputValidator::compile(&schema).unwrap();
        let odd: Vec<_> = contract.warnings().collect();
        assert!(odd.len() == 1 && odd[0].contains("is checked by the server only"), "{odd:?}");
        let takes = |text: &str| contract.validate_args("t", &RawArgs::new(text)).is_ok();
        assert!(takes(r#"{"to":"someone","n":1}"#) && !takes(r#"{"to":"someone","n":"x"}"#));

        let pair = json!([{ "type": "string", "pattern": mail }, { "type": "integer" }]);
        let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "properties": { "pair": { "type": "array", "items": pair } } });
        let (contract, _) = InputValidator::compile(&schema).unwrap();
        assert_eq!(contract.warnings().count(), 1);
        let takes = |text: &str| contract.validate_args("t", &RawArgs::new(text)).is_ok();
        assert!(takes(r#"{"pair":["someone",1]}"#) && !takes(r#"{"pair":["someone","x"]}"#));
    }

    // `format` is an annotation in every draft; the server may check it.
    #[test]
    fn formats_are_not_checked() {
        for draft in [
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let schema = json!({ "$schema": draft, "type": "object", "properties": {
                "at": { "type": "string", "format": "date-time" },
                "of": { "type": "string", "contentMediaType": "application/json" },
            } });
            let (contract, _) = InputValidator::compile(&schema).unwrap();
            let text = r#"{"at":"2024-01-01T00:00:00","of":"{"}"#;
            assert!(contract.validate_args("t", &RawArgs::new(text)).is_ok(), "{draft}");
        }
    }
    // fault 10: schemas with an `$id` are compiled again for each path that leads to them.
    #[test]
    fn schemas_with_many_ids_are_left_to_the_server() {
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
        for end in [json!({ "items": { "$dynamicRef": "#q" } }), json!({ "type": "integer" })] {
            check_unvalidated(&steps(end), "their own `$id`");
        }
    }

    // fault 10: also in places where only earlier drafts have schemas.
    #[test]
    fn counts_ids_in_places_of_every_draft() {
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
            check_unvalidated(&schema, "their own `$id`");
        }
    }
}
