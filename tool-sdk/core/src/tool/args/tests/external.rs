//! Schemas with keywords that only the crate `jsonschema` validates.

use serde_json::{Value, json};

use super::*;

/// Checks that `arguments` have these faults by `schema`.
#[track_caller]
fn check(schema: &Value, arguments: &Value, expected: &[&str]) {
    check_with_sensitive(schema, &[], arguments, expected);
}

#[track_caller]
fn check_with_sensitive(
    schema: &Value,
    sensitive: &[String],
    arguments: &Value,
    expected: &[&str],
) {
    let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
    assert_eq!(unsupported(schema.as_map()), None);
    let checks = ArgChecks::from_schema(schema.clone(), sensitive);
    let checks = checks.with_external_check(&schema, sensitive);
    let taken = parse_value("t", &checks, &RawArgs::new(arguments.to_string()));
    let faults = taken.err().map(|error| error.faults().to_vec()).unwrap_or_default();
    let words: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(words, expected, "{arguments}");
}

// The tool of the MCP conformance suite.
#[test]
fn a_schema_of_2020_12_is_called_as_it_says() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
            "home": { "$ref": "#addressDef" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    check(&schema, &json!({ "contactMethod": "phone", "phone": "1" }), &[]);
    check(&schema, &json!({ "email": "e", "address": { "city": "B" } }), &[]);
    check(&schema, &json!({ "contactMethod": "phone", "email": "e" }), &["`phone` is required"]);
    check(
        &schema,
        &json!({ "name": "x" }),
        &["the arguments must have `phone`, or `email`", "`email` is required"],
    );
    check(
        &schema,
        &json!({ "email": "e", "home": { "city": 1 } }),
        &["`home.city` is 1, but must be a string"],
    );
}

#[test]
fn every_external_keyword_is_validated() {
    let with = |x: Value| json!({ "type": "object", "properties": { "x": x } });
    for (x, value, words) in [
        (
            json!({ "contains": { "type": "integer" }, "minContains": 2 }),
            json!([1, "a"]),
            "`x` breaks `contains`: too few or too many items fit its schema",
        ),
        (
            json!({ "contains": { "const": 1 }, "maxContains": 1 }),
            json!([1, 1]),
            "`x` breaks `contains`: too few or too many items fit its schema",
        ),
        (
            json!({ "contains": { "required": ["a"] } }),
            json!([]),
            "`x` breaks `contains`: too few or too many items fit its schema",
        ),
        (json!({ "dependentRequired": { "a": ["b"] } }), json!({ "a": 1 }), "`x.b` is required"),
        (
            json!({ "dependentSchemas": { "a": { "maxProperties": 1 } } }),
            json!({ "a": 1, "b": 1 }),
            "`x` breaks `maxProperties`: the value has more than 1 property",
        ),
        (
            json!({ "allOf": [{ "properties": { "a": {} } }], "properties": { "bb": {} },
                    "unevaluatedProperties": false }),
            json!({ "a": 1, "bc": 1 }),
            "unknown argument `bc` in `x`; did you mean `bb`?",
        ),
        (
            json!({ "prefixItems": [{}], "unevaluatedItems": false }),
            json!([1, 2]),
            "`x` breaks `unevaluatedItems`: Unevaluated items are not allowed (1 item)",
        ),
    ] {
        check(&with(x), &json!({ "x": value }), &[words]);
    }
}

#[test]
fn faults_of_both_validators_are_in_one_message() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "integer", "maximum": 9 }, "b": {}, "if": { "minLength": 2 } },
        "dependentRequired": { "a": ["b"] },
        "additionalProperties": false,
    });
    check(
        &schema,
        &json!({ "a": 10, "if": "x" }),
        &[
            "`a` is 10, but must be at most 9",
            "`if` has 1 character, but must have at least 2",
            "`b` is required",
        ],
    );
    check(&schema, &json!({ "a": 10, "b": 1 }), &["`a` is 10, but must be at most 9"]);
}

// The native validator ignores the keyword, and then both branches seem to match.
#[test]
fn only_the_external_validator_decides() {
    let x = json!({ "oneOf": [{ "type": "array" }, { "contains": { "const": 1 } }] });
    let schema = json!({ "type": "object", "properties": { "x": x } });
    check(&schema, &json!({ "x": [2] }), &[]);
}

#[test]
fn nothing_in_a_sensitive_argument_is_repeated() {
    let x = json!({ "type": "object", "unevaluatedProperties": false });
    let schema = json!({ "type": "object", "properties": { "x": x } });
    let sensitive = ["x".to_owned()];
    let arguments = json!({ "x": { "hunter2": 1 } });
    check_with_sensitive(&schema, &sensitive, &arguments, &["`x` is not acceptable"]);
}

// A schema that takes exponential time without memoization is refused.
#[test]
fn the_work_of_the_external_validator_is_bounded() {
    let too_many = "the arguments have too many alternatives to check; send less, or less deep";
    let mut deep = json!({ "minLength": 1 });
    for _ in 0..30 {
        deep = json!({ "allOf": [{ "unevaluatedProperties": false, "anyOf": [deep] }],
                       "unevaluatedProperties": false });
    }
    let deep = json!({ "type": "object", "properties": { "x": deep } });
    check(&deep, &json!({ "x": { "a": 1 } }), &[too_many]);

    let twice = json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/t" } },
        "$defs": { "t": { "type": ["array", "integer"], "contains": {}, "allOf": [
            { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
        ] } },
    });
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    check(&twice, &json!({ "x": nested(3) }), &[]);
    check(&twice, &json!({ "x": nested(60) }), &[too_many]);
}

// An argument that a type decodes is checked against the whole schema, whichever others are
// present.
#[test]
fn an_argument_of_a_function_is_validated_by_itself() {
    #[derive(Deserialize)]
    struct Ones(Vec<u8>);

    impl JsonSchema for Ones {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Ones".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({
                "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 },
                "contains": { "const": 1 },
            })
        }
    }

    static TABLE: Table = Table::new(ToolSpec {
        name: "count",
        description: "Counts.",
        args: ArgsSpec::Params(&[
            ParamSpec {
                name: "ones",
                description: "",
                ty: param_type::<Ones>(),
                default: None,
                options: ParamOptions::NONE,
            },
            ParamSpec {
                name: "name",
                description: "",
                ty: param_type::<String>(),
                default: None,
                options: ParamOptions::NONE,
            },
        ]),
        ..ToolSpec::DEFAULT
    });
    let count = |text: &str| {
        let (mut ones, mut name) = (None::<Ones>, None::<String>);
        parse_args(&TABLE, &RawArgs::new(text), &mut [&mut ones, &mut name])
            .map(|_| filled(ones).0.len())
            .map_err(|error| error.faults().iter().map(|it| it.message.clone()).collect::<Vec<_>>())
    };
    assert_eq!(count(r#"{"ones": [1, 2], "name": "a"}"#), Ok(2));
    assert_eq!(
        count(r#"{"ones": [2]}"#),
        Err(vec![
            "`ones` breaks `contains`: too few or too many items fit its schema".to_owned(),
            "`name` is required (string)".to_owned(),
        ])
    );
}
