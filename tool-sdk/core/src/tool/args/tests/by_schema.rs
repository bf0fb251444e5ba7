//! Arguments that only a schema describes.

use serde_json::{Value, json};

use super::*;

// The same applies to arguments that only a schema describes.
#[test]
fn a_schema_alone_goes_by_the_value_too() {
    let schema = Schema::from_json(
        r#"{"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}"#,
    );
    let checks = ArgChecks::from_schema(schema.unwrap(), &[]);
    let take = |text| parse_value("one", &checks, &RawArgs::new(text));
    assert_eq!(take(r#"{"n": 9.0}"#).unwrap().0["n"].as_i64(), Some(9));
    assert_eq!(take(r#"{"n": -0}"#).unwrap().0["n"].as_i64(), Some(0));
    assert!(take(r#"{"n": 10.0}"#).is_err() && take(r#"{"n": 8.5}"#).is_err());
}

/// Returns the faults of `arguments` that only `schema` describes.
#[track_caller]
fn faults_by_schema(schema: Value, arguments: &str) -> Vec<String> {
    let checks = ArgChecks::from_schema(Schema::from_value(schema).unwrap(), &[]);
    let error = parse_value("one", &checks, &RawArgs::new(arguments)).unwrap_err();
    error.faults().iter().map(|fault| fault.message.clone()).collect()
}

// F38: for several branches, reports the faults of each, without contradictions.
#[test]
fn alternatives_say_what_to_send() {
    let either = json!({ "type": "object", "anyOf": [
        { "required": ["a"] }, { "required": ["b", "c"] },
    ] });
    let root = |arguments| faults_by_schema(either.clone(), arguments);
    assert_eq!(root("{}"), ["the arguments must have `a`, or `b` and `c`"]);
    assert_eq!(root(r#"{"b": 1}"#), ["the arguments must have `a`, or `c`"]);
    let within = |x: Value, arguments| {
        let x = json!({ "type": "object", "properties": { "x": x },
            "$defs": { "T": { "type": "string" }, "L": { "items": { "type": "integer" } } } });
        faults_by_schema(x, arguments)
    };
    assert_eq!(
        within(
            json!({ "oneOf": [
            { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "type": "object", "properties": { "b": { "type": "string" } }, "required": ["b"] },
        ] }),
            r#"{"x": {}}"#
        ),
        ["`x` must have `a`, or `b`"]
    );
    assert_eq!(
        within(
            json!({ "oneOf": [{ "$ref": "#/$defs/T" }, { "type": "integer" }] }),
            r#"{"x": []}"#
        ),
        ["`x` is a list, but must be a string or integer"]
    );
    assert_eq!(
        within(
            json!({ "anyOf": [{ "minLength": 3 }, { "const": 7 }, { "pattern": "^z" }] }),
            r#"{"x": "b"}"#
        ),
        ["`x` fits none of its allowed forms: `x` has 1 character, but must have at least 3; or \
          `x` is the string \"b\", but must be 7; or `x` is the string \"b\", but must match \
          the pattern ^z"]
    );
    assert_eq!(
        within(json!({ "anyOf": [{ "type": "string" }, { "minProperties": 1 }] }), r#"{"x": {}}"#),
        ["`x` has 0 members, but must have at least 1"]
    );
    let many =
        json!({ "type": "object", "minProperties": 1, "oneOf": [{}, { "maxProperties": 2 }] });
    assert_eq!(
        faults_by_schema(many, "{}"),
        [
            "the arguments have 0 members, but must have at least 1",
            "the arguments fit more than one of their allowed forms",
        ]
    );
}

// The target of a reference is checked against a value once, however many references there are.
#[test]
fn the_work_is_bounded() {
    let twice = json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/t" } },
        "$defs": { "t": { "type": ["array", "integer"], "allOf": [
            { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
        ] } },
    });
    let nested = |inner: &str| format!(r#"{{"x": {}{inner}{}}}"#, "[".repeat(60), "]".repeat(60));
    let checks = ArgChecks::from_schema(Schema::from_value(twice.clone()).unwrap(), &[]);
    assert!(parse_value("one", &checks, &RawArgs::new(nested("1"))).is_ok());
    let faults = faults_by_schema(twice, &nested("\"a\""));
    assert!(faults[0].contains("but must be a list or integer"), "{faults:?}");

    // Neither schema nor value is deep; both together are.
    let many = (0..12).fold(json!({ "$ref": "#/$defs/t" }), |inner, _| json!({ "allOf": [inner] }));
    let deep = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/t" } },
        "$defs": { "t": { "items": many } } });
    assert_eq!(
        faults_by_schema(deep, &nested("1")),
        ["the arguments have too many alternatives to check; send less, or less deep"]
    );
}

#[test]
fn names_and_forbidden_forms_have_words() {
    for (x, value, words) in [
        (json!({ "not": { "type": "string" } }), "\"a\"", "`x` must not be a string"),
        (json!({ "not": { "const": 7 } }), "7", "`x` must not be 7"),
        (
            json!({ "not": { "required": ["a", "b"] } }),
            r#"{"a": 1, "b": 2}"#,
            "`x` has a form that is not allowed: with `a` and `b`",
        ),
        (
            json!({ "propertyNames": { "pattern": "^[a-z]+$" } }),
            r#"{"A": 1}"#,
            "the name of `x.A` is the string \"A\", but must match the pattern ^[a-z]+$",
        ),
        (
            json!({ "patternProperties": { "^n": { "type": "integer" } },
                    "additionalProperties": false }),
            r#"{"n1": "a"}"#,
            "`x.n1` is the string \"a\", but must be an integer",
        ),
        (
            json!({ "patternProperties": { "^\\d+$": {} }, "additionalProperties": false }),
            r#"{"a": 1}"#,
            "`x.a` has a name that is not known; names match `^\\d+$`",
        ),
    ] {
        let schema = json!({ "type": "object", "properties": { "x": x } });
        assert_eq!(faults_by_schema(schema, &format!(r#"{{"x": {value}}}"#)), [words]);
    }
}
